"""The words of the product as frozen dataclasses. No input or output happens here.

Times are naive UTC ``datetime`` everywhere inside the program; ISO-8601 with ``Z`` at the edges.
Scopes and tags are matched by element: ``""`` is the global scope and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

__all__ = [
    "GLOBAL_SCOPE",
    "Author",
    "Channel",
    "Entry",
    "Message",
    "Outcome",
    "Project",
    "Session",
    "Statement",
    "Trust",
    "normal_predicate",
]

GLOBAL_SCOPE = ""
CLOCKS_APART = timedelta(days=1)  # what is later than now by more was told by a wrong clock

# The names our own conventions give to predicates; every other is written in snake case.
_FIXED = ("belongTo", "derivedFrom")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(maxsize=1024)  # of a summary's thousands of links all say the same
def normal_predicate(predicate: str) -> str:
    """Return a predicate in the one spelling in which predicates are stored and compared.

    >>> [normal_predicate(text) for text in ("works at", "worksAt", "Works-At", "derivedFrom")]
    ['works_at', 'works_at', 'works_at', 'derivedFrom']
    >>> normal_predicate("belong_to"), normal_predicate("HTTPServer of"), normal_predicate("属于")
    ('belongTo', 'http_server_of', '属于')
    """
    words = re.split(r"[\s_\-]+", _HUMPS.sub("_", predicate.strip()))
    snake = "_".join(word for word in words if word).casefold()
    for fixed in _FIXED:
        if snake == _HUMPS.sub("_", fixed).casefold():
            return fixed
    return snake or predicate


class Trust(StrEnum):
    """How far an entry is believed; ``candidate`` and ``rejected`` are withheld from reads."""

    CANDIDATE = "candidate"
    ASSERTED = "asserted"
    VERIFIED = "verified"
    DISPUTED = "disputed"
    REJECTED = "rejected"
    STALE = "stale"


class Channel(StrEnum):
    """By which door a change came in; observed by the program, never claimed by a flag."""

    HOOK_PROMPT = "hook-prompt"  # the words a person typed, seen by our own hook
    HOOK = "hook"  # everything else a hook saw
    TRANSCRIPT = "transcript"  # read from the client's transcript
    CLI_PERSON = "cli-person"  # a terminal with a person at it
    CLI_AGENT = "cli-agent"  # run by an agent (CLAUDECODE set, or no terminal)
    WORKER = "worker"  # the worker's own upkeep
    IMPORT = "import"  # taken from an export; never a person, whoever runs it


PERSON_CHANNELS = frozenset({Channel.HOOK_PROMPT, Channel.CLI_PERSON})


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes something and by which door; part of every ledger row."""

    channel: Channel
    actor: str = ""
    producer: str = ""
    session_id: str = ""
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One knowledge entry. ``content`` is the text (``data`` in the emitted JSON)."""

    name: str
    content: str
    tags: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    format: str = "markdown"
    kind: str = "knowledge"  # knowledge | message | session | rule | taboo | memory | summary
    trust: Trust = Trust.ASSERTED
    pinned: bool = False
    suppressed: bool = False
    session_id: str = ""
    turn: int | None = None
    created_at: datetime | None = None  # None = now, set by the gateway
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    version: int = 1
    priority: int = 0  # what is told first where there is room for some only
    activation: str = ""  # by which words of a prompt it is told (``memory.keyed``), as JSON


@dataclass(frozen=True, slots=True)
class Statement:
    """One triple of the graph; either end may be a name that has no entry."""

    subject: str
    predicate: str
    object: str
    content: str = ""
    scopes: tuple[str, ...] = ()
    synonyms: Mapping[str, Any] | None = None
    trust: Trust = Trust.ASSERTED
    session_id: str = ""
    turn: int | None = None
    created_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One turn's text by one speaker, as a person reads it.

    ``uuid`` is the transcript's line id, or ``hook:...`` while only a hook has seen the turn.
    ``parts`` keeps the typed parts in order: ``{"type": "text"|"image"|"tool_use"|"tool_result"
    |"reasoning"|"bash"|"usage", ...}``; images by digest and size, never their bytes; ``usage``
    holds the model and the tokens of one response, the answer's own or one without text.
    """

    session_id: str
    uuid: str
    role: str  # user | assistant
    text: str
    at: datetime
    turn: int | None = None  # dense from 1; None until the gateway gives it
    parent_uuid: str = ""
    prompt_id: str = ""
    response_id: str = ""
    agent_id: str = ""
    parts: tuple[Mapping[str, Any], ...] = ()
    tokens: int = 0
    flags: tuple[str, ...] = ()  # "interrupted", "blocked", "queued", "hook-only", ...


@dataclass(frozen=True, slots=True)
class Session:
    """One session of a client, or a branch of one.

    A branch shares the turns of ``forked_from`` up to ``forked_at``, counted as that session is
    read, without those in ``fork_gaps`` (``3-4,9``); none of them is copied. ``headed_at`` is when
    it was made the head of its family.
    """

    id: str
    project: str = ""  # the project's scope
    title: str = ""
    user: str = ""
    agent: str = ""
    client: str = ""
    cwd: str = ""
    git_branch: str = ""
    transcript_path: str = ""
    forked_from: str = ""
    forked_at: int = 0
    fork_gaps: str = ""
    fork_reason: str = ""
    headed_at: datetime | None = None
    started_at: datetime | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None
    end_reason: str = ""
    pinned: bool = False
    archived: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """A working tree's identity: its scope, its aliases and the folders known to be it."""

    scope: str
    roots: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write did: ``created``, ``updated``, ``unchanged``, ``deleted``, ``refused``."""

    verb: str
    name: str
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
