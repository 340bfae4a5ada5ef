"""Read the lines of a transcript: whole ones only, from a byte offset on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

__all__ = ["Lines", "read_lines"]

MAX_LINE_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20
DEFAULT_LIMIT_BYTES = 8 << 20

# Whole requests, repeated for every model call: most of the bytes of a new client's transcript.
_NOISE = (b'{"type":"api-request', b'{"type":"cost-state', b'{"type":"file-history')


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
