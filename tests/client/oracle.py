"""Counts, from the client's transcripts alone, the messages that a person would.

Written from what the client is known to write, not from our reader of it, and as plain as it can
be: the whole file is read at once, nothing resumes, nothing waits.

A person counts what was typed (also ``!command``, a command of their own, a picture) and what the
model said, once each, in order. Not what the client itself adds: results of tools, caveats, output
of commands, notices of finished tasks, summaries, API errors, answers of sub-agents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_CLIENTS_OWN = (
    "<task-notification>",
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "[Request interrupted by user",
)
_SILENCE = "No response requested."


class Said(NamedTuple):
    """One message: who spoke and the words."""

    role: str
    text: str


def conversations(
    transcripts: Iterable[Path], commands: Collection[str] = ()
) -> dict[str, list[Said]]:
    """Return the messages of each session; ``transcripts`` in the order the sessions began.

    A line repeated under its id counts where it stood first: a fork repeats all of its origin, a
    compaction the part of the file that it keeps.
    ``commands`` are the names of the person's own slash commands: only those are sent to the model.
    """
    seen: set[str] = set()
    found = {}
    for path in transcripts:
        fresh = []
        for raw in path.read_bytes().splitlines():
            line = json.loads(raw)
            if line.get("uuid") and line["uuid"] not in seen:
                seen.add(line["uuid"])
                fresh.append(line)
        found[path.stem] = _messages(fresh, commands)
    return found


def _messages(lines: Iterable[Mapping[str, Any]], commands: Collection[str]) -> list[Said]:
    said: list[tuple[str, list[str]]] = []
    answers: dict[str, list[str]] = {}
    for line in _in_order(lines):
        if line.get("isSidechain"):
            continue
        if line.get("type") == "assistant":
            text = _spoken(line)
            if not text:
                continue
            key = line["message"]["id"]
            if key not in answers:
                answers[key] = []
                said.append(("assistant", answers[key]))
            answers[key].append(text)
        else:
            typed = _typed(line, commands)
            if typed:
                said.append(("user", [typed]))
    # The client's own Stop event trims an answer; a prompt is kept to the last blank.
    joined = [Said(role, "\n\n".join(texts)) for role, texts in said]
    return [Said(role, text.strip() if role == "assistant" else text) for role, text in joined]


def _in_order(lines: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort by time: the first write of a file may hold the answer before its prompt."""
    dated = [line for line in lines if line.get("timestamp")]
    return sorted(dated, key=lambda line: line["timestamp"])


def _spoken(line: Mapping[str, Any]) -> str:
    if line.get("isApiErrorMessage"):
        return ""
    return "\n\n".join(
        block["text"]
        for block in line["message"]["content"]
        if block["type"] == "text" and block["text"].strip() not in ("", _SILENCE)
    )


def _typed(line: Mapping[str, Any], commands: Collection[str]) -> str:
    if line.get("type") == "attachment":
        held = line["attachment"]
        if held.get("type") != "queued_command" or held.get("commandMode", "prompt") != "prompt":
            return ""
        return _words(held.get("prompt"), commands)
    if line.get("type") != "user" or line.get("isMeta") or line.get("isCompactSummary"):
        return ""
    if "toolUseResult" in line or (line.get("origin") or {}).get("kind") == "task-notification":
        return ""
    return _words(line["message"]["content"], commands)


def _words(content: Any, commands: Collection[str]) -> str:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    if any(block["type"] == "tool_result" for block in blocks):
        return ""
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    if text.startswith(_CLIENTS_OWN):
        return ""
    shell = re.match(r"<bash-input>(.*)</bash-input>", text, re.DOTALL)
    if shell:
        return "!" + shell[1]
    command = re.search(r"<command-name>(/[^<]*)</command-name>", text)
    if command:
        given = re.search(r"<command-args>(.*)</command-args>", text, re.DOTALL)
        typed = f"{command[1]} {given[1] if given else ''}".strip()
        return typed if command[1] in commands else ""
    if not text.strip() and any(block["type"] == "image" for block in blocks):
        return "[image]"
    return text
