"""The client's own files that still hold what was erased: found, told of, and scrubbed on request.

They are not ours. Nothing here changes one unless a person asked for exactly that. A scrubbing
keeps every line, every id and every byte position: the words become ``[erased]`` and the line is
filled up with blanks, in place, so that a client that goes on appending is not disturbed, and a
reader that has come to the middle of the file goes on from there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypatia_mem.memory.erasing.pieces import Pieces

__all__ = ["ERASED", "Holding", "holding", "scrub"]

ERASED = "[erased]"
_HISTORY = "history.jsonl"
_MAX_LINE = 128 << 20


@dataclass(frozen=True, slots=True)
class Holding:
    """A file of the client and in how many of its lines a piece stands."""

    path: str
    lines: int


def holding(
    transcripts: Iterable[str], pieces: Sequence[str], environ: Mapping[str, str]
) -> list[Holding]:
    """Return the client's files that hold a piece.

    Looked at are these transcripts, all others beside and below them, and the client's history of
    typed prompts. What cannot be read is passed over.
    """
    looked = Pieces(pieces)
    found: list[Holding] = []
    for path in _files(transcripts, environ):
        try:
            if looked.in_file(path):
                with path.open("rb") as file:
                    lines = sum(looked.in_bytes(line) for line in file)
                found.append(Holding(str(path), max(1, lines)))
        except OSError:
            continue
    return found


def scrub(path: Path, pieces: Sequence[str]) -> int:
    """Put ``[erased]`` in the place of every piece in a file of JSON lines; return how many lines.

    Raises OSError. A line that is no JSON is blanked as a whole where a piece stands in it.
    """
    looked = Pieces(pieces)
    pattern = _pattern(pieces)
    changed = 0
    with path.open("r+b") as file:
        while True:
            start = file.tell()
            line = file.readline(_MAX_LINE)
            if not line:
                break
            if not looked.in_bytes(line):
                continue
            body = line.rstrip(b"\r\n")
            end = file.tell()
            file.seek(start)
            file.write(_scrubbed(body, pattern, looked))
            file.flush()
            file.seek(end)
            changed += 1
        os.fsync(file.fileno())
    return changed


# ----------------------------------------------------------------------------------------------


def _files(transcripts: Iterable[str], environ: Mapping[str, str]) -> list[Path]:
    found: dict[str, Path] = {}
    for text in transcripts:
        path = Path(text)
        if not path.is_absolute() or path.suffix != ".jsonl" or not path.parent.is_dir():
            continue
        for one in path.parent.rglob("*.jsonl"):
            if one.is_file() and not one.is_symlink():
                found.setdefault(str(one), one)
    given = environ.get("CLAUDE_CONFIG_DIR", "")
    history = (Path(given) if given else Path.home() / ".claude") / _HISTORY
    if history.is_file():
        found.setdefault(str(history), history)
    return [found[name] for name in sorted(found)]


def _pattern(pieces: Sequence[str]) -> re.Pattern[str]:
    ordered = sorted(pieces, key=len, reverse=True)
    words = (r"\s+".join(map(re.escape, piece.split())) for piece in ordered if piece.split())
    return re.compile("|".join(words) or r"(?!)", re.IGNORECASE)


def _scrubbed(body: bytes, pattern: re.Pattern[str], pieces: Pieces) -> bytes:
    """Return a line of the same length without the pieces."""
    try:
        value = json.loads(body)
        said = json.dumps(_replaced(value, pattern), ensure_ascii=False, separators=(",", ":"))
        made = said.encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return b" " * len(body)
    if len(made) > len(body) or pieces.in_bytes(made):
        return b" " * len(body)
    return made.ljust(len(body))


def _replaced(value: Any, pattern: re.Pattern[str]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        return pattern.sub(ERASED, value)
    if isinstance(value, list):
        return [_replaced(one, pattern) for one in value]
    if isinstance(value, dict):
        return {pattern.sub(ERASED, key): _replaced(one, pattern) for key, one in value.items()}
    return value
