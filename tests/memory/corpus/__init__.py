"""Conversations of the kinds people have, with where topics begin and what each is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from hypatia_mem.memory.extract.topics import Said

FILE = Path(__file__).with_name("conversations.txt")
UNSEEN = Path(__file__).with_name("unseen.txt")  # written by somebody who had not read the cues
BEGIN = datetime(2026, 1, 1, 9)


@dataclass(frozen=True)
class Conversation:
    """What was said in order, and the topics as (first message, kind)."""

    id: str
    language: str
    said: tuple[Said, ...]
    topics: tuple[tuple[int, str], ...]


def conversations(file: Path = FILE) -> list[Conversation]:
    """Read a corpus: ``@ id language``, ``= kind``, ``u`` and ``a`` lines.

    Thanks and good-byes end the topic they follow. A minute passes between two messages: no pause gives a topic away.
    """
    found = []
    for block in file.read_text("utf-8").split("@ ")[1:]:
        head, *lines = block.strip().split("\n")
        number, language = head.split()
        said: list[Said] = []
        topics: list[tuple[int, str]] = []
        for line in lines:
            mark, _, text = line.partition(" ")
            if mark == "=":
                topics.append((len(said), text))
                continue
            role = {"u": "user", "a": "assistant"}[mark]
            at = BEGIN + timedelta(minutes=len(said))
            said.append(Said(f"msg-{number}-{len(said) + 1}", len(said) + 1, role, text, at))
        found.append(Conversation(number, language, tuple(said), tuple(topics)))
    return found
