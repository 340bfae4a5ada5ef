"""A unit that stands in is made better: by the model that did not answer then, or by an agent.

The entry keeps its name and its history; only what the messages of the piece say gets in, and only
a unit that is sure takes the place of one that is believed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.memory.extract import judging, keeping
from hypatia_mem.memory.extract.asking import Judge, job_kind
from hypatia_mem.memory.extract.keeping import Kept
from hypatia_mem.memory.extract.kinds import Kind, kind_of
from hypatia_mem.memory.extract.topics import Said, exchanges_of
from hypatia_mem.memory.extract.units import WorkUnit
from hypatia_mem.memory.summarise import words
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed
from hypatia_mem.memory.summarise.units import INFERRED
from hypatia_mem.model import Author, Entry, Statement, Trust

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = ["Piece", "ask_again", "piece_of", "submit"]

_TICKET = re.compile(r"\A(?P<session>.+):(?P<first>\d{1,9})-(?P<last>\d{1,9})\Z")
_SAMPLE = 1_500  # messages that say how rare a word is
_AT_ONCE = 20  # pieces that a pass asks about again


@dataclass(frozen=True, slots=True)
class Piece:
    """A finished piece of work: its turns, what was said in them, and the unit kept of it."""

    session_id: str
    first: int
    last: int
    scopes: tuple[str, ...]
    said: tuple[Said, ...]
    unit: Entry | None

    @property
    def ticket(self) -> str:
        """Return its name by its turns."""
        return f"{self.session_id}:{self.first}-{self.last}"

    @property
    def kind(self) -> Kind:
        """Return the kind it has by its shape."""
        return kind_of(exchanges_of(self.said))

    @property
    def day(self) -> str:
        """Return when it was, as ``2026-11-30``."""
        return f"{self.said[0].at:%Y-%m-%d}"


def piece_of(store: Store, target: str) -> Piece | None:
    """Return the piece that a unit's name or a ticket (``s-1:3-9``) means, None without words.

    What is forgotten is blanked in it, what is withheld is not among it. Raises NotFound.
    """
    from hypatia_mem.store import lessons

    match = _TICKET.match(target)
    if match:
        session, first, last = match["session"], int(match["first"]), int(match["last"])
        unit = next(iter(lessons.units_in(store, session, first, last)), None)
    else:
        unit = store.entry(target)
        turns = lessons.turns_of(store, [target]).get(target) if unit else None
        if unit is None or turns is None:
            raise NotFound(
                f"{target[:60]!a} is no work unit and no piece of a session",
                hint="List them: hypatia-mem extract due",
            )
        session, first, last = turns
    return _read(store, session, first, last, unit)


def _read(store: Store, session: str, first: int, last: int, unit: Entry | None) -> Piece | None:
    from hypatia_mem.memory.extract.running import said_of
    from hypatia_mem.store import graves, lessons

    told = lessons.said_since(store, session, first - 1, max(0, last - first + 1))
    there = [one for one in told if (one.turn or 0) <= last]
    stored = store.entry(f"msg-{session}-{there[0].turn}") if there else None
    scopes = stored.scopes if stored is not None else ()
    said = tuple(said_of(there, session, scopes, graves.load(store)))
    return Piece(session, first, last, scopes, said, unit) if said and scopes else None


# --- by the model ---------------------------------------------------------------------------------


def ask_again(
    home: Path, judge: Judge, scopes: Sequence[str] | None, beat: Callable[[], None]
) -> list[Kept]:
    """Ask the model about what it did not answer, and is due to be tried again."""
    from hypatia_mem.store import jobs, summaries
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        judge.look(store)
        due = [
            one
            for one in jobs.jobs(store).values()
            if one.kind == job_kind(judge.settings)
            and one.state is jobs.JobState.WAITING
            and (one.next_at is None or one.next_at <= judge.now)
            and (scopes is None or set(one.scopes) & set(scopes))
        ][:_AT_ONCE]
        idf = words.idf_of(summaries.sample(store, _SAMPLE)) if due else {}
    kept: list[Kept] = []
    for job in due:
        if judge.paused or judge.stopped:
            break
        beat()
        one = _again(home, judge, job.id, job.scopes, idf)
        if one is not None:
            kept.append(one)
    return kept


def _again(
    home: Path, judge: Judge, ticket: str, scopes: Sequence[str], idf: Mapping[str, float]
) -> Kept | None:
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        piece = piece_of(store, ticket)
    if piece is None:  # its messages are gone
        with (
            open_store(home, write=True) as store,
            store.transaction(judge.author, now=judge.now) as txn,
        ):
            jobs.delete_jobs(txn, [ticket])
        return None
    items = judging.items_of(piece.said, piece.session_id)
    verdict = judge.judge(items, piece.kind, None, idf, piece.day)
    if judge.stopped:
        return None
    with open_store(home, write=True) as store:
        if piece_of(store, ticket) != piece:
            return None  # changed while the model was waited for: it is asked once more
        who = replace(judge.author, producer=verdict.producer, session_id=piece.session_id)
        with store.transaction(who, now=judge.now) as txn:
            judge.note(txn, verdict, ticket, scopes)
            unit = verdict.unit
            if verdict.failure is not None or unit is None:
                return None
            return _refined(txn, piece, unit, idf) if unit.sure else None


# --- by an agent ----------------------------------------------------------------------------------


def submit(
    home: Path, target: str, text: str, *, producer: str, author: Author, now: datetime
) -> Kept:
    """Store what an agent judged of a piece of work (a unit's name, or a ticket).

    Raises NotFound, Conflict, UsageError, and SummaryFailed when it may not be stored; nothing has
    changed then.
    """
    from hypatia_mem.store import lessons, summaries
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        piece = piece_of(store, target)
        idf = words.idf_of(summaries.sample(store, _SAMPLE))
    if piece is None:
        raise NotFound(f"nothing is there any more of what was said in {target[:60]!a}")
    items = judging.items_of(piece.said, piece.session_id)
    unit = judging.judged(judging.read(text), items, idf, piece.day)
    if unit is None:
        raise UsageError(
            "a trivial piece of work is not handed in",
            hint="Leave it. To withdraw what was kept of it: hypatia-mem delete NAME",
        )
    if piece.unit is not None and piece.unit.trust != Trust.CANDIDATE and not unit.sure:
        raise _unsure(unit)
    who = replace(author, producer=f"{producer}#{judging.DIGEST}", session_id=piece.session_id)
    with (
        open_store(home, write=True) as store,
        store.transaction(who, now=now) as txn,
    ):
        if piece_of(store, target) != piece:
            raise Conflict(
                "what this stands on has changed meanwhile; nothing was stored",
                hint=f"Read it again: hypatia-mem extract due {target}",
            )
        kept = _refined(txn, piece, unit, idf)
        if kept is None:
            raise Conflict("it was not stored: it was forgotten before, or a person wrote it")
        looked = lessons.looked_at(store, piece.session_id)
        if piece.first - 1 <= looked < piece.last:
            txn.set_cursor(lessons.CURSOR + piece.session_id, piece.last)
    return kept


def _unsure(unit: WorkUnit) -> SummaryFailed:
    lines = [one for one in unit.content.splitlines() if one.endswith(INFERRED)]
    told = "; ".join(one.removeprefix("- ").removesuffix(INFERRED)[:80] for one in lines[:3])
    if lines:
        return SummaryFailed(
            FailureKind.INVENTED,
            f"no message says: {told}",
            hint="Leave it out, or say it in the messages' words; what was kept stays as it is.",
        )
    return SummaryFailed(
        FailureKind.MALFORMED,
        "it is not sure enough to take the place of what is kept, which stays as it is",
        hint="Fill the headings of its kind, name something (a path, a command, a value), and say "
        "SURE: yes.",
    )


def _refined(
    txn: Transaction, piece: Piece, unit: WorkUnit, idf: Mapping[str, float]
) -> Kept | None:
    """Put a unit in the place of the one that is there, or store it as a new one."""
    from hypatia_mem.store import lessons

    if piece.unit is None:
        known = [
            (one.name, one.content) for one in lessons.known_units(txn.store, list(piece.scopes))
        ]
        return keeping.put(txn, piece.session_id, piece.scopes, unit, known, idf)
    name, tags = piece.unit.name, keeping.tags_of(unit)
    outcome = txn.update_entry(name, content=unit.content, tags=tags)
    if outcome.verb == "refused":
        return None
    for source in unit.sources:
        txn.put_statement(Statement(name, "derivedFrom", source, scopes=piece.unit.scopes))
    return Kept(name, str(unit.kind), "refined", "", str(piece.unit.trust), tags)
