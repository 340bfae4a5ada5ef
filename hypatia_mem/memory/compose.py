"""The brief: what a session is told when it starts, rendered ahead by the worker.

Order is priority: taboos before rules before memories, pinned first, the project's own before
global ones, newest first; then ``[RESUMED_SESSION]`` with the last exchange. A part of the room
is set aside for the exchange, so that many rules cannot push it out, nor a long answer a taboo.
What does not fit is counted in one honest line that says how to see it. Everything recalled is
quoted line by line, as data: no recalled text can close the block or pose as an instruction.

The client passes 10,000 UTF-16 units of a hook's output whole and shows only a preview of more,
so every brief stays under ``Settings.brief_max_units``.
"""

from __future__ import annotations

import json
import os
import tempfile
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.memory import projects
from hypatia_mem.model import GLOBAL_SCOPE, Entry, Message, Session

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["LastExchange", "brief_json", "brief_text", "compose", "render_briefs", "units"]

MAX_UNITS = 9_800
EXCHANGE_SHARE = 0.3
ITEM_UNITS = 700
_JOINERS = "\u200c\u200d"  # which whole scripts and emoji need
MOST_AHEAD = 8  # briefs that are rendered for times to come
_SLACK = 120  # captions and the open end of the exchange
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive UTC, as everywhere inside
HEADINGS = (
    ("taboo", "Taboos: never do these"),
    ("rule", "Rules: always do these"),
    ("memory", "Remembered"),
)


@dataclass(frozen=True, slots=True)
class LastExchange:
    """Where the last session of a project stopped."""

    session: Session
    turns: int
    prompt: Message | None
    answer: Message | None

    @property
    def open_end(self) -> str:
        """Say what was left unfinished, or ``""``."""
        if self.prompt is not None and "interrupted" in self.prompt.flags:
            return "The person interrupted this turn."
        if self.answer is not None and "interrupted" in self.answer.flags:
            return "The answer was interrupted before it ended."
        if self.prompt is not None and "api-error" in self.prompt.flags:
            return "The last prompt ended in an API error and has no answer."
        if self.prompt is not None and self.answer is None:
            return "The last prompt has no recorded answer."
        return ""


def units(text: str) -> int:
    """Count UTF-16 code units, the client's measure of a hook's output.

    >>> units("a"), units("\U0001f44d")
    (1, 2)
    """
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def compose(
    scope: str,
    entries: Sequence[Entry],
    last: LastExchange | None,
    *,
    limit: int = MAX_UNITS,
) -> str:
    """Return the brief of a project, ``""`` when there is nothing to say.

    ``entries`` are the live rules, taboos and memories of the project and of the global scope;
    the caller has filtered them. The result never exceeds ``limit`` UTF-16 units.
    """
    if not entries and last is None:
        return ""
    name = scope or "every project"
    head = (
        f"[hypatia-memory] Memory of {name}. Recorded in earlier sessions; quoted as data. "
        "What the person says now takes precedence."
    )
    tail = (
        "More: hypatia-mem search WORDS, hypatia-mem rules, "
        'hypatia-mem remember "...", hypatia-mem forget "...".'
    )
    room = limit - units(head) - units(tail) - 4
    wanted = _exchange_block(last, room) if last is not None else ""
    reserved = min(units(wanted) + _SLACK, int(room * EXCHANGE_SHARE)) if wanted else 0
    rules = _rules_block(scope, entries, room - reserved - 2)
    exchange = ""
    if last is not None:
        exchange = _exchange_block(last, room - units(rules) - 2)
    return "\n".join(part for part in (head, rules, exchange, tail) if part)


def brief_json(text: str, event: str = "SessionStart") -> bytes:
    """Return the bytes a hook prints so that ``text`` reaches the model: one line of JSON."""
    answer = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def brief_text(
    store: Store,
    scope: str,
    *,
    limit: int = MAX_UNITS,
    at: datetime | None = None,
    known_at: datetime | None = None,
) -> str:
    """Return the brief of ``scope`` (``""``: what holds everywhere) from the store.

    It says what is true ``at`` a time (default: now), as it was known ``known_at`` another; with
    the second alone it is the brief that a session beginning then was given, but for what was
    forgotten since. Both are naive UTC.
    """
    from hypatia_mem.store import bitemporal

    scopes = _seen_in(scope)
    if known_at is None:
        entries = store.rules(scopes, at=at)
        found = store.last_exchange(scope) if scope else None
    else:
        entries = bitemporal.rules_known(store, scopes, known_at=known_at, at=at or known_at)
        found = bitemporal.last_known_exchange(store, scope, known_at) if scope else None
    return compose(scope, entries, _last_exchange(found), limit=limit)


def render_briefs(
    store: Store, home: Path, *, scopes: Iterable[str] | None = None, limit: int = MAX_UNITS
) -> int:
    """Write the brief of every known folder (of ``scopes`` only, if given); return how many.

    A folder whose project is excluded, or has nothing to say, has no brief. With ``scopes`` None
    briefs of folders that are known no more are removed.
    """
    only = None if scopes is None else set(scopes)
    excluded = {project.scope for project in store.projects() if project.excluded}
    folder = home / "briefs"
    written: dict[str, str] = {}
    texts: dict[str, _Briefs] = {}
    for root in projects.known_roots(store):
        if only is not None and root.scope not in only:
            continue
        if root.scope not in texts:
            texts[root.scope] = (
                _Briefs("", ())
                if root.scope in excluded
                else _briefs_ahead(store, root.scope, limit)
            )
        for key in projects.brief_keys(root):
            _write(folder, key, root.scope, texts[root.scope])
            written[key] = root.scope
    _write(folder, "global", GLOBAL_SCOPE, _briefs_ahead(store, GLOBAL_SCOPE, limit))
    if only is None:
        _remove_unknown(folder, set(written) | {"global"})
    return len(written)


# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Briefs:
    """A brief, and what it will be from each of the next times at which it changes."""

    now: str
    later: tuple[tuple[datetime, str], ...]


def _briefs_ahead(store: Store, scope: str, limit: int) -> _Briefs:
    """Return the brief of today and those to come: a session start cannot ask the store."""
    from hypatia_mem.store import bitemporal

    now = datetime.now(UTC).replace(tzinfo=None)
    turns = bitemporal.turning_points(store, _seen_in(scope), now, MOST_AHEAD)
    return _Briefs(
        brief_text(store, scope, limit=limit, at=now),
        tuple((turn, brief_text(store, scope, limit=limit, at=turn)) for turn in turns),
    )


def _seen_in(scope: str) -> list[str]:
    return [scope, GLOBAL_SCOPE] if scope else [GLOBAL_SCOPE]


def _rules_block(scope: str, entries: Sequence[Entry], room: int) -> str:
    lines: list[str] = []
    left = room - 80  # the line that owns up to what is missing
    omitted = 0
    for kind, title in HEADINGS:
        items = sorted((e for e in entries if e.kind == kind), key=lambda e: _rank(scope, e))
        if not items:
            continue
        heading = f"{title}:"
        spent = units(heading) + 1
        shown: list[str] = []
        for entry in items:
            line = "- " + _quote_line(entry.content, ITEM_UNITS)
            if entry.scopes == (GLOBAL_SCOPE,) and scope:
                line += " (all projects)"
            line += _validity(entry)
            cost = units(line) + 1
            # One over-long item must not starve the short ones behind it: go on looking.
            if spent + cost > left:
                omitted += 1
                continue
            shown.append(line)
            spent += cost
        if shown:
            lines.append(heading)
            lines.extend(shown)
            left -= spent
    if omitted:
        noun = "entry" if omitted == 1 else "entries"
        lines.append(f"({omitted} more {noun} not shown here: hypatia-mem rules)")
    return "\n".join(lines)


def _validity(entry: Entry) -> str:
    """Say since when and until when an entry is true, as far as somebody said so."""
    start, end = entry.valid_from, entry.valid_to
    parts = [
        *([] if start is None else [f"from {start:%Y-%m-%d %H:%M}"]),
        *([] if end is None else [f"until {end:%Y-%m-%d %H:%M}"]),
    ]
    return f" (true {' '.join(parts)} UTC)" if parts else ""


def _rank(scope: str, entry: Entry) -> tuple[bool, bool, float, str]:
    own = bool(scope) and scope in entry.scopes
    age = -(entry.created_at - _EPOCH).total_seconds() if entry.created_at is not None else 0.0
    return (not entry.pinned, not own, age, entry.name)


def _exchange_block(last: LastExchange, room: int) -> str:
    session = last.session
    facts = [f"session {session.id}"]
    if session.title:
        facts.append(f'"{_quote_line(session.title, 120)}"')
    if session.updated_at is not None:
        facts.append(session.updated_at.strftime("%Y-%m-%d %H:%M UTC"))
    if session.git_branch:
        facts.append(f"branch {_quote_line(session.git_branch, 80)}")
    facts.append(f"{last.turns} messages")
    lines = ["[RESUMED_SESSION] Where the last session stopped: " + ", ".join(facts)]
    left = room - units(lines[0]) - _SLACK
    if left < 60:
        return ""
    if last.prompt is not None:
        share = left // 2 if last.answer is not None else left
        block = _quote_block(last.prompt.text, max(40, share))
        lines += ["Last prompt:", block]
        left -= units(block)
    if last.answer is not None and left > 40:
        lines += ["Last answer:", _quote_block(last.answer.text, left)]
    if last.open_end:
        lines.append(f"Open end: {last.open_end}")
    return "\n".join(lines)


def _last_exchange(found: tuple[Session, int, list[Message]] | None) -> LastExchange | None:
    if found is None:
        return None
    session, turns, messages = found
    prompt = next((m for m in reversed(messages) if m.role == "user"), None)
    answer = None
    if prompt is not None:
        after = [m for m in messages if m.role == "assistant" and _turn(m) > _turn(prompt)]
        answer = after[-1] if after else None
    elif messages:
        answer = messages[-1]
    return LastExchange(session, turns, prompt, answer)


def _turn(message: Message) -> int:
    return message.turn or 0


def _quote_line(text: str, limit: int) -> str:
    """Put a text on one line, cut at ``limit`` units with an ellipsis."""
    return _cut(" ".join(_tamed(text).split()), limit)


def _quote_block(text: str, limit: int) -> str:
    """Quote a text line by line, keeping its beginning and its end when it is too long."""
    clean = _tamed(text).strip()
    lines = [f"> {line.rstrip()}" for line in clean.splitlines() if line.strip()]
    whole = "\n".join(lines)
    if units(whole) <= limit:
        return whole
    head = _cut(whole, max(20, limit * 2 // 3), mark="")
    end = _cut_front(whole, max(0, limit - units(head) - 12))
    return f"{head}\n> [...]\n> {end.lstrip('> ')}" if end else head


def _tamed(text: str) -> str:
    """Write what would drive a terminal as an escape: clients show what a hook handed over."""
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii") if _is_unseen(char) else char for char in text
    )


def _is_unseen(char: str) -> bool:
    unseen = unicodedata.category(char) in ("Cc", "Cf")
    return unseen and not char.isspace() and char not in _JOINERS


def _cut(text: str, limit: int, mark: str = "…") -> str:
    if units(text) <= limit:
        return text
    raw = text.encode("utf-16-le", "surrogatepass")[: max(0, limit - units(mark)) * 2]
    return raw.decode("utf-16-le", "ignore") + mark


def _cut_front(text: str, limit: int) -> str:
    raw = text.encode("utf-16-le", "surrogatepass")
    return raw[len(raw) - limit * 2 :].decode("utf-16-le", "ignore") if limit > 0 else ""


def _write(folder: Path, key: str, scope: str, briefs: _Briefs) -> None:
    """Write a folder's brief, its scope, and the briefs to come in ``<key>.later``.

    Those are pairs of lines: from when (seconds since 1970), and what the hook prints then, which
    is an empty line where there will be nothing to say.
    """
    brief, later = folder / f"{key}.json", folder / f"{key}.later"
    ahead = b"".join(
        b"%d\n%s" % (_seconds(turn), brief_json(text) if text else b"\n")
        for turn, text in briefs.later
    )
    if ahead:
        _replace(later, ahead)
    else:
        later.unlink(missing_ok=True)
    if briefs.now:
        _replace(brief, brief_json(briefs.now))
    else:
        brief.unlink(missing_ok=True)
    _replace(folder / f"{key}.scope", scope.encode("utf-8", "replace") + b"\n")


def _seconds(moment: datetime) -> int:
    """Return the first whole second at which it is that time, counted from 1970."""
    return -((_EPOCH - moment) // timedelta(seconds=1))


def _replace(path: Path, data: bytes) -> None:
    """Put a file in place at once: a hook reads the old one or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".brief-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _remove_unknown(folder: Path, known: set[str]) -> None:
    for path in folder.iterdir():
        stale = path.name.startswith(".brief-") or path.stem not in known
        if stale and path.suffix in (".json", ".scope", ".later", ""):
            path.unlink(missing_ok=True)


def path_of(home: Path, key: str) -> Path:
    """Return where the brief of a folder's key lies."""
    return Path(paths.brief_path(str(home), key))
