"""Read the client's transcript: which messages a person would count in it, in order.

``read_lines`` turns a file into parsed lines, ``fold`` turns lines into messages. Neither looks
at a store or a clock, so the same bytes always give the same messages with the same ids.

The unit is the *turn*: a prompt and everything up to the next prompt. Folding may begin at the
start of any turn, and ``Folded.checkpoint`` is the only thing that has to survive a restart: it
never passes the start of a turn that may still grow, so a restart folds that turn again and finds
the same ids. Within one run the ``Carry`` avoids reading a long turn twice.

What is a message and what is not was settled on recordings of the client, not on its documents:

- lines of one response id are one assistant message; thinking, tool calls and their results are
  its parts, never its text; a response without text lends its parts to a neighbour that has some;
- what a response cost is a part too (``usage``: the model and its tokens), so that it travels with
  the others and is counted once, also for a response that said nothing;
- text the client wrote itself (command output, caveats, notifications, skill bodies, summaries of
  a compaction, API errors) is not a message, although it is stored as a ``user`` or ``assistant``
  line; a person may type the very same tags, so they count as the client's only when the line
  does not say where its prompt came from;
- the first write of a file may hold the answer before its prompt (seen on 2.1.197).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from hypatia_mem.model import Message

__all__ = ["BLANK", "Carry", "Facts", "Folded", "Lines", "Title", "clean", "fold", "read_lines"]

PART_CHARS = 2000  # of a tool's input or output that are kept
TAIL_CHARS = 760  # of them from its end: that is where an output says how it ended
REDACT_CHARS = 65_536  # redacted before the cut, so that a cut never halves a secret
MAX_LINE_BYTES = 64 << 20
SEEN_LINES = 1000
SYNTHETIC = "<synthetic>"  # the model of what the client itself wrote
MAX_TOKENS = 2**31 - 1
CHUNK_BYTES = 1 << 20
DEFAULT_LIMIT_BYTES = 8 << 20
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  naive UTC, as everywhere in the program

# Whole requests, repeated for every model call: most of the bytes of a new client's transcript.
_NOISE = (b'{"type":"api-request', b'{"type":"cost-state', b'{"type":"file-history')

_INTERRUPT = re.compile(r"\[Request interrupted by user(?: for tool use)?\]\s*")
_TAG = {
    name: re.compile(rf"<{name}>(.*?)</{name}>", re.DOTALL)
    for name in ("command-name", "command-args", "bash-input", "bash-stdout", "bash-stderr")
}
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SILENT = "No response requested."
# What the client trims off an answer before it hands it to a hook.
BLANK = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)

Redact = Callable[[str], str]


class Lines(NamedTuple):
    """Parsed lines of a transcript and where to read on.

    ``lines`` are pairs (byte offset, object); ``bad`` counts lines that were no JSON object;
    ``restarted`` tells that the file had become shorter than the offset and was read from 0;
    ``at_end`` that no whole line is left behind ``next_offset``.
    """

    lines: list[tuple[int, dict[str, Any]]]
    next_offset: int
    bad: int = 0
    restarted: bool = False
    at_end: bool = True


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
class _Said:
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
class _Turn:
    offset: int
    prompt_id: str = ""
    said: list[_Said] = field(default_factory=list)
    calls: dict[str, _Said] = field(default_factory=dict)
    done: bool = False

    def prompt(self) -> _Said | None:
        return next((one for one in self.said if one.role == "user"), None)


@dataclass(slots=True)
class Carry:
    """Where a fold stopped; hand it to the next one. Only ``checkpoint`` outlives the process."""

    checkpoint: int = 0
    facts: Facts = field(default_factory=Facts)
    turn: _Turn | None = None
    begun: bool = False
    headless: bool = False  # at the start of the file, and no prompt yet
    command: tuple[_Said, int, str, bool] | None = None  # said, offset, prompt id, is custom
    bash: _Said | None = None
    caveats: set[str] = field(default_factory=set)
    absorbed: set[str] = field(default_factory=set)
    last_at: datetime = EPOCH
    seen: dict[str, None] = field(default_factory=dict)  # ids of the last lines, in order


@dataclass(frozen=True, slots=True)
class Folded:
    """What some lines said.

    ``messages`` in transcript order: those of every turn that ended, and those so far of the
    running one, which come again with the next fold under the same ids. Of the running turn,
    assistant messages carry the flag ``partial`` (their parts may still change), and ``open``
    names the ids whose very text may still grow. ``checkpoint`` is the byte offset to store.
    """

    messages: tuple[Message, ...]
    open: frozenset[str]
    checkpoint: int
    carry: Carry
    titles: tuple[Title, ...]
    summaries: tuple[str, ...]
    facts: Facts


def clean(text: str) -> str:
    """Join surrogate pairs and replace lone halves, so that the text can be encoded."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# ---------------------------------------------------------------- reading


def read_lines(path: str | Path, offset: int, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Lines:
    """Read complete lines from ``offset`` on, at least one and about ``limit_bytes`` in all.

    Never goes past the last newline: what stands behind it may be half a line. A file shorter
    than ``offset`` is read from its start (the ids of messages make that harmless). Lines that
    are no JSON object, and lines above 64 MiB, are skipped and counted. Raises OSError.
    """
    with Path(path).open("rb") as stream:
        size = stream.seek(0, 2)
        restarted = size < offset
        start = 0 if restarted else offset
        stream.seek(start)
        found: list[tuple[int, dict[str, Any]]] = []
        bad = 0
        end = start
        for at, raw, after in _raw_lines(stream, start):
            parsed = _parse(raw)
            if isinstance(parsed, dict):
                found.append((at, parsed))
            elif parsed is None:
                bad += 1
            end = after
            if end - start >= limit_bytes:
                return Lines(found, end, bad, restarted, at_end=end >= size)
    return Lines(found, end, bad, restarted)


def _raw_lines(stream: BinaryIO, offset: int) -> Iterator[tuple[int, bytes | None, int]]:
    """Yield (offset, bytes or None when too long, offset behind) of every complete line."""
    pending: list[bytes] = []
    held = 0
    start = offset
    position = offset
    while chunk := stream.read(CHUNK_BYTES):
        begin = 0
        while (cut := chunk.find(b"\n", begin)) >= 0:
            piece = chunk[begin:cut]
            behind = position + cut + 1
            too_long = held + len(piece) > MAX_LINE_BYTES
            yield start, None if too_long else b"".join([*pending, piece]), behind
            pending, held, start, begin = [], 0, behind, cut + 1
        rest = chunk[begin:]
        held += len(rest)
        if held <= MAX_LINE_BYTES:
            pending.append(rest)
        else:
            pending.clear()
        position += len(chunk)


def _parse(raw: bytes | None) -> dict[str, Any] | bool | None:
    """Return the object, False for a line to pass over, None for a bad one."""
    if raw is None:
        return None
    if not raw.strip():
        return False
    if raw[:40].replace(b" ", b"").startswith(_NOISE):
        return False
    try:
        parsed = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


# ---------------------------------------------------------------- folding


def _as_is(text: str) -> str:
    return text


def fold(
    lines: Iterable[tuple[int, Mapping[str, Any]]],
    carry: Carry | None = None,
    *,
    end: int,
    redact: Redact = _as_is,
    flush: bool = False,
) -> Folded:
    """Fold lines into messages.

    ``lines`` and ``end`` are those of ``read_lines`` (``end`` is its ``next_offset``); ``carry``
    is what the fold of the lines just before them gave, or None at a checkpoint; it is used up.
    ``redact`` is applied to every text that leaves. ``flush`` says that no more lines will come:
    what waits for its successor is decided by its looks.
    """
    folder = _Folder(carry or Carry(), redact)
    for offset, line in lines:
        folder.take(offset, line)
    return folder.finish(end, flush=flush)


class _Folder:
    """One pass over some lines; ``state`` is the carry."""

    def __init__(self, state: Carry, redact: Redact) -> None:
        self.state = state
        self._redact = redact
        self.ended: list[Message] = []
        self.titles: list[Title] = []
        self.summaries: list[str] = []

    # -- lines

    def take(self, offset: int, line: Mapping[str, Any]) -> None:
        """Take one line in."""
        if not self.state.begun:
            self.state.begun = True
            self.state.headless = offset == 0
        kind = line.get("type")
        if line.get("isSidechain") or (line.get("agentId") and kind in ("user", "assistant")):
            return
        if self._repeated(line):
            return
        self._note(line)
        if kind == "user":
            self._user(offset, line)
        elif kind == "assistant":
            self._assistant(offset, line)
        elif kind == "attachment":
            self._attachment(offset, line)
        elif kind == "system":
            self._system(line)
        else:
            self._bookkeeping(line)

    def _repeated(self, line: Mapping[str, Any]) -> bool:
        """Tell whether this very line stood here before: 2.1.197 may write one twice.

        The last thousand are remembered; an older one's message is known by its id anyway.
        """
        uuid = _str(line.get("uuid"))
        if not uuid:
            return False
        content = str(line.get("message") or line.get("attachment")).encode("utf-8", "replace")
        key = f"{uuid}:{hashlib.sha256(content).hexdigest()[:16]}"
        seen = self.state.seen
        if key in seen:
            return True
        seen[key] = None
        if len(seen) > SEEN_LINES:
            del seen[next(iter(seen))]
        return False

    def finish(self, end: int, *, flush: bool) -> Folded:
        """Give what was found and where a restart has to begin."""
        state = self.state
        if flush:
            self._decide_command(custom=state.command is not None and state.command[3])
            state.headless = False
        turn = state.turn
        offsets = [end]
        if turn is not None:
            offsets.append(turn.offset)
        if state.command is not None:
            offsets.append(state.command[1])
        if state.headless:
            offsets.append(0)
        state.checkpoint = min(offsets)
        messages = list(self.ended)
        growing: set[str] = set()
        if turn is not None and not state.headless:
            messages += self._messages(turn)
            growing = {one.uuid for one in turn.said if not one.closed}
        return Folded(
            messages=tuple(messages),
            open=frozenset(growing),
            checkpoint=state.checkpoint,
            carry=state,
            titles=tuple(self.titles),
            summaries=tuple(self.summaries),
            facts=state.facts,
        )

    def _note(self, line: Mapping[str, Any]) -> None:
        facts = self.state.facts
        facts.session_id = facts.session_id or _str(line.get("sessionId"))
        facts.cwd = facts.cwd or clean(_str(line.get("cwd")))
        facts.git_branch = clean(_str(line.get("gitBranch"))) or facts.git_branch
        facts.version = _str(line.get("version")) or facts.version
        facts.entrypoint = _str(line.get("entrypoint")) or facts.entrypoint
        origin = line.get("forkedFrom")
        if isinstance(origin, Mapping) and not facts.forked_from:
            facts.forked_from = _str(origin.get("sessionId"))
        at = _time(line.get("timestamp"))
        if at is None:
            return
        self.state.last_at = at
        facts.started_at = at if facts.started_at is None else min(facts.started_at, at)
        facts.updated_at = at if facts.updated_at is None else max(facts.updated_at, at)

    def _said(self, role: str, line: Mapping[str, Any]) -> _Said:
        return _Said(
            role=role,
            uuid=_str(line.get("uuid")),
            parent_uuid=_str(line.get("parentUuid")),
            at=_time(line.get("timestamp")) or self.state.last_at,
        )

    # -- prompts and what looks like one

    def _user(self, offset: int, line: Mapping[str, Any]) -> None:
        message = line.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        blocks = _blocks(content)
        if line.get("isCompactSummary"):
            self._close()
            text = _text(blocks).strip()
            if text:
                self.summaries.append(self._redact(clean(text)))
        elif line.get("isMeta"):
            self._meta(line, _text(blocks))
        elif any(block.get("type") == "tool_result" for block in blocks):
            self._results(blocks)
        elif "toolUseResult" not in line:
            self._prompt(offset, line, blocks)

    def _meta(self, line: Mapping[str, Any], text: str) -> None:
        """Take a line the client wrote for the model: a command's body, or a caveat."""
        prompt_id = _str(line.get("promptId"))
        if text.startswith("<local-command-caveat>"):
            self.state.caveats = {prompt_id, _str(line.get("uuid"))} - {""}
        elif self.state.command is not None and self.state.command[2] == prompt_id:
            self._decide_command(custom=True)

    def _prompt(
        self, offset: int, line: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]
    ) -> None:
        text = clean(_text(blocks))
        origin = line.get("origin")
        kind = _str(origin.get("kind")) if isinstance(origin, Mapping) else ""
        named = bool(line.get("promptSource"))
        prompt_id = _str(line.get("promptId"))
        if kind == "task-notification" or (
            kind != "human" and text.startswith("<task-notification>")
        ):
            self.state.headless = False
            self._begin(offset, prompt_id)
        elif not named and self._of_client(offset, line, text, prompt_id):
            return
        elif _str(line.get("uuid")) in self.state.absorbed:
            return  # the same prompt was already shown as one absorbed by the running turn
        else:
            self._typed(offset, line, blocks, text)

    def _typed(
        self,
        offset: int,
        line: Mapping[str, Any],
        blocks: Sequence[Mapping[str, Any]],
        text: str,
    ) -> None:
        images = [_image(block) for block in blocks if block.get("type") == "image"]
        if not text.strip() and not images:
            return
        if not line.get("promptSource") and not _REMINDER.sub("", text).strip() and not images:
            return
        said = self._said("user", line)
        said.texts = [self._redact(text if text.strip() else "[image]")]
        said.parts = images
        if line.get("promptSource") == "queued":
            said.flags.add("queued")
        self._begin(offset, _str(line.get("promptId")), said)

    def _of_client(self, offset: int, line: Mapping[str, Any], text: str, prompt_id: str) -> bool:
        """Handle text that the client itself put into a user line; False when it is not such."""
        head = text.lstrip()
        if _INTERRUPT.fullmatch(text):
            self._interrupt()
        elif head.startswith(("<local-command-stdout>", "<local-command-stderr>")):
            self._decide_command(custom=False)
        elif head.startswith("<local-command-caveat>"):
            self.state.caveats = {prompt_id, _str(line.get("uuid"))} - {""}
        elif head.startswith(("<bash-stdout>", "<bash-stderr>")):
            self._bash_output(text)
        elif head.startswith("<bash-input>"):
            self._bash(offset, line, text, prompt_id)
        elif head.startswith(("<command-name>", "<command-message>")) and _tag(
            "command-name", text
        ):
            self._command(offset, line, text, prompt_id)
        else:
            return False
        return True

    def _command(self, offset: int, line: Mapping[str, Any], text: str, prompt_id: str) -> None:
        """Hold a slash command back: only what follows tells a skill from a built-in."""
        looks_custom = text.lstrip().startswith("<command-message>")
        self._decide_command(custom=self.state.command is not None and self.state.command[3])
        parent = _str(line.get("parentUuid"))
        if {prompt_id, parent} & self.state.caveats:
            return
        name, arguments = _tag("command-name", text).strip(), _tag("command-args", text).strip()
        said = self._said("user", line)
        said.flags.add("command")
        said.texts = [self._redact(f"{name} {arguments}" if arguments else name)]
        self.state.command = (said, offset, prompt_id, looks_custom)

    def _decide_command(self, *, custom: bool) -> None:
        held, self.state.command = self.state.command, None
        if held is not None and custom:
            said, offset, prompt_id, _ = held
            self._begin(offset, prompt_id, said)

    def _bash(self, offset: int, line: Mapping[str, Any], text: str, prompt_id: str) -> None:
        said = self._said("user", line)
        said.texts = [self._redact("!" + _tag("bash-input", text))]
        said.closed = False  # its output comes on the next line
        self._begin(offset, prompt_id, said)
        self.state.bash = said

    def _bash_output(self, text: str) -> None:
        said, self.state.bash = self.state.bash, None
        if said is None:
            return
        output, errors = _tag("bash-stdout", text), _tag("bash-stderr", text)
        said.closed = True
        said.parts.append(
            {"type": "bash", "stdout": self._cut(output), "stderr": self._cut(errors)}
        )

    def _interrupt(self) -> None:
        turn = self.state.turn
        if turn is None:
            return
        prompt = turn.prompt()
        if prompt is not None:
            prompt.flags.add("interrupted")
        last = turn.said[-1] if turn.said else None
        if last is not None and last.role == "assistant" and last.synthetic:
            last.flags.add("interrupted")
        self._end_turn()

    def _attachment(self, offset: int, line: Mapping[str, Any]) -> None:
        """A prompt typed while the model worked and taken in by the running turn has no line."""
        held = line.get("attachment")
        if not isinstance(held, Mapping) or held.get("type") != "queued_command":
            return
        blocks = _blocks(held.get("prompt"))
        text = clean(_text(blocks))
        origin = held.get("origin")
        kind = _str(origin.get("kind")) if isinstance(origin, Mapping) else ""
        if held.get("commandMode", "prompt") != "prompt" or kind not in ("", "human"):
            return
        if not kind and text.startswith("<task-notification>"):
            return
        images = [_image(block) for block in blocks if block.get("type") == "image"]
        if (not text.strip() and not images) or line.get("isMeta") or held.get("isMeta"):
            return
        self._close()
        said = self._said("user", line)
        said.at = _time(held.get("timestamp")) or said.at
        said.texts = [self._redact(text if text.strip() else "[image]")]
        said.parts = images
        said.flags.add("queued")
        self.state.absorbed.add(_str(held.get("source_uuid")) or said.uuid)
        self._running(offset).said.append(said)

    # -- the model

    def _assistant(self, offset: int, line: Mapping[str, Any]) -> None:
        message = line.get("message")
        if not isinstance(message, Mapping):
            return
        blocks = _blocks(message.get("content"))
        if line.get("isApiErrorMessage"):
            self._fail()
            return
        synthetic = message.get("model") == SYNTHETIC
        if synthetic and _text(blocks).strip() in ("", _SILENT):
            return
        if self.state.command is not None:
            self._decide_command(custom=True)
        turn = self._running(offset)
        said = self._response(turn, line, message)
        said.synthetic = synthetic or bool(line.get("isAbortedMidStream"))
        if line.get("isAbortedMidStream"):
            said.flags.add("interrupted")
        for block in blocks:
            self._block(turn, said, block)

    def _response(self, turn: _Turn, line: Mapping[str, Any], message: Mapping[str, Any]) -> _Said:
        key = _str(message.get("id")) or _str(line.get("uuid"))
        said = next((one for one in reversed(turn.said) if one.key == key), None)
        if said is None:
            self._close()
            said = self._said("assistant", line)
            said.key = key
            said.closed = False
            turn.said.append(said)
        said.model = said.model or clean(_str(message.get("model")))
        for name, tokens in _usage(message.get("usage")).items():  # grows from line to line
            said.usage[name] = max(said.usage.get(name, 0), tokens)
        said.tokens = said.usage.get("output_tokens", 0)
        return said

    def _block(self, turn: _Turn, said: _Said, block: Mapping[str, Any]) -> None:
        kind = block.get("type")
        if kind == "text":
            text = clean(_str(block.get("text")))
            if text.strip():
                said.texts.append(self._redact(text))
        elif kind == "thinking":
            said.parts.append({"type": "reasoning", "text": self._cut(_str(block.get("thinking")))})
        elif kind in ("tool_use", "server_tool_use"):
            call = _str(block.get("id"))
            # Each text by itself: escaped as JSON, a line's end no longer ends a secret's line.
            made = json.dumps(self._texts_cut(block.get("input")), ensure_ascii=False)
            said.parts.append(
                {
                    "type": "tool_use",
                    "name": clean(_str(block.get("name"))),
                    "input": self._redact(made)[:PART_CHARS],
                    "id": call,
                }
            )
            turn.calls[call] = said

    def _results(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        turn = self.state.turn
        if turn is None:
            return
        for block in blocks:
            if block.get("type") != "tool_result":
                continue
            call = _str(block.get("tool_use_id"))
            caller = turn.calls.get(call)
            if caller is None:
                continue
            inner = _blocks(block.get("content"))
            text = _text(inner)
            caller.parts.append(
                {
                    "type": "tool_result",
                    "id": call,
                    "text": self._cut(text),
                    "length": len(text),
                    "is_error": bool(block.get("is_error")),
                }
            )
            caller.parts += [_image(one) for one in inner if one.get("type") == "image"]

    def _fail(self) -> None:
        turn = self.state.turn
        prompt = turn.prompt() if turn is not None else None
        if prompt is not None:
            prompt.flags.add("api-error")
        self._end_turn()

    # -- everything else

    def _system(self, line: Mapping[str, Any]) -> None:
        kind = line.get("subtype")
        if kind == "local_command":
            self._decide_command(custom=False)
        elif kind == "turn_duration":
            self._end_turn()
        elif kind in ("stop_hook_summary", "compact_boundary"):
            self._close()

    def _bookkeeping(self, line: Mapping[str, Any]) -> None:
        kind = line.get("type")
        for name, key, custom in (
            ("custom-title", "customTitle", True),
            ("ai-title", "aiTitle", False),
            ("summary", "summary", False),
        ):
            text = clean(_str(line.get(key))).strip() if kind == name else ""
            if text:
                self.titles.append(Title(self._redact(text), custom))

    # -- turns

    def _running(self, offset: int) -> _Turn:
        if self.state.turn is None:
            self._begin(offset, "")
        turn = self.state.turn
        assert turn is not None
        return turn

    def _begin(self, offset: int, prompt_id: str, said: _Said | None = None) -> None:
        """Start a turn; ``said`` is its prompt, None when nobody typed one."""
        state = self.state
        if state.command is not None:  # nothing has decided it: its looks do
            self._decide_command(custom=state.command[3])
        before = state.turn
        if said is not None and state.headless:
            state.headless = False
            if before is not None and before.said and before.said[0].at >= said.at:
                # The file's first write: the answer came before the prompt it answers.
                before.said.insert(0, said)
                before.prompt_id = prompt_id
                before.offset = 0  # a restart has to find it headless again
                return
        self._end_turn()
        state.turn = _Turn(offset, prompt_id)
        state.bash = None
        if said is not None:
            state.turn.said.append(said)

    def _end_turn(self) -> None:
        """Give the running turn's messages out for good; a headless one still waits."""
        self._close()
        turn = self.state.turn
        if turn is not None and not self.state.headless:
            turn.done = True
            self.ended += self._messages(turn)
            self.state.turn = None

    def _close(self) -> None:
        turn = self.state.turn
        if turn is not None:
            for one in turn.said:
                one.closed = True

    def _messages(self, turn: _Turn) -> list[Message]:
        """Give a turn's messages; parts of responses without text go to a neighbour."""
        spoken = [one for one in turn.said if one.texts]
        answers = [one for one in spoken if one.role == "assistant"]
        prompt = turn.prompt()
        extra: dict[int, list[dict[str, Any]]] = {}
        waiting: list[dict[str, Any]] = []
        last: _Said | None = None
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
        return [self._message(turn, one, extra.get(id(one), one.parts)) for one in spoken]

    def _message(self, turn: _Turn, one: _Said, parts: Sequence[Mapping[str, Any]]) -> Message:
        flags = set(one.flags)
        text = "\n".join(one.texts)
        if one.role == "assistant":
            text = "\n\n".join(one.texts).strip(BLANK)
            if len(one.texts) > 1:
                flags.add("blocks")  # a hook is told the last one only
            if not turn.done:
                flags.add("partial")
        return Message(
            session_id=self.state.facts.session_id,
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

    def _texts_cut(self, value: object) -> object:
        """Redact and shorten every text of a tool's input, however deep."""
        if isinstance(value, str):
            return self._cut(value)
        if isinstance(value, list):
            return [self._texts_cut(item) for item in value]
        if isinstance(value, Mapping):
            return {self._cut(str(key)): self._texts_cut(item) for key, item in value.items()}
        return value

    def _cut(self, text: str) -> str:
        """Return the beginning and the end of what is too long, redacted before it is cut."""
        head = self._redact(clean(text[:REDACT_CHARS]))
        if len(text) <= REDACT_CHARS and len(head) <= PART_CHARS:
            return head
        tail = self._redact(clean(text[-REDACT_CHARS:])) if len(text) > REDACT_CHARS else head
        gap = f"\n[... {len(text) - PART_CHARS} characters left out ...]\n"
        room = PART_CHARS - TAIL_CHARS - len(gap)
        return f"{head[:room]}{gap}{tail[-TAIL_CHARS:]}"


# ---------------------------------------------------------------- small readers


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _blocks(content: object) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        return [block for block in content if isinstance(block, Mapping)]
    return []


def _text(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(_str(block.get("text")) for block in blocks if block.get("type") == "text")


def _usage(usage: object) -> dict[str, int]:
    """Return a response's tokens by what they are priced by; what it does not say is left out."""
    if not isinstance(usage, Mapping):
        return {}
    written = usage.get("cache_creation")
    found = {
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "cache_read_tokens": usage.get("cache_read_input_tokens"),
        "cache_write_tokens": usage.get("cache_creation_input_tokens"),
        "cache_write_1h_tokens": written.get("ephemeral_1h_input_tokens")
        if isinstance(written, Mapping)
        else None,
    }
    return {
        name: min(count, MAX_TOKENS)
        for name, count in found.items()
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0
    }


def _cost(said: _Said) -> list[dict[str, Any]]:
    """Return the part that says what a response cost: none for text the client made up."""
    if not said.usage or said.model in ("", SYNTHETIC):
        return []
    return [{"type": "usage", "model": said.model, **said.usage}]


def _image(block: Mapping[str, Any]) -> dict[str, Any]:
    source = block.get("source")
    held = source if isinstance(source, Mapping) else {}
    data = _str(held.get("data"))
    return {
        "type": "image",
        "media_type": _str(held.get("media_type")),
        "bytes": len(data) * 3 // 4 - data[-2:].count("="),
        "digest": hashlib.sha256(data.encode("utf-8", "replace")).hexdigest()[:12],
    }


def _tag(name: str, text: str) -> str:
    found = _TAG[name].search(text)
    return found.group(1) if found else ""


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo is not None else at
