"""Hook records against the transcript: which messages are new, which are known, which must wait.

The transcript is the witness: what it shows is stored under its line's id, in its order. A hook
record is matched to a message the transcript shows, or showed before; one that finds none waits a
grace for its line (the client writes within a tenth of a second) and then becomes a message of its
own, under an id made of the record itself, so that reading the record again changes nothing. When
the line turns up after all, the stored message is bound to it instead of a second one being added.

Which record is about which message is decided in ``matching``. All of this is pure.
"""

from __future__ import annotations

from collections.abc import (
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from hypatia_mem.memory.intake.matching import (
    CLOSE,
    ROLES,
    SAME_INSTANT,
    Known,
    Redact,
    Said,
    Slot,
    Word,
    digest,
    fresh_slot,
    grouped,
    known_slot,
    pair,
    prompt_id_of,
    repeats,
    said,
    same_words,
    time_of,
    word_of,
)
from hypatia_mem.model import Message

if TYPE_CHECKING:
    from hypatia_mem.capture.spool import Record

__all__ = ["Amendment", "Known", "Plan", "Said", "digest", "plan", "said"]

GRACE_NS = 3_000_000_000
QUEUED_GRACE_NS = 60_000_000_000  # a prompt typed mid-turn gets its line when the turn takes it in
SETTLE_NS = 1_000_000_000  # after a session's end; its transcript was whole by then every time
OVERLAP_NS = 1_000_000_000  # hooks that run at the same time, on a machine that is busy
HOOK_ONLY = "hook-only"
PARTIAL = "partial"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  naive UTC, as everywhere in the program


@dataclass(frozen=True, slots=True)
class Amendment:
    """A change to a stored message: fields of ``Message`` by name."""

    turn: int
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do about one session.

    ``store`` in order; ``waiting`` are the records that must be read again, not before
    ``again_at_ns``; ``unfinished`` tells that a message of the transcript was held back because
    it may still grow (it comes again with the next fold); ``typed`` are the ids of messages that
    a hook saw, so that their words are a person's own; ``repeated`` are the (session, turn) of
    those lines that it repeats of other sessions. Every record not in ``waiting`` is dealt with.
    """

    store: tuple[Message, ...] = ()
    amend: tuple[Amendment, ...] = ()
    waiting: tuple[Record, ...] = ()
    unfinished: bool = False
    repeated: tuple[tuple[str, int], ...] = ()
    typed: frozenset[str] = frozenset()
    again_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class _Times:
    """When things happened, by prompt id where that is the key."""

    prompts: Mapping[str, Sequence[datetime]]
    stops: Mapping[str, Sequence[int]]  # Unix nanoseconds
    turns: Sequence[tuple[datetime, str]]  # prompts shown in a turn of their own, latest first


def plan(  # noqa: PLR0913  each is one fact, and all but the first go by name
    session_id: str,
    *,
    known: Sequence[Known],
    elsewhere: Mapping[str, tuple[str, int]],
    messages: Sequence[Message],
    growing: Collection[str],
    records: Iterable[Record],
    now_ns: int,
    final: bool = False,
    grace_ns: int = GRACE_NS,
    complete: bool = True,
    redact: Redact | None = None,
) -> Plan:
    """Decide about one session.

    ``known``: its stored messages. ``elsewhere``: (session, turn) of those transcript ids that are
    stored under any session. ``messages``, ``growing``: what its transcript shows and which of
    that may still grow. ``records``: its hook records, those that waited and the new ones.
    ``now_ns``: Unix nanoseconds. ``final``: nothing more will come, so nothing waits.
    ``complete``: the transcript has been read to its end; while it has not, no record is taken for
    one that no line will show, unless what was read is past its place. ``redact`` is what ``fold``
    was given: the two texts are only alike after it.
    """
    return _Planner(session_id, known, records, now_ns, grace_ns, redact).plan(
        messages, elsewhere, growing, final=final, complete=complete
    )


class _Planner:
    """One session's decisions, in the order in which they depend on each other."""

    def __init__(
        self,
        session_id: str,
        known: Sequence[Known],
        records: Iterable[Record],
        now_ns: int,
        grace_ns: int,
        redact: Redact | None,
    ) -> None:
        self.session_id = session_id
        self.now_ns = now_ns
        self.grace_ns = grace_ns
        self.records = _arrived(records)
        self.own = {one.uuid: one for one in known}
        self.slots = [known_slot(one) for one in known]
        self.names = {slot.uuid: slot for slot in self.slots}
        self.words = [
            word_of(one) for record in self.records if (one := said(record, redact)) is not None
        ]
        self.amend: list[Amendment] = []
        self._times = _Times({}, {}, ())
        self.repeated: list[tuple[str, int]] = []

    def plan(
        self,
        messages: Sequence[Message],
        elsewhere: Mapping[str, tuple[str, int]],
        growing: Collection[str],
        *,
        final: bool,
        complete: bool,
    ) -> Plan:
        """Match, hold back what may change, and put the rest in order."""
        shown = list(self._of_session(messages, elsewhere))
        fresh = self._bind([one for one in shown if one.uuid not in self.own])
        self._refresh(shown, growing)
        self.slots += [fresh_slot(one) for one in fresh]
        self._match()
        settled_ns = self._settled_ns() if complete else 0
        ended = self._ended(complete=complete)
        finished = self._finished(shown, ended=ended)
        self._follow(shown, finished, growing, ended=ended or final)
        stored, held = self._hold(fresh, growing, finished, ended=ended or final)
        alone, waiting, again_at = self._alone(settled_ns, held, final=final, complete=complete)
        if held:
            again_at = _earliest(again_at, _ns(held[0]) + 2 * self.grace_ns)
        return Plan(
            store=_merged([_without_partial(one, finished) for one in stored], alone),
            amend=tuple(self.amend),
            waiting=waiting,
            unfinished=bool(held),
            repeated=tuple(self.repeated),
            typed=self._typed(alone),
            again_at_ns=again_at,
        )

    # -- the transcript's side

    def _of_session(
        self, messages: Sequence[Message], elsewhere: Mapping[str, tuple[str, int]]
    ) -> Iterator[Message]:
        """Pass over lines that a fork repeats from the session it came from."""
        for message in messages:
            place = elsewhere.get(message.uuid)
            if place is not None and place[0] != self.session_id:
                self.repeated.append(place)
            else:
                yield message

    def _bind(self, fresh: Sequence[Message]) -> list[Message]:
        """Bind what was stored from hooks to the lines that show it; return the other lines."""
        stored = [one for one in self.slots if not one.shown]
        if not stored or not fresh:
            return list(fresh)
        words = [
            Word(one.role, one.uuid, one.prompt_id, one.digest, one.at, slash=True)
            for one in stored
        ]
        places = [fresh_slot(message) for message in fresh]
        pair(words, places, taken=self.words)
        bound: set[str] = set()
        for slot, word in zip(stored, words, strict=True):
            if word.slot is None:
                continue
            message = fresh[places.index(word.slot)]
            bound.add(message.uuid)
            self.amend.append(_bound(slot, message))
            # From here on it is the transcript's message; ``names`` keeps the hook's name for it.
            self.own[message.uuid] = self.own[slot.uuid]
            slot.uuid = message.uuid
            slot.prompt_id = message.prompt_id or slot.prompt_id
            slot.digest = word.slot.digest
            slot.flags = word.slot.flags
        return [message for message in fresh if message.uuid not in bound]

    def _refresh(self, shown: Sequence[Message], growing: Collection[str]) -> None:
        """Match against what a stored message has become, not what it was when it was stored."""
        for message in shown:
            slot = self.names.get(message.uuid)
            if slot is None:
                continue
            slot.flags |= frozenset(message.flags)
            if message.uuid not in growing:  # else a restart may see half of it
                slot.digest = digest(message.text)

    def _finished(self, shown: Sequence[Message], *, ended: bool) -> frozenset[str]:
        """Return the ids of messages that a Stop, or the session's end, says are whole.

        The Stop of a turn finishes what the turn said up to the message it quotes.
        """
        if ended:
            return frozenset(one.uuid for one in shown)
        quoted = {
            word.slot.uuid
            for word in self.words
            if word.role == "assistant" and word.slot is not None
        }
        last: dict[str, int] = {}
        for number, message in enumerate(shown):
            if message.uuid in quoted:
                last[message.prompt_id] = number
        return frozenset(
            message.uuid
            for number, message in enumerate(shown)
            if number <= last.get(message.prompt_id, -1)
        )

    def _follow(
        self,
        shown: Sequence[Message],
        finished: Collection[str],
        growing: Collection[str],
        *,
        ended: bool,
    ) -> None:
        """Follow stored messages whose text, flags or parts went on after they were stored."""
        done = {one.turn for one in self.amend}
        for message in shown:
            stored = self.own.get(message.uuid)
            if stored is None or stored.turn in done:
                continue
            if message.uuid in growing and message.uuid not in finished and not ended:
                continue  # a restart may see half of it
            now = set(_without_partial(message, finished).flags)
            before = set(stored.flags)
            if PARTIAL not in before:
                now.discard(PARTIAL)
            flags = now | (before - {HOOK_ONLY, PARTIAL})
            if flags != before or stored.text_digest != digest(message.text):
                changes = {
                    "text": message.text,
                    "parts": message.parts,
                    "tokens": message.tokens,
                    "flags": tuple(sorted(flags)),
                }
                self.amend.append(Amendment(stored.turn, changes))

    def _hold(
        self,
        fresh: Sequence[Message],
        growing: Collection[str],
        finished: Collection[str],
        *,
        ended: bool,
    ) -> tuple[list[Message], list[Message]]:
        """Return what can be stored, and what cannot: a message that may still grow.

        What comes behind that one is held too, for the order's sake.
        """
        for number, message in enumerate(fresh):
            if message.uuid not in growing or message.uuid in finished or ended:
                continue
            if self._young(_ns(message), 2 * self.grace_ns):
                return list(fresh[:number]), list(fresh[number:])
        return list(fresh), []

    # -- the hooks' side

    def _match(self) -> None:
        """Give each record its message, and tell records that say the same thing again."""
        earlier: dict[Hashable, list[Word]] = {}
        for word in self.words:
            before = earlier.setdefault(same_words(word), [])
            word.repeat = any(repeats(word, other) for other in before)
            before.append(word)
            slot = self.names.get(word.uuid)
            if slot is not None:  # the same record, read again
                word.slot = slot
                slot.claimed = True
        pair([word for word in self.words if not word.repeat], self.slots, taken=())
        stored = grouped(self.slots, same_words)
        for word in self.words:
            if word.slot is None and not word.repeat:
                others = stored.get(same_words(word), ())
                word.repeat = any(repeats(word, slot) for slot in others)

    def _alone(
        self, settled_ns: int, held: Sequence[Message], *, final: bool, complete: bool
    ) -> tuple[list[Message], tuple[Record, ...], int | None]:
        """Make messages of the records no line will show; return them and who waits until when."""
        self._times = self._when()
        alone: list[Message] = []
        waiting: list[Record] = []
        again_at: int | None = None
        for record in self.records:
            if final or not _is_mute(record):
                continue
            if self._young(record.at_ns, self.grace_ns) and not self._speaks(record):
                waiting.append(record)
                again_at = _earliest(again_at, record.at_ns + self.grace_ns)
        unstored = {message.uuid for message in held}
        for word in self.words:
            if word.said is None or word.repeat:
                continue
            record = word.said.record
            if word.slot is not None:
                if word.slot.uuid in unstored:
                    waiting.append(record)
                continue
            patience = self._patience(word)
            unread = not complete and patience > 0
            behind = unread or (bool(held) and held[0].at <= word.at)
            if record.at_ns <= settled_ns:
                patience = min(patience, settled_ns + SETTLE_NS - record.at_ns)
            if final or not (behind or self._young(record.at_ns, patience)):
                alone.append(_message(word.said, self.session_id))
            else:
                waiting.append(record)
                again_at = _earliest(again_at, record.at_ns + patience)
        return alone, tuple(waiting), again_at

    def _when(self) -> _Times:
        prompts: dict[str, list[datetime]] = {}
        everything: list[Slot | Word] = [*self.slots, *self.words]
        for one in everything:
            if one.role == "user":
                prompts.setdefault(one.prompt_id, []).append(one.at)
        stops: dict[str, list[int]] = {}
        for record in self.records:
            if record.event.get("hook_event_name") == "Stop":
                stops.setdefault(prompt_id_of(record), []).append(record.at_ns)
        turns = [
            (slot.at, slot.prompt_id)
            for slot in self.slots
            if slot.role == "user" and slot.shown and "queued" not in slot.flags
        ]
        return _Times(prompts, stops, sorted(turns, reverse=True))

    def _patience(self, word: Word) -> int:
        """Return how many nanoseconds a record may wait for its line, from its own time on."""
        if self._overtaken(word):
            return 0
        if word.role != "user" or not word.prompt_id or not self._is_queued(word):
            return self.grace_ns
        gaps = [at - _ns(word.at) for at in self._times.stops.get(word.prompt_id, ())]
        return min([QUEUED_GRACE_NS, *(gap + self.grace_ns for gap in gaps if gap > 0)])

    def _is_queued(self, word: Word) -> bool:
        """Tell whether the prompt came while the turn of its own id was still running."""
        earlier = (at < word.at for at in self._times.prompts.get(word.prompt_id, ()))
        stopped = (at <= _ns(word.at) for at in self._times.stops.get(word.prompt_id, ()))
        return any(earlier) and not any(stopped)

    def _overtaken(self, word: Word) -> bool:
        """Tell whether the transcript shows a later prompt: lines come in order, so none will."""
        later = takewhile(lambda turn: turn[0] > word.at + CLOSE, self._times.turns)
        if all(prompt_id == word.prompt_id for _, prompt_id in later):
            return False
        return word.role != "user" or not self._is_queued(word)

    def _speaks(self, record: Record) -> bool:
        """Tell whether the transcript already shows the message of a record without text."""
        role = ROLES[str(record.event.get("hook_event_name"))][0]
        return any(
            slot.role == role
            and slot.shown
            and slot.prompt_id == prompt_id_of(record)
            and abs(slot.at - time_of(record)) <= SAME_INSTANT
            for slot in self.slots
        )

    def _settled_ns(self) -> int:
        """Return the time up to which the transcript holds all it will ever hold.

        A client that ends, and one that starts anew, has written everything it had to write.
        """
        return max(
            (
                record.at_ns
                for record in self.records
                if record.event.get("hook_event_name") == "SessionEnd"
                or (
                    record.event.get("hook_event_name") == "SessionStart"
                    and record.event.get("source") in ("startup", "resume")
                )
            ),
            default=0,
        )

    def _ended(self, *, complete: bool) -> bool:
        last = self.records[-1].event.get("hook_event_name") if self.records else ""
        return complete and last == "SessionEnd"

    def _young(self, at_ns: int, patience_ns: int) -> bool:
        """Tell whether something is recent; what lies in the future is a clock that jumped."""
        return -patience_ns <= self.now_ns - at_ns < patience_ns

    def _typed(self, alone: Sequence[Message]) -> frozenset[str]:
        seen = {word.slot.uuid for word in self.words if word.slot is not None}
        return frozenset(seen | {one.uuid for one in alone})


def _message(one: Said, session_id: str) -> Message:
    return Message(
        session_id=session_id,
        uuid=one.uuid,
        role=one.role,
        text=one.text,
        at=one.at,
        prompt_id=one.prompt_id,
        flags=(HOOK_ONLY,),
    )


def _bound(slot: Slot, message: Message) -> Amendment:
    return Amendment(
        slot.turn,
        {
            "uuid": message.uuid,
            "parent_uuid": message.parent_uuid,
            "prompt_id": message.prompt_id or slot.prompt_id,
            "response_id": message.response_id,
            "text": message.text,
            "parts": message.parts,
            "tokens": message.tokens,
            "flags": message.flags,
        },
    )


def _without_partial(message: Message, finished: Collection[str]) -> Message:
    if message.uuid not in finished or PARTIAL not in message.flags:
        return message
    return replace(message, flags=tuple(flag for flag in message.flags if flag != PARTIAL))


def _merged(fresh: Sequence[Message], alone: Sequence[Message]) -> tuple[Message, ...]:
    """Put messages of hooks between those of the transcript, by time; each side's order stays."""
    merged = list(fresh)
    floor = 0
    for message in alone:
        before = [number for number, one in enumerate(merged) if one.at <= message.at]
        floor = max(floor, before[-1] + 1 if before else 0)
        merged.insert(floor, message)
        floor += 1
    return tuple(merged)


def _arrived(records: Iterable[Record]) -> list[Record]:
    """Return records in the order in which they happened.

    That is the spool's, for a clock may be set back; only hooks that ran at the same time may have
    been written the other way round, and those change places.
    """
    found: list[Record] = []
    for record in records:
        place = len(found)
        while place and 0 < found[place - 1].at_ns - record.at_ns <= OVERLAP_NS:
            place -= 1
        found.insert(place, record)
    return found


def _is_mute(record: Record) -> bool:
    """Tell whether a record's words had to be left out of the spool."""
    return record.redacted >= 2 and record.event.get("hook_event_name") in ROLES


def _ns(at: Message | datetime) -> int:
    moment = at.at if isinstance(at, Message) else at
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _earliest(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)
