"""The brief: what a session is told when it starts, rendered ahead by the worker.

Taboos, rules and memories come first (``listed``); then ``[RESUMED_SESSION]`` with the last
exchange. A part of the room is set aside for the exchange, so that many rules cannot push it out,
nor a long answer a taboo. Everything recalled is quoted line by line, as data (``quoting``): no
recalled text can close the block or pose as an instruction.

The client passes 10,000 UTF-16 units of a hook's output whole and shows only a preview of more,
so every brief stays under ``Settings.brief_max_units``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.memory import present, projects
from hypatia_mem.memory.listed import choose, rules_block
from hypatia_mem.memory.present import Present
from hypatia_mem.memory.quoting import quote_block, quote_line, units
from hypatia_mem.memory.redaction import without_secrets
from hypatia_mem.model import GLOBAL_SCOPE, Entry, Message, Session

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["LastExchange", "brief_json", "brief_text", "compose", "render_briefs", "told", "units"]

MAX_UNITS = 9_800
EXCHANGE_SHARE = 0.3
THREADS = 3  # of what earlier sessions left open
MOST_BRANCHES = 20  # that have a brief of their own: those last spoken in
MOST_AHEAD = 8  # briefs that are rendered for times to come
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive UTC, as everywhere inside
_SLACK = 120  # captions and the open end of the exchange


@dataclass(frozen=True, slots=True)
class LastExchange:
    """Where the last session of a project stopped."""

    session: Session
    turns: int
    prompt: Message | None
    answer: Message | None
    left_open: tuple[str, ...] = ()  # what the project's sessions left undone, the latest first

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


def compose(
    scope: str,
    entries: Sequence[Entry],
    last: LastExchange | None,
    *,
    limit: int = MAX_UNITS,
    marks: Mapping[str, str] | None = None,
) -> str:
    """Return the brief of a project, ``""`` when there is nothing to say.

    ``entries`` are the live rules, taboos and memories of the project and of the global scope, and
    what else is pinned there; the caller has filtered them. ``marks`` says by name what stands in
    front of an entry's words, such as ``[disputed]``. The result never exceeds ``limit`` UTF-16
    units.
    """
    if not entries and last is None:
        return ""
    head, tail, room, reserved = _shares(scope, last, limit)
    rules = rules_block(scope, entries, room - reserved - 2, marks or {})
    exchange = ""
    if last is not None:
        exchange = _exchange_block(last, room - units(rules) - 2)
    return "\n".join(part for part in (head, rules, exchange, tail) if part)


def _shares(scope: str, last: LastExchange | None, limit: int) -> tuple[str, str, int, int]:
    """Return the first and the last line, the room between, and what of it is the exchange's."""
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
    return head, tail, room, reserved


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
    asker: str = "",
    held: Present | None = None,
) -> str:
    """Return the brief of ``scope`` (``""``: what holds everywhere) from the store.

    It says what is true ``at`` a time (default: now), as it was known ``known_at`` another; with
    the second alone it is the brief that a session beginning then was given, but for what was
    forgotten since. Both are naive UTC. ``asker`` is the session that is told: a branch is not told
    where its siblings stopped. ``held`` is what holds ``at`` that time, where it was asked for.
    """
    entries, last, marks = _material(store, scope, at, known_at, asker, held)
    return compose(scope, entries, last, limit=limit, marks=marks)


def told(store: Store, scope: str, *, limit: int = MAX_UNITS) -> list[tuple[Entry, str]]:
    """Return the entries that a brief of today tells, in its order, each with its line.

    The line of one for which there is no room is empty.
    """
    entries, last, marks = _material(store, scope, None, None)
    _, _, room, reserved = _shares(scope, last, limit)
    return choose(scope, entries, room - reserved - 2, marks)


def _material(
    store: Store,
    scope: str,
    at: datetime | None,
    known_at: datetime | None,
    asker: str = "",
    held: Present | None = None,
) -> tuple[list[Entry], LastExchange | None, dict[str, str]]:
    """Return what a brief is made of: the entries, the last exchange, the marks.

    ``held`` is what holds ``at`` that time, where it was asked for already.
    """
    from hypatia_mem.memory import marking
    from hypatia_mem.store import bitemporal, branches, episodes, hiding

    scopes = _seen_in(scope)
    now = datetime.now(UTC).replace(tzinfo=None)
    then = at or known_at or now
    left: list[Entry] = []
    if known_at is None:
        held = held or present.look(store, scopes, now=now, at=at)
        pinned = present.of_scopes(held.pinned, scopes)
        entries = marking.with_pinned(present.of_scopes(held.rules, scopes), pinned)
        goals = present.of_scopes(held.goals, scopes)
        talked = scope in held.spoken
        found = store.last_exchange(scope, asker, held.forest) if scope and talked else None
        left = present.of_scopes(held.threads, [scope]) if found else []
    else:
        entries = bitemporal.rules_known(store, scopes, known_at=known_at, at=then)
        goals = episodes.goals(store, scopes, at=then, known_at=known_at)
        without = branches.untold(store, asker)
        found = (
            bitemporal.last_known_exchange(store, scope, known_at, without=without)
            if scope
            else None
        )
    # What has keys is told by the prompts that call it up (``activation``); a pin tells it always.
    entries = [one for one in entries if one.pinned or not one.activation]
    hidden = set(hiding.hidden_names(store, asker, held.forest if held else None))
    entries = marking.with_goals(entries, goals)
    entries = [one for one in entries if one.name not in hidden]
    marks = marking.marks(entries, held.unverified if held else ())
    shown = [one.content for one in left if one.name not in hidden][:THREADS]
    last = _last_exchange(found, tuple(shown))
    if last is not None:
        last = _without_secrets(_without_forgotten(store, last, [scope]))
    return [replace(one, content=without_secrets(one.content)) for one in entries], last, marks


def render_briefs(
    store: Store, home: Path, *, scopes: Iterable[str] | None = None, limit: int = MAX_UNITS
) -> int:
    """Write the brief of every known folder (of ``scopes`` only, if given); return how many.

    A folder whose project is excluded, or has nothing to say, has no brief. With ``scopes`` None
    briefs of folders that are known no more are removed.
    """
    only = None if scopes is None else set(scopes)
    now = datetime.now(UTC).replace(tzinfo=None)
    held = present.look(store, None if only is None else [*only, GLOBAL_SCOPE], now=now, at=now)
    excluded = {project.scope for project in store.projects() if project.excluded}
    folder = home / "briefs"
    written: dict[str, str] = {}
    keys: dict[str, str] = {}
    texts: dict[str, _Briefs] = {}
    for root in projects.known_roots(store):
        if root.scope not in excluded:
            keys.update(dict.fromkeys(projects.brief_keys(root), root.scope))
        if only is not None and root.scope not in only:
            continue
        if root.scope not in texts:
            texts[root.scope] = (
                _Briefs("", ())
                if root.scope in excluded
                else _briefs_ahead(store, root.scope, limit, held)
            )
        for key in projects.brief_keys(root):
            _write(folder, key, root.scope, texts[root.scope])
            written[key] = root.scope
    _write(folder, "global", GLOBAL_SCOPE, _briefs_ahead(store, GLOBAL_SCOPE, limit, held))
    own = _render_branches(store, folder, keys, only, limit, held)
    if only is None:
        _remove_unknown(folder, {*written, *own, "global"})
    return len(written)


# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Briefs:
    """A brief, and what it will be from each of the next times at which it changes."""

    now: str
    later: tuple[tuple[datetime, str], ...]


def _render_branches(
    store: Store,
    folder: Path,
    keys: Mapping[str, str],
    only: set[str] | None,
    limit: int,
    held: Present,
) -> list[str]:
    """Write the briefs of the latest branches, which are not told what their siblings are.

    ``keys`` has the scope of each folder's key. Returns the keys of all these briefs, of those,
    too, that stay as they are.
    """
    from hypatia_mem.capture.spool import session_name
    from hypatia_mem.store import branches

    made: list[str] = []
    for session, scope in branches.latest(store, MOST_BRANCHES):
        name = session_name(session)
        here = [paths.session_key(key, name) for key in keys if name and keys[key] == scope]
        made += here
        if here and (only is None or scope in only):
            briefs = _briefs_ahead(store, scope, limit, held, session)
            for key in here:
                _write(folder, key, scope, briefs)
    return made


def _briefs_ahead(store: Store, scope: str, limit: int, held: Present, asker: str = "") -> _Briefs:
    """Return the brief of today and those to come: a session start cannot ask the store."""
    turns = held.turning_points(_seen_in(scope), MOST_AHEAD)
    return _Briefs(
        brief_text(store, scope, limit=limit, at=held.at, asker=asker, held=held),
        tuple(
            (turn, brief_text(store, scope, limit=limit, at=turn, asker=asker)) for turn in turns
        ),
    )


def _seen_in(scope: str) -> list[str]:
    return [scope, GLOBAL_SCOPE] if scope else [GLOBAL_SCOPE]


def _exchange_block(last: LastExchange, room: int) -> str:
    session = last.session
    facts = [f"session {session.id}"]
    if session.title:
        facts.append(f'"{quote_line(session.title, 120)}"')
    if session.updated_at is not None:
        facts.append(session.updated_at.strftime("%Y-%m-%d %H:%M UTC"))
    if session.git_branch:
        facts.append(f"branch {quote_line(session.git_branch, 80)}")
    facts.append(f"{last.turns} messages")
    lines = ["[RESUMED_SESSION] Where the last session stopped: " + ", ".join(facts)]
    left = room - units(lines[0]) - _SLACK
    if left < 60:
        return ""
    for one in last.left_open:
        line = f"Left open: {quote_line(one, 200)}"
        if units(line) + 1 > left // 2:
            break
        lines.append(line)
        left -= units(line) + 1
    if last.prompt is not None:
        share = left // 2 if last.answer is not None else left
        block = quote_block(last.prompt.text, max(40, share))
        lines += ["Last prompt:", block]
        left -= units(block)
    if last.answer is not None and left > 40:
        lines += ["Last answer:", quote_block(last.answer.text, left)]
    if last.open_end:
        lines.append(f"Open end: {last.open_end}")
    return "\n".join(lines)


def _last_exchange(
    found: tuple[Session, int, list[Message]] | None, left_open: tuple[str, ...] = ()
) -> LastExchange | None:
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
    return LastExchange(session, turns, prompt, answer, left_open)


def _without_forgotten(store: Store, last: LastExchange, scopes: Sequence[str]) -> LastExchange:
    """Return the exchange with ``[...]`` for what was forgotten there since it was said.

    The session keeps its words, but a brief that quotes them would tell it all over again.
    """
    from hypatia_mem.store import graves

    said = {"title": last.session.title}
    said |= {f"open {number}": text for number, text in enumerate(last.left_open)}
    for name, message in (("prompt", last.prompt), ("answer", last.answer)):
        if message is not None:
            said[name] = _ends(message.text)
    known = graves.told_in(store, list(said.values()))
    told = {name: known.blanked(text, scopes) for name, text in said.items() if text and known}
    told = {name: text for name, text in told.items() if text != said[name]}
    if "title" in told:
        last = replace(last, session=replace(last.session, title=""))
    left = (text for number, text in enumerate(last.left_open) if f"open {number}" not in told)
    last = replace(last, left_open=tuple(left))
    for name in told.keys() & {"prompt", "answer"}:
        text = re.sub(r"\s{2,}", " [...] ", f" {told[name]} ").strip()
        last = replace(last, **{name: replace(getattr(last, name), text=text)})
    return last


def _without_secrets(last: LastExchange) -> LastExchange:
    """Return the exchange as a hook would have written it: another program may have let one in."""
    session = last.session
    session = replace(
        session,
        title=without_secrets(session.title),
        git_branch=without_secrets(session.git_branch),
    )
    prompt, answer = (
        one and replace(one, text=without_secrets(one.text)) for one in (last.prompt, last.answer)
    )
    left = tuple(without_secrets(one) for one in last.left_open)
    return replace(last, session=session, prompt=prompt, answer=answer, left_open=left)


def _ends(text: str) -> str:
    """Return what of a text a brief may quote: its beginning and its end."""
    return text if len(text) <= 2 * MAX_UNITS else f"{text[:MAX_UNITS]}\n{text[-MAX_UNITS:]}"


def _turn(message: Message) -> int:
    return message.turn or 0


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
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return
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
