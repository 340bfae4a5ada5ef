"""Entries that are told when a prompt calls them up: their settings, and the tables the hook reads.

An entry with keys is told with the prompts that hold one of them (``capture.keyed`` says in which
order what decides), and not at a session's start, unless it is pinned: a pin is what tells an entry
always. The settings are a field of the entry, as JSON, so they have versions, can be undone, and
are exported, withheld and forgotten with it. The tables are rendered ahead, like the briefs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import keyed, paths
from hypatia_mem.errors import UsageError
from hypatia_mem.memory import projects
from hypatia_mem.memory.quoting import quote_block, quote_line, units
from hypatia_mem.memory.redaction import without_secrets
from hypatia_mem.model import GLOBAL_SCOPE, Author, Entry, Outcome

if TYPE_CHECKING:
    from hypatia_mem.store.opened import Store

__all__ = [
    "NONE", "Activation", "Judged", "changed", "explain", "missing", "of", "render", "row",
    "settle", "split",
]  # fmt: skip

ITEM_UNITS = 1_000  # of one entry's words
MOST_KEYS = 64  # of an entry, and as many words of each condition
KEY_LENGTH = 100
MOST_TURNS = 10_000
_TABLE_BYTES = keyed.MAX_TABLE // 2
_LATELY = 600.0  # seconds
_MADE = ("message", "session", "summary", "work-unit", "episode", "thread")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive UTC, as everywhere inside
_WORDS = ("keys", "and_any", "and_all", "not_any", "not_all")
_NUMBERS = ("sticky", "cooldown", "delay")


@dataclass(frozen=True, slots=True)
class Activation:
    """When an entry is told: ``keys`` that call it up, what else must hold, and for how long.

    Of ``and_any`` one must be there too, of ``and_all`` every one, of ``not_any`` none, of
    ``not_all`` not every one. The numbers count a session's prompts.
    """

    keys: tuple[str, ...] = ()
    and_any: tuple[str, ...] = ()
    and_all: tuple[str, ...] = ()
    not_any: tuple[str, ...] = ()
    not_all: tuple[str, ...] = ()
    sticky: int = 0
    cooldown: int = 0
    delay: int = 0

    @property
    def text(self) -> str:
        """Return it as the store keeps it: the settings that are said, ``""`` without keys."""
        if not self.keys:
            return ""
        said = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(said, ensure_ascii=False)


NONE = Activation()


def of(entry: Entry) -> Activation:
    """Return an entry's settings; what is none of them, in a file from elsewhere, is left out."""
    try:
        said = json.loads(entry.activation or "{}")
    except ValueError:
        return NONE
    if not isinstance(said, dict):
        return NONE
    found: dict[str, Any] = {}
    for name in _WORDS:
        given = said.get(name)
        words = given if isinstance(given, list) else []
        found[name] = tuple(word for word in words if isinstance(word, str))[:MOST_KEYS]
    for name in _NUMBERS:
        number = said.get(name)
        if type(number) is int and 0 <= number <= MOST_TURNS:
            found[name] = number
    return Activation(**found)


def split(text: str) -> tuple[str, ...]:
    """Return the words of a list with commas, as they are compared, each once.

    Raises UsageError for what cannot be a key: nothing, too long, too many, a secret.

    >>> split("Deploy,  release  notes , deploy")
    ('deploy', 'release notes')
    """
    words = tuple(dict.fromkeys(filter(None, (keyed.folded(one) for one in text.split(",")))))
    if without_secrets(text) != text:
        raise UsageError(
            "one of these words looks like a secret, and was not stored",
            hint="A key is a word that people say, such as: deploy",
        )
    if any(len(word) > KEY_LENGTH for word in words) or len(words) > MOST_KEYS:
        raise UsageError(
            f"at most {MOST_KEYS} keys of {KEY_LENGTH} characters each, separated by commas",
            hint="Example: --keys deploy,release",
        )
    return words


def changed(entry: Entry, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of an entry becomes what, when these of its settings are changed.

    ``changes`` holds fields of ``Activation`` and ``priority``. Keys that are set to nothing take
    all settings with them. Raises UsageError for an entry that cannot have keys, settings without
    keys, and numbers that are none.
    """
    if entry.kind in _MADE:
        raise UsageError(
            f"{entry.name!r} is a {entry.kind}, which is made from what was said",
            hint="Keys are for what is written by hand: a rule, a taboo, a memory, knowledge.",
        )
    for name, value in changes.items():
        if name == "priority" and not -MOST_TURNS <= value <= MOST_TURNS:
            raise UsageError(f"a priority is from -{MOST_TURNS} to {MOST_TURNS}")
        if name in _NUMBERS and not 0 <= value <= MOST_TURNS:
            raise UsageError(f"{name} counts prompts: 0 to {MOST_TURNS}")
    mine = {name: value for name, value in changes.items() if name != "priority"}
    after = replace(of(entry), **mine)
    if not after.keys and any(mine.values()):
        raise UsageError(
            f"{entry.name!r} has no keys, so nothing would call it up",
            hint=f'Say them too: hypatia-mem set "{entry.name}" keys=deploy,release',
        )
    return {
        "activation": after.text,
        "priority": changes.get("priority", entry.priority if after.keys else 0),
    }


def settle(
    home: Path,
    name: str,
    changes: Mapping[str, Any],
    *,
    scopes: Sequence[str] | None,
    author: Author,
    now: datetime,
) -> Outcome:
    """Change settings of an entry, in one operation that can be undone.

    Raises NotFound, and UsageError as ``changed`` does. A refusal is an outcome, and in the ledger.
    """
    from hypatia_mem.memory import curate, trust

    with curate.changing(home, author, now) as (store, txn):
        entry = trust.resolve_entry(store, name, scopes)
        return txn.update_entry(entry.name, **changed(entry, changes))


def row(entry: Entry) -> dict[str, Any]:
    """Return an entry's settings as JSON has them: ``activation`` (None: no keys), ``priority``."""
    settings = of(entry)
    said = {name: value for name, value in asdict(settings).items() if value or name == "keys"}
    return {"activation": said if settings.keys else None, "priority": entry.priority}


# The tables ---------------------------------------------------------------------------------------


def render(store: Store, home: Path, *, scopes: Iterable[str] | None = None) -> int:
    """Write the tables of the known folders (of ``scopes`` only); return how many have keys.

    A project without such entries has no table, and where no project has any the hook looks for
    none. With ``scopes`` None the tables of folders that are known no more go.
    """
    from hypatia_mem.store import calling

    only = None if scopes is None else set(scopes)
    every = calling.live(store)
    folder = home / paths.BRIEFS
    _drop_states(store, home)
    if not every:
        _remove(folder, set())
        return 0
    excluded = {project.scope for project in store.projects() if project.excluded}
    (folder / keyed.ANY).touch(0o600)  # before the tables: a hook that looks in vain loses nothing
    written = {"any"}
    texts: dict[str, bytes] = {}
    for root in projects.known_roots(store):
        here = [] if root.scope in excluded else _seen(every, root.scope)
        if here and (only is None or root.scope in only) and root.scope not in texts:
            texts[root.scope] = _table(store, here)
        for key in projects.brief_keys(root):
            if here:
                written.add(key)
            if root.scope in texts:
                keyed.write(keyed.table_path(str(home), key), texts[root.scope])
    shared = _seen(every, GLOBAL_SCOPE)
    if shared:
        written.add("global")
        keyed.write(keyed.table_path(str(home), "global"), _table(store, shared))
    _remove(folder, written)
    return len(every)


def missing(store: Store, home: Path) -> int:
    """Return how many of the tables that a hook would look for are not there."""
    from hypatia_mem.store import calling

    every = calling.live(store)
    excluded = {project.scope for project in store.projects() if project.excluded}
    wanted = {
        key
        for root in projects.known_roots(store)
        if root.scope not in excluded and _seen(every, root.scope)
        for key in projects.brief_keys(root)
    }
    wanted |= {"global"} if _seen(every, GLOBAL_SCOPE) else set()
    names = [keyed.table_path(str(home), key) for key in wanted]
    names += [str(home / paths.BRIEFS / keyed.ANY)] if wanted else []
    return sum(not Path(name).exists() for name in names)


def _seen(entries: Iterable[Entry], scope: str) -> list[Entry]:
    return [one for one in entries if {scope, GLOBAL_SCOPE} & set(one.scopes)]


def _table(store: Store, entries: Sequence[Entry]) -> bytes:
    """Return a table's file; of too many entries those that are told last are left out."""
    items = _items(store, entries)
    made = keyed.table(items)
    while len(made) > _TABLE_BYTES:
        items = items[: len(items) * 9 // 10]
        made = keyed.table(items)
    return made


def _items(store: Store, entries: Sequence[Entry]) -> list[keyed.Item]:
    """Return what a hook is given of these entries, all of which one project may see."""
    from hypatia_mem.memory import marking
    from hypatia_mem.store import calling, keys, reviewing

    unverified = reviewing.unverified(store, [entry.name for entry in entries])
    marks = marking.marks(entries, unverified)
    key = keys.load_key(store.home)
    return [_item(calling.identity(key, one.name), one, marks.get(one.name, "")) for one in entries]


def _item(id_: str, entry: Entry, mark: str) -> keyed.Item:
    settings = of(entry)
    head = f"- {f'{mark} ' if mark else ''}{quote_line(without_secrets(entry.name), 160)}:"
    text = f"{head}\n{quote_block(without_secrets(entry.content), ITEM_UNITS)}"
    return keyed.Item(
        id_,
        settings.keys,
        {name: getattr(settings, name.replace("-", "_")) for name in keyed.CONDITIONS},
        sticky=settings.sticky,
        cooldown=settings.cooldown,
        delay=settings.delay,
        since=_seconds(entry.valid_from),
        until=_seconds(entry.valid_to),
        text=text,
        units=units(text),
    )


def _seconds(moment: datetime | None) -> int:
    """Return the first whole second at which it is that time, counted from 1970; 0 for none."""
    return 0 if moment is None else max(1, -((_EPOCH - moment) // timedelta(seconds=1)))


def _remove(folder: Path, kept: set[str]) -> None:
    """Remove the tables of other folders, and what a writer that was killed has left."""
    for path in folder.glob(f"*{keyed.SUFFIX}*"):
        name, _, rest = path.name.partition(keyed.SUFFIX)
        if rest or name not in kept:
            path.unlink(missing_ok=True)


def _drop_states(store: Store, home: Path) -> None:
    """Remove what is kept of the turns of sessions that are not there (any more).

    One that was said something lately may be running, and not be stored yet.
    """
    long_ago = time.time() - _LATELY
    for path in (home / paths.TURNS).glob(f"*{keyed.STATE}"):
        with suppress(OSError):
            if path.stat().st_mtime < long_ago and store.session(path.stem) is None:
                path.unlink()


# Why ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """What a prompt makes of an entry with keys: ``told``, and ``why`` or why not.

    ``word`` is the key that was found or the condition that does not hold; ``until`` the last
    prompt of its sticky or silent turns.
    """

    name: str
    kind: str
    content: str
    told: bool
    why: str
    word: str
    until: int
    priority: int
    settings: Activation


def explain(home: Path, scope: str, prompt: str, session: str, *, now: datetime) -> dict[str, Any]:
    """Say what the next prompt of a session would be told, if it said this; changes nothing.

    Without a session (``""``) it is the first prompt of a new one. Returns ``turn``, ``entries``
    (a list of ``Judged``, in the order in which they are told) and ``withheld``, how many entries
    have keys and are kept out. Raises what opening the store raises.
    """
    from hypatia_mem.store import calling
    from hypatia_mem.store.connection import open_store

    scopes = [scope, GLOBAL_SCOPE] if scope else [GLOBAL_SCOPE]
    with open_store(home, write=False) as store:
        entries = calling.live(store, scopes)
        items = _items(store, entries)
        hidden = calling.withheld(store, scopes)
    state = keyed.read_state(str(home), session) if session else {}
    turn = _prompts(home, session) + 1
    at = (now - _EPOCH).total_seconds()
    said = keyed.called_up(items, state, prompt, turn=turn, now=at)
    told, left = keyed.chosen(said)
    without_room = {id(one) for one in left}
    shown = {id(one) for one in told}
    rows = [
        Judged(
            entry.name,
            entry.kind,
            entry.content,
            id(one) in shown,
            "no room" if id(one) in without_room else one.why,
            one.word,
            one.until,
            entry.priority,
            of(entry),
        )
        for entry, one in zip(entries, said, strict=True)
    ]
    return {"turn": turn, "entries": rows, "withheld": hidden}


def _prompts(home: Path, session: str) -> int:
    """Return how many prompts of a session were counted."""
    from hypatia_mem.capture import spool

    name = spool.session_name(session)
    try:
        return (home / paths.TURNS / name).stat().st_size if name else 0
    except OSError:
        return 0
