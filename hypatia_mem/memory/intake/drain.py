"""From spool and transcripts to the store: each turn once, whatever dies on the way.

One ``step`` reads what is new (outside the lease: reading and redacting may take long), then opens
the store once and does everything in one transaction: sessions, messages, what prompts asked to
remember or forget, and the cursors that say how far both sources have been read. Killed before the
commit, nothing has happened; killed after it, nothing is read twice (I2).

A record that waits for its transcript line keeps the spool's cursor in front of it. Reading records
behind it again is harmless: what is known is not stored twice.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.capture import immediate, paths, spool
from hypatia_mem.capture.hints import may_be_request, may_hold_secret
from hypatia_mem.errors import IndexUnavailable, StoreBusy
from hypatia_mem.memory import curate, deriving, projects
from hypatia_mem.memory.intake import reconcile
from hypatia_mem.memory.intake.lines import read_lines
from hypatia_mem.memory.intake.transcript import fold
from hypatia_mem.memory.intake.turns import Carry, Facts, Title
from hypatia_mem.model import GLOBAL_SCOPE, Author, Channel, Message, Session

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = ["Drain", "Progress", "cursors_of", "keep_house"]

BATCH_RECORDS = 80  # what is stored while others wait a tenth of a second at most
BATCH_BYTES = 16 * 1024 * 1024
TRANSCRIPT_BYTES = 8 * 1024 * 1024
DERIVE_SECONDS = 5.0  # how often briefs and index follow while there is more to store
SURVEY_DAYS = 30
MARKER = "hypatia-mem:internal"

_LOG = logging.getLogger("hypatia_mem")


@dataclass(frozen=True, slots=True)
class Progress:
    """What a step did: ``worked`` when anything was stored or read, ``waiting`` when a record is
    held back for its transcript line and the worker should look again soon.
    """

    worked: bool
    waiting: bool
    stored: int = 0


@dataclass(slots=True)
class _Work:
    """What one session brings to a step."""

    session_id: str
    records: list[spool.Record] = field(default_factory=list)
    transcript_path: str = ""
    messages: tuple[Message, ...] = ()
    open: frozenset[str] = frozenset()
    titles: tuple[Title, ...] = ()
    summaries: tuple[str, ...] = ()
    facts: Facts | None = None
    readable: bool = False
    complete: bool = True  # the transcript has been read to its end
    checkpoint: int = 0
    read_to: int = 0
    segments: dict[int, str] = field(default_factory=dict)  # id(record) -> its segment


@dataclass(frozen=True, slots=True)
class _Wait:
    """A session that something is held back of: when to look again, or when the file grows."""

    transcript_path: str
    again_at_ns: int
    size: int


@dataclass(slots=True)
class _Tail:
    """How far a transcript has been read in this process."""

    read_to: int
    carry: Carry | None = None


class Drain:
    """The worker's drain. Keeps nothing that a restart could miss."""

    def __init__(
        self,
        home: Path,
        settings: Settings,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """Bind to a home; nothing is opened yet."""
        self.home = home
        self.settings = settings
        self._clock_ns = clock_ns
        self._cursors: dict[str, int] | None = None
        self._waiting: dict[str, _Wait] = {}
        self._tails: dict[str, _Tail] = {}
        self._sizes: dict[str, int] = {}
        # Whose briefs are no longer true; None stands for all, and for a process that only begins.
        self._stale: set[str] | None = None
        self._behind = False  # the index was not brought to the end
        self._derive_at = 0.0  # by the monotonic clock
        self._failed = False  # index or briefs, the last time

    def has_work(self) -> bool:
        """Tell whether the spool has grown since it was last read; opens no store."""
        return any(
            self._sizes.get(segment.id) != segment.size
            for segment in spool.segments(str(self.home))
        )

    def step(self, *, final: bool = False) -> Progress:
        """Read what is new and store it. ``final``: nobody will look again, wait for nothing.

        Raises what the store raises; nothing is lost then, the same is read again.
        """
        try:
            return self._step(final=final)
        except BaseException:
            # What was read was not stored: begin again from the cursors that the store knows.
            self._forget_reading()
            raise

    def _forget_reading(self) -> None:
        self._cursors = None
        self._tails.clear()
        self._sizes.clear()
        self._waiting.clear()

    def _step(self, *, final: bool) -> Progress:
        from hypatia_mem.store.connection import open_store

        survey: list[tuple[str, str]] = []
        if self._cursors is None:
            with open_store(self.home, write=False) as store:
                self._cursors = dict(store.cursors())
                survey = self._survey(store)
        due = self._due(final=final)
        batch, ends, more = self._read_spool(due)
        work = self._gather(batch, survey, due, final=final)
        if not work and not ends:
            derived = (
                self._derive() if self._stale is None or self._stale or self._behind else False
            )
            return Progress(worked=derived, waiting=bool(self._waiting))
        with open_store(self.home, write=True) as store:
            stored, touched = self._store(store, work, ends, final=final)
        if self._stale is not None:
            self._stale |= touched
        rest = more or (stored > 0 and self.has_work())
        if not rest or time.monotonic() >= self._derive_at:
            self._derive()
        return Progress(worked=more or stored > 0, waiting=bool(self._waiting), stored=stored)

    # -- reading, outside the lease

    def _due(self, *, final: bool) -> dict[str, str]:
        """Return (session, transcript) of those to look at again now."""
        now = self._clock_ns()
        return {
            session: wait.transcript_path
            for session, wait in self._waiting.items()
            if final or now >= wait.again_at_ns or _size(wait.transcript_path) != wait.size
        }

    def _read_spool(self, due: Collection[str]) -> tuple[dict[str, _Work], dict[str, int], bool]:
        """Return new records by session, how far each segment was read, and whether more is there.

        A segment of a waiting session is read again from its cursor.
        """
        cursors = self._cursors or {}
        batch: dict[str, _Work] = {}
        ends: dict[str, int] = {}
        count = 0
        size = 0
        for segment in spool.segments(str(self.home)):
            start = cursors.get(segment.id, 0)
            again = segment.session in due
            if segment.size <= start:
                self._sizes[segment.id] = segment.size  # read by a worker before this one
                continue
            if not again and self._sizes.get(segment.id) == segment.size:
                continue
            if count >= BATCH_RECORDS or size >= BATCH_BYTES:
                return batch, ends, True
            end = start
            for item in spool.iter_records(segment.path, start):
                end = item.end
                if isinstance(item, spool.Damage):
                    spool.quarantine(str(self.home), item)
                    _LOG.warning(
                        "a damaged record of %d bytes was set aside", item.end - item.offset
                    )
                    continue
                one = batch.setdefault(segment.session, _Work(segment.session))
                one.records.append(item)
                one.segments[id(item)] = segment.id
                count += 1
                size += item.end - item.offset
                if count >= BATCH_RECORDS or size >= BATCH_BYTES:
                    break
            else:
                self._sizes[segment.id] = segment.size
            ends[segment.id] = end
        return batch, ends, False

    def _survey(self, store: Store) -> list[tuple[str, str]]:
        """Return (session, transcript) of sessions whose transcripts grew without a hook's word.

        Done once per process: a session whose client was killed, or whose hooks could not write,
        is completed from its transcript by the next worker that runs for whatever reason. So is
        one that no hook ever told of, if its transcript lies beside a known one and is younger
        than the store.
        """
        now = self._now()
        since = now - timedelta(days=SURVEY_DAYS)
        cursors = self._cursors or {}
        found: dict[str, str] = {}
        folders: set[Path] = set()
        for session, _ in store.sessions(limit=500, include_archived=True):
            if not session.transcript_path or (session.updated_at or now) < since:
                continue
            folders.add(Path(session.transcript_path).parent)
            if _size(session.transcript_path) > cursors.get(_size_key(session.transcript_path), 0):
                found[session.id] = session.transcript_path
        born = store.meta("born")
        for folder in folders if born and self.settings.capture else ():
            for path in _younger(folder, float(born)):
                off_record = (self.home / "turns" / f"{path.stem}.internal").exists()
                known = _size_key(str(path)) in cursors or off_record
                if not known and spool.session_name(path.stem):
                    found.setdefault(path.stem, str(path))
        return list(found.items())

    def _gather(
        self,
        batch: dict[str, _Work],
        survey: Iterable[tuple[str, str]],
        due: dict[str, str],
        *,
        final: bool,
    ) -> list[_Work]:
        """Put together, per session and in order of their first record, all that is new."""
        work = dict(sorted(batch.items(), key=lambda pair: pair[1].records[0].at_ns))
        for one in work.values():
            paths_said = [path for record in one.records if (path := _path_of(record))]
            one.transcript_path = paths_said[-1] if paths_said else ""
        for session_id, path in [*survey, *due.items()]:
            one = work.setdefault(session_id, _Work(session_id))
            one.transcript_path = one.transcript_path or path
        left_out = _left_out(self.home) if work else {}
        for one in work.values():
            self._read_transcript(one, final=final)
            _drop_left_out(one, left_out)
            for record in one.records:
                reconcile.said(record, _redact)  # what takes long is remembered: no lease is held
        return [one for one in work.values() if one.records or one.readable]

    def _read_transcript(self, one: _Work, *, final: bool) -> None:
        if not one.transcript_path:
            return
        key = _cursor_key(one.transcript_path)
        tail = self._tails.get(key)
        if tail is None:
            tail = self._tails[key] = _Tail((self._cursors or {}).get(key, 0))
        try:
            lines = read_lines(one.transcript_path, tail.read_to, TRANSCRIPT_BYTES)
        except OSError:
            return
        one.readable = True
        one.complete = lines.at_end
        folded = fold(
            lines.lines,
            None if lines.restarted else tail.carry,
            end=lines.next_offset,
            redact=_redact,
            flush=final and one.complete,
        )
        if _is_own(folded.messages):
            one.messages, one.open = (), frozenset()
        else:
            one.messages, one.open = folded.messages, folded.open
            one.titles, one.summaries = folded.titles, folded.summaries
        one.facts, one.checkpoint, one.read_to = folded.facts, folded.checkpoint, lines.next_offset
        tail.read_to, tail.carry = lines.next_offset, folded.carry
        if lines.bad:
            _LOG.info("%d unreadable lines of a transcript were passed over", lines.bad)

    # -- storing, behind the lease

    def _store(
        self, store: Store, work: list[_Work], ends: dict[str, int], *, final: bool
    ) -> tuple[int, set[str]]:
        """Store one batch in one transaction; only when it is committed do its cursors hold here.

        Returns how many messages are new and which scopes have changed.
        """
        cursors = dict(ends)
        waiting = {k: v for k, v in self._waiting.items() if k not in {w.session_id for w in work}}
        touched: set[str] = set()
        stored = 0
        with store.transaction(Author(Channel.HOOK), now=self._now()) as txn:
            for one in work:
                plan = self._plan(store, one, final=final)
                if plan.waiting or plan.unfinished:
                    waiting[one.session_id] = _Wait(
                        one.transcript_path,
                        plan.again_at_ns or self._clock_ns(),
                        _size(one.transcript_path),
                    )
                _hold_back(cursors, plan.waiting, one)
                count = self._store_session(store, txn, one, plan, touched)
                stored += count
                if one.readable and not plan.unfinished:
                    cursors[_cursor_key(one.transcript_path)] = one.checkpoint
                    cursors[_size_key(one.transcript_path)] = one.read_to
            known = self._cursors or {}
            txn.set_cursors({key: at for key, at in cursors.items() if known.get(key) != at})
        known.update(cursors)
        self._cursors = known
        self._waiting = waiting
        return stored, touched

    def _plan(self, store: Store, one: _Work, *, final: bool) -> reconcile.Plan:
        messages = [replace(message, session_id=one.session_id) for message in one.messages]
        known = store.known_messages(one.session_id)
        return reconcile.plan(
            one.session_id,
            known=store.unsealed(known, _digests(messages, one.records)),
            elsewhere=store.known_uuids(message.uuid for message in messages),
            messages=messages,
            growing=one.open,
            records=one.records,
            now_ns=self._clock_ns(),
            final=final,
            complete=one.complete,
            redact=_redact,
        )

    def _store_session(
        self,
        store: Store,
        txn: Transaction,
        one: _Work,
        plan: reconcile.Plan,
        touched: set[str],
    ) -> int:
        """Store what a plan says about a session; returns the number of new messages."""
        before = store.session(one.session_id)
        if before is None and not plan.store:
            return 0  # a start without a turn, or an end of something that never began
        scope = before.project if before is not None else self._claim(store, txn, one)
        if scope in {project.scope for project in store.projects() if project.excluded}:
            # The hook did not know this folder (a worktree elsewhere): from now on it does.
            projects.tell_hook(store, self.home, also={r.dir for r in one.records if r.dir})
            return 0
        title = self._title(store, one)
        outcome = txn.put_session(_session(one, plan, scope, title))
        turns = txn.put_messages(one.session_id, plan.store, scope)
        amended: dict[int, dict[str, Any]] = {}
        for amendment in plan.amend:
            amended.setdefault(amendment.turn, {}).update(amendment.changes)
        if amended:
            txn.amend_messages(one.session_id, amended)
        self._store_summary(store, txn, one, scope, title)
        for message, turn in zip(plan.store, turns, strict=True):
            if turn and message.role == "user":
                typed = message.uuid in plan.typed
                folder = _folder(one, message)
                touched |= self._obey(store, txn, message, turn, scope, folder, typed=typed)
        if plan.store or plan.amend or outcome.verb != "unchanged":
            touched.add(scope)
        return sum(1 for turn in turns if turn)

    def _claim(self, store: Store, txn: Transaction, one: _Work) -> str:
        folders = [record.dir for record in one.records if record.dir]
        if one.facts is not None and one.facts.cwd:
            folders.append(one.facts.cwd)
        folders += [str(r.event["cwd"]) for r in one.records if isinstance(r.event.get("cwd"), str)]
        return projects.claim(store, txn, folders[0] if folders else str(Path.home()))

    def _title(self, store: Store, one: _Work) -> str:
        """Return the latest title; one that a person gave beats one the client made up.

        What the client makes up says what was said: it goes with a message that was taken out.
        """
        custom = [title.text for title in one.titles if title.custom]
        made = [title.text for title in one.titles if not title.custom]
        if made and not custom and _is_withdrawn(store, one.session_id, made[-1]):
            return ""
        return (custom or made or [""])[-1]

    def _store_summary(
        self, store: Store, txn: Transaction, one: _Work, scope: str, title: str
    ) -> None:
        """Keep a real summary of the session, never a made-up one: compaction's beats a title."""
        from hypatia_mem.store import sources

        named = any(each.custom and each.text == title for each in one.titles)
        source = sources.NAMED if named else "title"
        if one.summaries:
            txn.put_summary(one.session_id, one.summaries[-1], "compaction", scope)
        elif title and store.producer_of(f"session-{one.session_id}") in ("", "title", source):
            txn.put_summary(one.session_id, title, source, scope)

    def _obey(
        self,
        store: Store,
        txn: Transaction,
        message: Message,
        turn: int,
        scope: str,
        folder: str,
        *,
        typed: bool,
    ) -> set[str]:
        """Do what a prompt asks to remember or to forget, in the transaction that stores it.

        It holds for the project of ``folder``, where the client ran: a session can be resumed
        elsewhere. ``scope`` is the session's, for where that is not known.

        Returns the scopes whose briefs are no longer true.
        """
        if not may_be_request(message.text.encode("utf-8", "replace")):
            return set()
        request = immediate.parse(message.text)
        if request is None:
            return set()
        channel = Channel.HOOK_PROMPT if typed else Channel.TRANSCRIPT
        author = Author(channel, session_id=message.session_id, turn=turn)
        if folder:
            scope = projects.claim(store, txn, folder)
        with txn.acting(author, said_at=message.at):
            if request.verb == "remember":
                scopes = (GLOBAL_SCOPE,) if request.is_global else (scope,)
                curate.remember_in(
                    txn, request.text, kind=request.kind, scopes=scopes, author=author
                )
                return set(scopes)
            plan = curate.plan_forget(curate.forgettable(store, scope), request.text)
            if plan.chosen:
                curate.leave_index(self.home, store, plan.chosen)
                curate.forget_in(txn, plan)
                return {GLOBAL_SCOPE}  # what was forgotten may have been told everywhere
        return set()

    def _derive(self) -> bool:
        """Bring index and briefs to what the store says; both can wait, so nothing is raised.

        New turns go first: what is left of a long index is done after them. Tells whether any of
        it was done.
        """
        if time.monotonic() < self._derive_at and self._failed:
            return False
        scopes = self._stale
        if scopes is not None and GLOBAL_SCOPE in scopes:
            scopes = None  # every brief tells what is global
        until = time.monotonic() + DERIVE_SECONDS

        def stop() -> bool:
            return self.has_work() or time.monotonic() > until

        self._derive_at = until
        try:
            whole = deriving.derive(
                self.home, scopes=scopes, limit=self.settings.brief_max_units, stop=stop
            )
        except (IndexUnavailable, StoreBusy, OSError) as error:
            _LOG.info("index or briefs follow later (%s)", type(error).__name__)
            self._failed = True
            return False
        self._stale, self._behind, self._failed = set(), not whole, False
        return True

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock_ns() / 1e9, UTC).replace(tzinfo=None)


def keep_house(home: Path, settings: Settings, *, now: datetime, beat: Callable[[], None]) -> None:
    """Make a snapshot when one is due, then drop spool segments that it holds and nobody needs.

    ``beat`` is called between steps, so that a long one is not taken for a hung worker.
    """
    from hypatia_mem.store import snapshot
    from hypatia_mem.store.connection import open_store

    newest = snapshot.newest_verified(home)
    with open_store(home, write=False) as store:
        seq, wanted = store.ledger_seq(), store.meta("snapshot_wanted")
    due = newest is None or now - newest.made_at >= timedelta(hours=settings.snapshot_every_hours)
    asked = newest is not None and wanted.isdigit() and int(wanted) > newest.seq
    if seq and (newest is None or newest.seq != seq) and (due or asked):
        newest = snapshot.make_snapshot(home)
        beat()
    if newest is None:
        return
    before = (now - timedelta(days=settings.spool_keep_days)).timestamp()
    gone: list[str] = []
    for segment in spool.segments(str(home)):
        held = newest.cursors.get(segment.id, 0) >= segment.size
        if held and Path(segment.path).stat().st_mtime < before and spool.remove_segment(segment):
            gone.append(segment.id)
    if gone:
        author = Author(Channel.WORKER)
        with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
            txn.delete_cursors(gone)
        _LOG.info("%d spool segments that a verified snapshot holds were removed", len(gone))


# ----------------------------------------------------------------------------------------------


def _session(one: _Work, plan: reconcile.Plan, scope: str, title: str) -> Session:
    facts = one.facts or Facts()
    ends = [r for r in one.records if r.event.get("hook_event_name") == "SessionEnd"]
    times = [_at(record) for record in one.records] + [message.at for message in plan.store]
    client = next((r.client for r in one.records if r.client), "")
    return Session(
        id=one.session_id,
        project=scope,
        title=title,
        user=_user(),
        agent="claude-code",
        client=client or (f"claude-code {facts.version}" if facts.version else ""),
        cwd=next((r.dir for r in one.records if r.dir), "") or facts.cwd,
        git_branch=facts.git_branch,
        transcript_path=one.transcript_path,
        forked_from=plan.forked_from or facts.forked_from,
        started_at=min((t for t in [*times, facts.started_at] if t), default=None),
        updated_at=max((t for t in [*times, facts.updated_at] if t), default=None),
        ended_at=_at(ends[-1]) if ends else None,
        end_reason=str(ends[-1].event.get("reason") or "") if ends else "",
    )


def _folder(one: _Work, message: Message) -> str:
    """Return where the client ran when a prompt was typed, ``""`` when no hook says so."""
    folders = {str(r.event.get("prompt_id") or ""): r.dir for r in one.records if r.dir}
    same = set(folders.values())
    return folders.get(message.prompt_id) or (same.pop() if len(same) == 1 else "")


def _is_withdrawn(store: Store, session_id: str, title: str) -> bool:
    """Tell whether a title that the client made stands on messages that are not there any more."""
    from hypatia_mem.store import sources

    name = f"session-{session_id}"
    return sources.lacks_messages(store, session_id) or sources.was_withdrawn(store, name, title)


def _digests(messages: Iterable[Message], records: Iterable[spool.Record]) -> Iterator[str]:
    """Yield the digests of all the words that transcript and hooks bring."""
    yield from (reconcile.digest(message.text) for message in messages)
    for record in records:
        said = reconcile.said(record, _redact)
        if said is not None:
            yield reconcile.digest(said.text)


def _hold_back(cursors: dict[str, int], waiting: Iterable[spool.Record], one: _Work) -> None:
    """Keep each segment's cursor in front of its first record that waits."""
    segments = one.segments
    for record in waiting:
        key = segments[id(record)]
        cursors[key] = min(cursors.get(key, record.offset), record.offset)


@lru_cache(maxsize=12 * BATCH_RECORDS)
def _redact(text: str) -> str:
    """Redact a text of the transcript by the hook's rules; most have nothing to redact."""
    if not may_hold_secret(text.encode("utf-8", "replace")):
        return text
    from hypatia_mem.capture.redact import redact_text

    return redact_text(text)


def _at(record: spool.Record) -> datetime:
    return datetime.fromtimestamp(record.at_ns / 1e9, UTC).replace(tzinfo=None)


def _path_of(record: spool.Record) -> str:
    path = record.event.get("transcript_path")
    return path if isinstance(path, str) else ""


def cursors_of(path: str) -> tuple[str, str]:
    """Return the keys of a transcript's cursors: how far it was read, and how large it was then."""
    return _cursor_key(path), _size_key(path)


def _cursor_key(path: str) -> str:
    return "t:" + hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()[:32]


def _size_key(path: str) -> str:
    """The cursor that says how large a transcript was when it was last read to its end."""
    return "s" + _cursor_key(path)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _younger(folder: Path, born: float) -> list[Path]:
    """Return transcripts of a folder that came to be after ``born`` (Unix seconds)."""
    try:
        found = [path for path in folder.glob("*.jsonl") if path.stat().st_mtime > born]
    except OSError:
        return []
    return [path for path in found if _first_time(path) > born]


def _first_time(path: Path) -> float:
    """Return when the first dated line of a transcript was written, 0 when nothing says so."""
    try:
        lines = read_lines(path, 0, 64 * 1024).lines
    except OSError:
        return 0.0
    for _, line in lines:
        stamp = line.get("timestamp")
        if isinstance(stamp, str):
            try:
                return datetime.fromisoformat(stamp).timestamp()
            except ValueError:
                continue
    return 0.0


def _left_out(home: Path) -> dict[str, set[str]]:
    """Return the prompts that are not to be kept, by the session in which they were typed."""
    found: dict[str, set[str]] = {}
    for path in (home / paths.TURNS).glob(f"*{paths.LEFT_OUT}"):
        with contextlib.suppress(OSError):
            found[path.stem] = set(path.read_text("ascii", "replace").split())
    return found


def _drop_left_out(one: _Work, left_out: Mapping[str, set[str]]) -> None:
    """Take out of a transcript what was said while the person had capturing switched off.

    A fork repeats the turns of another session, so all prompts count. What the client made of the
    whole session (its title, a compaction's summary) tells of those turns too.
    """
    prompts = set().union(*left_out.values()) if left_out else set()
    if one.session_id in left_out:
        prompts.add("")
    kept = tuple(message for message in one.messages if message.prompt_id not in prompts)
    if len(kept) < len(one.messages) or one.session_id in left_out:
        one.messages, one.summaries = kept, ()
        one.titles = tuple(title for title in one.titles if title.custom)


def _is_own(messages: Iterable[Message]) -> bool:
    """Tell whether a session is one of our own: its first prompt carries the marker (I6)."""
    first = next((message for message in messages if message.role == "user"), None)
    return first is not None and MARKER in first.text.splitlines()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
