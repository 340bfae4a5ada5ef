"""Read the client's transcript: which messages a person would count in it, in order.

``lines`` turns a file into parsed lines, ``fold`` turns lines into messages. Neither looks at a
store or a clock, so the same bytes always give the same messages with the same ids.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hypatia_mem.memory.intake.blocks import (
    PART_CHARS,
    Redact,
    blocks_of,
    clean,
    cut,
    image_of,
    tagged,
    text_of,
    texts_cut,
    time_of,
    tokens_of,
    words,
)
from hypatia_mem.memory.intake.turns import (
    SYNTHETIC,
    Carry,
    Facts,
    Said,
    Title,
    Turn,
    messages_of,
)
from hypatia_mem.model import Message

__all__ = ["Folded", "fold"]

SEEN_LINES = 1000

_INTERRUPT = re.compile(r"\[Request interrupted by user(?: for tool use)?\]\s*")
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_SILENT = "No response requested."


@dataclass(frozen=True, slots=True)
class Folded:
    """What some lines said.

    ``messages`` in transcript order: those of every turn that ended, and those so far of the
    running one, which come again with the next fold under the same ids. Of the running turn,
    assistant messages carry the flag ``partial`` (their parts may still change), and ``open``
    names the ids whose very text may still grow. ``checkpoint`` is the byte offset to store;
    ``compacted_at`` when the client last condensed the session's context here, if it did.
    """

    messages: tuple[Message, ...]
    open: frozenset[str]
    checkpoint: int
    carry: Carry
    titles: tuple[Title, ...]
    summaries: tuple[str, ...]
    compacted_at: datetime | None
    facts: Facts


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
        self.compacted_at: datetime | None = None

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
        uuid = words(line.get("uuid"))
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
            messages += messages_of(turn, self.state.facts.session_id)
            growing = {one.uuid for one in turn.said if not one.closed}
        return Folded(
            messages=tuple(messages),
            open=frozenset(growing),
            checkpoint=state.checkpoint,
            carry=state,
            titles=tuple(self.titles),
            summaries=tuple(self.summaries),
            compacted_at=self.compacted_at,
            facts=state.facts,
        )

    def _note(self, line: Mapping[str, Any]) -> None:
        facts = self.state.facts
        facts.session_id = facts.session_id or words(line.get("sessionId"))
        facts.cwd = facts.cwd or clean(words(line.get("cwd")))
        facts.git_branch = clean(words(line.get("gitBranch"))) or facts.git_branch
        facts.version = words(line.get("version")) or facts.version
        facts.entrypoint = words(line.get("entrypoint")) or facts.entrypoint
        origin = line.get("forkedFrom")
        if isinstance(origin, Mapping) and not facts.forked_from:
            facts.forked_from = words(origin.get("sessionId"))
        at = time_of(line.get("timestamp"))
        if at is None:
            return
        self.state.last_at = at
        facts.started_at = at if facts.started_at is None else min(facts.started_at, at)
        facts.updated_at = at if facts.updated_at is None else max(facts.updated_at, at)

    def _said(self, role: str, line: Mapping[str, Any]) -> Said:
        return Said(
            role=role,
            uuid=words(line.get("uuid")),
            parent_uuid=words(line.get("parentUuid")),
            at=time_of(line.get("timestamp")) or self.state.last_at,
        )

    # -- prompts and what looks like one

    def _user(self, offset: int, line: Mapping[str, Any]) -> None:
        message = line.get("message")
        content = message.get("content") if isinstance(message, Mapping) else None
        blocks = blocks_of(content)
        if line.get("isCompactSummary"):
            self._close()
            self.compacted_at = time_of(line.get("timestamp")) or self.state.last_at
            text = text_of(blocks).strip()
            if text:
                self.summaries.append(self._redact(clean(text)))
        elif line.get("isMeta"):
            self._meta(line, text_of(blocks))
        elif any(block.get("type") == "tool_result" for block in blocks):
            self._results(blocks)
        elif "toolUseResult" not in line:
            self._prompt(offset, line, blocks)

    def _meta(self, line: Mapping[str, Any], text: str) -> None:
        """Take a line the client wrote for the model: a command's body, or a caveat."""
        prompt_id = words(line.get("promptId"))
        if text.startswith("<local-command-caveat>"):
            self.state.caveats = {prompt_id, words(line.get("uuid"))} - {""}
        elif self.state.command is not None and self.state.command[2] == prompt_id:
            self._decide_command(custom=True)

    def _prompt(
        self, offset: int, line: Mapping[str, Any], blocks: Sequence[Mapping[str, Any]]
    ) -> None:
        text = clean(text_of(blocks))
        origin = line.get("origin")
        kind = words(origin.get("kind")) if isinstance(origin, Mapping) else ""
        named = bool(line.get("promptSource"))
        prompt_id = words(line.get("promptId"))
        if kind == "task-notification" or (
            kind != "human" and text.startswith("<task-notification>")
        ):
            self.state.headless = False
            self._begin(offset, prompt_id)
        elif not named and self._of_client(offset, line, text, prompt_id):
            return
        elif words(line.get("uuid")) in self.state.absorbed:
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
        images = [image_of(block) for block in blocks if block.get("type") == "image"]
        if not text.strip() and not images:
            return
        if not line.get("promptSource") and not _REMINDER.sub("", text).strip() and not images:
            return
        said = self._said("user", line)
        said.texts = [self._redact(text if text.strip() else "[image]")]
        said.parts = images
        if line.get("promptSource") == "queued":
            said.flags.add("queued")
        self._begin(offset, words(line.get("promptId")), said)

    def _of_client(self, offset: int, line: Mapping[str, Any], text: str, prompt_id: str) -> bool:
        """Handle text that the client itself put into a user line; False when it is not such."""
        head = text.lstrip()
        if _INTERRUPT.fullmatch(text):
            self._interrupt()
        elif head.startswith(("<local-command-stdout>", "<local-command-stderr>")):
            self._decide_command(custom=False)
        elif head.startswith("<local-command-caveat>"):
            self.state.caveats = {prompt_id, words(line.get("uuid"))} - {""}
        elif head.startswith(("<bash-stdout>", "<bash-stderr>")):
            self._bash_output(text)
        elif head.startswith("<bash-input>"):
            self._bash(offset, line, text, prompt_id)
        elif head.startswith(("<command-name>", "<command-message>")) and tagged(
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
        parent = words(line.get("parentUuid"))
        if {prompt_id, parent} & self.state.caveats:
            return
        name, arguments = tagged("command-name", text).strip(), tagged("command-args", text).strip()
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
        said.texts = [self._redact("!" + tagged("bash-input", text))]
        said.closed = False  # its output comes on the next line
        self._begin(offset, prompt_id, said)
        self.state.bash = said

    def _bash_output(self, text: str) -> None:
        said, self.state.bash = self.state.bash, None
        if said is None:
            return
        output, errors = tagged("bash-stdout", text), tagged("bash-stderr", text)
        said.closed = True
        said.parts.append(
            {
                "type": "bash",
                "stdout": cut(output, self._redact),
                "stderr": cut(errors, self._redact),
            }
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
        blocks = blocks_of(held.get("prompt"))
        text = clean(text_of(blocks))
        origin = held.get("origin")
        kind = words(origin.get("kind")) if isinstance(origin, Mapping) else ""
        if held.get("commandMode", "prompt") != "prompt" or kind not in ("", "human"):
            return
        if not kind and text.startswith("<task-notification>"):
            return
        images = [image_of(block) for block in blocks if block.get("type") == "image"]
        if (not text.strip() and not images) or line.get("isMeta") or held.get("isMeta"):
            return
        self._close()
        said = self._said("user", line)
        said.at = time_of(held.get("timestamp")) or said.at
        said.texts = [self._redact(text if text.strip() else "[image]")]
        said.parts = images
        said.flags.add("queued")
        self.state.absorbed.add(words(held.get("source_uuid")) or said.uuid)
        self._running(offset).said.append(said)

    # -- the model

    def _assistant(self, offset: int, line: Mapping[str, Any]) -> None:
        message = line.get("message")
        if not isinstance(message, Mapping):
            return
        blocks = blocks_of(message.get("content"))
        if line.get("isApiErrorMessage"):
            self._fail()
            return
        synthetic = message.get("model") == SYNTHETIC
        if synthetic and text_of(blocks).strip() in ("", _SILENT):
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

    def _response(self, turn: Turn, line: Mapping[str, Any], message: Mapping[str, Any]) -> Said:
        key = words(message.get("id")) or words(line.get("uuid"))
        said = next((one for one in reversed(turn.said) if one.key == key), None)
        if said is None:
            self._close()
            said = self._said("assistant", line)
            said.key = key
            said.closed = False
            turn.said.append(said)
        said.model = said.model or clean(words(message.get("model")))
        for name, tokens in tokens_of(message.get("usage")).items():  # grows from line to line
            said.usage[name] = max(said.usage.get(name, 0), tokens)
        said.tokens = said.usage.get("output_tokens", 0)
        return said

    def _block(self, turn: Turn, said: Said, block: Mapping[str, Any]) -> None:
        kind = block.get("type")
        if kind == "text":
            text = clean(words(block.get("text")))
            if text.strip():
                said.texts.append(self._redact(text))
        elif kind == "thinking":
            said.parts.append(
                {"type": "reasoning", "text": cut(words(block.get("thinking")), self._redact)}
            )
        elif kind in ("tool_use", "server_tool_use"):
            call = words(block.get("id"))
            # Each text by itself: escaped as JSON, a line's end no longer ends a secret's line.
            made = json.dumps(texts_cut(block.get("input"), self._redact), ensure_ascii=False)
            said.parts.append(
                {
                    "type": "tool_use",
                    "name": clean(words(block.get("name"))),
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
            call = words(block.get("tool_use_id"))
            caller = turn.calls.get(call)
            if caller is None:
                continue
            inner = blocks_of(block.get("content"))
            text = text_of(inner)
            caller.parts.append(
                {
                    "type": "tool_result",
                    "id": call,
                    "text": cut(text, self._redact),
                    "length": len(text),
                    "is_error": bool(block.get("is_error")),
                }
            )
            caller.parts += [image_of(one) for one in inner if one.get("type") == "image"]

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
            text = clean(words(line.get(key))).strip() if kind == name else ""
            if text:
                self.titles.append(Title(self._redact(text), custom))

    # -- turns

    def _running(self, offset: int) -> Turn:
        if self.state.turn is None:
            self._begin(offset, "")
        turn = self.state.turn
        assert turn is not None
        return turn

    def _begin(self, offset: int, prompt_id: str, said: Said | None = None) -> None:
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
        state.turn = Turn(offset, prompt_id)
        state.bash = None
        if said is not None:
            state.turn.said.append(said)

    def _end_turn(self) -> None:
        """Give the running turn's messages out for good; a headless one still waits."""
        self._close()
        turn = self.state.turn
        if turn is not None and not self.state.headless:
            turn.done = True
            self.ended += messages_of(turn, self.state.facts.session_id)
            self.state.turn = None

    def _close(self) -> None:
        turn = self.state.turn
        if turn is not None:
            for one in turn.said:
                one.closed = True
