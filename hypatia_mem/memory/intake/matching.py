"""Whether a hook record and a message of the transcript are the same.

They are when role and text are, and the prompt's id, or else the time. Text alone proves nothing:
people type "ok" all day. The id alone proves little: a prompt typed while the model works comes
with the running prompt's id (2.1.332), and a ``!`` command's answer with the one before it
(2.1.197). Matching is one to one, exact pairs first, so that a looser rule never takes what an
exact one would have. All of this is pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from hypatia_mem.memory.intake.blocks import BLANK, clean

if TYPE_CHECKING:
    from hypatia_mem.capture.spool import Record
    from hypatia_mem.model import Message

__all__ = [
    "CLOSE",
    "ROLES",
    "SAME_INSTANT",
    "Known",
    "Redact",
    "Said",
    "Slot",
    "Word",
    "digest",
    "fresh_slot",
    "grouped",
    "known_slot",
    "pair",
    "prompt_id_of",
    "repeats",
    "said",
    "same_words",
    "time_of",
    "word_of",
]

SAME_INSTANT = timedelta(seconds=2)
CLOSE = timedelta(seconds=1)
NEAR = timedelta(seconds=30)
FAR = timedelta(minutes=10)
NOTIFICATION = "<task-notification>"
HOOK = "hook:"
IMAGE = "[image]"
ROLES = {"UserPromptSubmit": ("user", "prompt"), "Stop": ("assistant", "last_assistant_message")}
Redact = Callable[[str], str]


class Known(Protocol):
    """What identifies a message that is stored already.

    ``text_digest`` is ``digest`` of the stored text, which is redacted.
    """

    turn: int
    role: str
    uuid: str
    prompt_id: str
    response_id: str
    text_digest: str
    at: datetime
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A hook record that carries somebody's words; ``text`` is redacted."""

    record: Record
    role: str
    text: str
    prompt_id: str
    at: datetime

    @property
    def uuid(self) -> str:
        """Return the id of the message this record makes if no line ever shows it."""
        data = f"{self.record.at_ns}\x1f{self.role}\x1f{self.text}".encode("utf-8", "replace")
        return f"{HOOK}{self.prompt_id}:{self.role}:{hashlib.sha256(data).hexdigest()[:16]}"


@dataclass(slots=True, eq=False)
class Slot:
    """A message, stored or about to be, that a record may be about."""

    role: str
    uuid: str
    prompt_id: str
    digest: str
    at: datetime
    flags: frozenset[str]
    turn: int = 0  # 0: about to be stored
    claimed: bool = False

    @property
    def shown(self) -> bool:
        """Tell whether the transcript shows it."""
        return not self.uuid.startswith(HOOK)


@dataclass(slots=True, eq=False)
class Word:
    """What looks for its message: a record's words, or a message only a hook has seen."""

    role: str
    uuid: str
    prompt_id: str
    digest: str
    at: datetime
    slash: bool = False  # begins with a slash; for a stored message nobody knows, so True
    said: Said | None = None  # None: a stored message
    slot: Slot | None = None
    repeat: bool = False


_One = TypeVar("_One", Word, Slot)
_Claims: TypeAlias = Mapping[Hashable, Sequence[Word]]


def digest(text: str) -> str:
    """Return what the store keeps as a message's ``text_digest``."""
    stored = clean(text.replace("\0", "\u2400"))
    return hashlib.sha256(stored.encode("utf-8", "replace")).hexdigest()


def said(record: Record, redact: Redact | None = None) -> Said | None:
    """Return the words of a record, None when it carries none that count.

    A finished background task submits its notification as a prompt, and no field says so.
    """
    role, key = ROLES.get(str(record.event.get("hook_event_name")), ("", ""))
    text = record.event.get(key) if key else None
    if not role or not isinstance(text, str):
        return None
    if role == "user" and not text and record.redacted < 2:
        text = IMAGE  # the hook sees the text blocks only: none came with the picture
    if not text.strip() or (role == "user" and text.lstrip().startswith(NOTIFICATION)):
        return None
    text = redact(clean(text)) if redact else clean(text)
    if role == "assistant":
        text = text.strip(BLANK)
    return Said(record, role, text, prompt_id_of(record), time_of(record))


def pair(words: Sequence[Word], slots: Sequence[Slot], *, taken: Sequence[Word]) -> None:
    """Pair words and messages one to one, exact pairs first.

    ``taken`` are other words with a claim of their own on some of the messages.
    """
    for rule, key in (
        (_exact, same_words),
        (_displaced, _same_text),
        (_rewritten, _same_prompt),
    ):
        places = grouped(slots, key)
        claims = grouped([one for one in (*words, *taken) if one.prompt_id], same_words)
        for word in words:
            if word.slot is not None:
                continue
            fits = [
                slot
                for slot in places.get(key(word), ())
                if not slot.claimed and rule(word, slot, claims)
            ]
            if fits:
                word.slot = min(fits, key=lambda slot: abs(slot.at - word.at))
                word.slot.claimed = True


def same_words(one: Word | Slot) -> Hashable:
    """Return the key under which two with the same words of the same prompt meet."""
    return one.role, one.prompt_id, one.digest


def _same_text(one: Word | Slot) -> Hashable:
    return one.role, one.digest


def _same_prompt(one: Word | Slot) -> Hashable:
    return one.role, one.prompt_id


def grouped(ones: Iterable[_One], key: Callable[[_One], Hashable]) -> dict[Hashable, list[_One]]:
    """Return lists of those with the same key, in order."""
    groups: dict[Hashable, list[_One]] = {}
    for one in ones:
        groups.setdefault(key(one), []).append(one)
    return groups


def _exact(word: Word, slot: Slot, _claims: _Claims) -> bool:
    """Same prompt, same text. A prompt's line is never older than its hook."""
    if not word.prompt_id:
        return False
    return word.role == "assistant" or slot.at >= word.at - SAME_INSTANT


def _displaced(word: Word, slot: Slot, claims: _Claims) -> bool:
    """Same text and time under another prompt id, which no other record has a claim to."""
    if not slot.shown or (word.prompt_id and slot.prompt_id == word.prompt_id):
        return False
    rivals = claims.get(same_words(slot), ())
    if any(rival is not word and rival.slot is None for rival in rivals):
        return False
    gap = slot.at - word.at
    if word.role == "assistant":
        return -NEAR <= gap <= SAME_INSTANT
    return -SAME_INSTANT <= gap <= FAR


def _rewritten(word: Word, slot: Slot, _claims: _Claims) -> bool:
    """Same prompt, another text: a command's full name, the last of several texts, a wrapping."""
    if not word.prompt_id or not slot.shown:
        return False
    gap = slot.at - word.at
    if word.role == "assistant":
        return "blocks" in slot.flags and gap <= SAME_INSTANT
    if "command" in slot.flags:
        return word.slash and abs(gap) <= NEAR
    return "queued" not in slot.flags and abs(gap) <= CLOSE


def repeats(word: Word, other: Word | Slot) -> bool:
    """Tell a hook delivered twice, and a Stop that a Stop hook sent round again.

    Asked of two that carry the same words of the same prompt.
    """
    if abs(other.at - word.at) <= SAME_INSTANT:
        return True
    return (
        word.role == "assistant"
        and word.said is not None
        and word.said.record.event.get("stop_hook_active") is True
    )


def word_of(one: Said) -> Word:
    """Return what a record says, ready to look for its message."""
    return Word(
        one.role,
        one.uuid,
        one.prompt_id,
        digest(one.text),
        one.at,
        slash=one.text.lstrip().startswith("/"),
        said=one,
    )


def known_slot(one: Known) -> Slot:
    """Return the place of a message that is stored."""
    return Slot(
        one.role, one.uuid, one.prompt_id, one.text_digest, one.at, frozenset(one.flags), one.turn
    )


def fresh_slot(one: Message) -> Slot:
    """Return the place of a message that is about to be stored."""
    return Slot(one.role, one.uuid, one.prompt_id, digest(one.text), one.at, frozenset(one.flags))


def prompt_id_of(record: Record) -> str:
    """Return the id of the prompt that a record belongs to, or an empty text."""
    value = record.event.get("prompt_id")
    return value if isinstance(value, str) else ""


def time_of(record: Record) -> datetime:
    """Return when a record was written: naive UTC."""
    return datetime.fromtimestamp(record.at_ns / 1e9, UTC).replace(tzinfo=None)
