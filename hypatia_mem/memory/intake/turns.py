"""A turn in the making: what was said in it so far, and the messages that this gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from hypatia_mem.memory.intake.blocks import BLANK
from hypatia_mem.model import Message

__all__ = ["SYNTHETIC", "Carry", "Facts", "Said", "Title", "Turn", "messages_of"]

SYNTHETIC = "<synthetic>"  # the model of what the client itself wrote
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  naive UTC, as everywhere in the program


class Title(NamedTuple):
    """A session's name; one a person gave (``custom``) beats one the client made up."""

    text: str
    custom: bool


@dataclass(slots=True)
class Facts:
    """What the lines say about their session; empty where they say nothing."""

    session_id: str = ""
    cwd: str = ""  # the first one: where the session began
    git_branch: str = ""  # the last one
    version: str = ""
    entrypoint: str = ""
    forked_from: str = ""
    started_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(slots=True)
class Said:
    """One message in the making: a prompt, or one response of the model."""

    role: str
    uuid: str
    parent_uuid: str
    at: datetime
    key: str = ""  # the response id
    texts: list[str] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    tokens: int = 0
    model: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    closed: bool = True
    synthetic: bool = False


@dataclass(slots=True)
class Turn:
    """A prompt and everything up to the next one; ``offset`` is where it begins."""

    offset: int
    prompt_id: str = ""
    said: list[Said] = field(default_factory=list)
    calls: dict[str, Said] = field(default_factory=dict)
    done: bool = False

    def prompt(self) -> Said | None:
        """Return what the turn begins with; None when nobody typed anything."""
        return next((one for one in self.said if one.role == "user"), None)


@dataclass(slots=True)
class Carry:
    """Where a fold stopped; hand it to the next one. Only ``checkpoint`` outlives the process."""

    checkpoint: int = 0
    facts: Facts = field(default_factory=Facts)
    turn: Turn | None = None
    begun: bool = False
    headless: bool = False  # at the start of the file, and no prompt yet
    command: tuple[Said, int, str, bool] | None = None  # said, offset, prompt id, is custom
    bash: Said | None = None
    caveats: set[str] = field(default_factory=set)
    absorbed: set[str] = field(default_factory=set)
    last_at: datetime = EPOCH
    seen: dict[str, None] = field(default_factory=dict)  # ids of the last lines, in order


def messages_of(turn: Turn, session_id: str) -> list[Message]:
    """Give a turn's messages; parts of responses without text go to a neighbour."""
    spoken = [one for one in turn.said if one.texts]
    answers = [one for one in spoken if one.role == "assistant"]
    prompt = turn.prompt()
    extra: dict[int, list[dict[str, Any]]] = {}
    waiting: list[dict[str, Any]] = []
    last: Said | None = None
    for one in turn.said:
        if one.role != "assistant":
            continue
        if one.texts:
            extra[id(one)] = [*waiting, *one.parts, *_cost(one)]
            waiting, last = [], one
        else:
            waiting += [*one.parts, *_cost(one)]
    if waiting and last is not None:
        extra[id(last)] += waiting
    elif turn.done and prompt is not None and not answers:
        extra[id(prompt)] = [*prompt.parts, *waiting]
        prompt.flags.add("unanswered")
    return [_message(turn, one, extra.get(id(one), one.parts), session_id) for one in spoken]


def _message(turn: Turn, one: Said, parts: Sequence[Mapping[str, Any]], session_id: str) -> Message:
    flags = set(one.flags)
    text = "\n".join(one.texts)
    if one.role == "assistant":
        text = "\n\n".join(one.texts).strip(BLANK)
        if len(one.texts) > 1:
            flags.add("blocks")  # a hook is told the last one only
        if not turn.done:
            flags.add("partial")
    return Message(
        session_id=session_id,
        uuid=one.uuid,
        role=one.role,
        text=text,
        at=one.at,
        parent_uuid=one.parent_uuid,
        prompt_id=turn.prompt_id,
        response_id=one.key,
        parts=tuple(parts),
        tokens=one.tokens,
        flags=tuple(sorted(flags)),
    )


def _cost(said: Said) -> list[dict[str, Any]]:
    """Return the part that says what a response cost: none for text the client made up."""
    if not said.usage or said.model in ("", SYNTHETIC):
        return []
    return [{"type": "usage", "model": said.model, **said.usage}]
