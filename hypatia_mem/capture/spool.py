r"""The spool: what hooks saw, append-only, until a verified snapshot of the store holds it.

Format v1. ``spool/<session>.jsonl``, one JSON object a line::

    {"v":1,"crc":"89abcdef","at":1780000000000000000,"dir":"/p","client":"claude-code_2-1-332",
     "entry":"cli","red":0,"event":{...the hook's input...}}\n

- ``crc``: CRC-32 of every byte behind ``"crc":"........",`` up to the closing brace, so that a
  torn or damaged line is told from a whole one.
- ``at``: Unix nanoseconds. ``dir``: the client's project folder. ``client``, ``entry``: which one.
- ``red``: 0 the input as it came, 1 redacted first, 2 the redactor failed and only ids were kept.
- ``event``: the input byte for byte; line breaks, which JSON allows between tokens only, become
  spaces. The hook does not parse it: a line that is whole but no JSON is damage to the reader.

One ``write`` with ``O_APPEND`` and a sync make a record; writers never wait for each other. A
writer that finds the file not ending in a line break begins with one, so a torn tail costs itself
and nothing after it. A segment above 8 MiB is renamed out of the way. A segment is known by its
first record, not by its name, so a rename at any time keeps the reader's cursor.
"""

from __future__ import annotations

import os
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = [
    "Damage",
    "Record",
    "Segment",
    "append",
    "file_name",
    "iter_records",
    "quarantine",
    "remove_segment",
    "segments",
]

VERSION = 1
SEGMENT_BYTES = 8 << 20
CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 256 << 20
_HEAD = b'{"v":1,"crc":"'
_ID_BYTES = 64
_HEAD_LENGTH = len(_HEAD) + 8 + 2  # ... crc, then `",`
_O_BINARY = getattr(os, "O_BINARY", 0)
_O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)


class Record:
    """One hook event as spooled; ``offset`` and ``end`` are byte positions in its segment."""

    __slots__ = (
        "at_ns", "client", "dir", "end", "entry", "event", "offset", "redacted", "session"
    )  # fmt: skip

    def __init__(
        self,
        session: str,
        offset: int,
        end: int,
        fields: dict[str, Any],
    ) -> None:
        self.session = session
        self.offset = offset
        self.end = end
        self.at_ns: int = int(fields.get("at") or 0)
        self.dir: str = str(fields.get("dir") or "")
        self.client: str = str(fields.get("client") or "")
        self.entry: str = str(fields.get("entry") or "")
        self.redacted: int = int(fields.get("red") or 0)
        self.event: dict[str, Any] = fields["event"]


class Damage:
    """A line that is not a whole record: its bytes and why."""

    __slots__ = ("end", "line", "offset", "reason", "session")

    def __init__(self, session: str, offset: int, end: int, line: bytes, reason: str) -> None:
        self.session = session
        self.offset = offset
        self.end = end
        self.line = line
        self.reason = reason


class Segment:
    """One spool file. ``id`` survives a rename; ``size`` in bytes."""

    __slots__ = ("id", "path", "session", "size")

    def __init__(self, path: str, identity: str, session: str, size: int) -> None:
        self.path = path
        self.id = identity
        self.session = session
        self.size = size


def append(
    home: str, session: str, event: bytes, *, at_ns: int, meta: bytes = b"", red: int = 0
) -> None:
    """Make one record durable. Raises OSError, and then the record is not acknowledged.

    ``session`` is a name that ``file_name`` accepts; ``meta`` is JSON members (``"dir":"...",``)
    that stand between time and event.
    """
    body = b'"at":%d,%s"red":%d,"event":%s}' % (at_ns, meta, red, _one_line(event))
    line = b'%s%08x",%s\n' % (_HEAD, crc32(body), body)
    folder = os.path.join(home, "spool")
    path = os.path.join(folder, session + ".jsonl")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | _O_CLOEXEC | _O_BINARY
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        from . import paths

        paths.ensure_home(home)
        fd = os.open(path, flags, 0o600)
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        if size:
            os.lseek(fd, size - 1, os.SEEK_SET)
            if os.read(fd, 1) != b"\n":
                line = b"\n" + line
        _write_all(fd, line)
        _sync(fd)
    finally:
        os.close(fd)
    if size > SEGMENT_BYTES:
        try:
            os.rename(path, os.path.join(folder, f"{session}.{at_ns}.jsonl"))
        except OSError:
            return  # another writer was first, or the platform keeps open files in place


def file_name(session_id: str) -> str:
    """Return the session id if it can name a file as it is, else ``""``."""
    if not 0 < len(session_id) <= 128 or not session_id.isascii():
        return ""
    return session_id if session_id.replace("-", "").replace("_", "").isalnum() else ""


def segments(home: str) -> list[Segment]:
    """Return the spool's segments, oldest first. A file without a whole first line is left out."""
    folder = os.path.join(home, "spool")
    found: list[tuple[int, Segment]] = []
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    for name in names:
        if not name.endswith(".jsonl"):
            continue
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                head = file.read(_ID_BYTES)
        except OSError:
            continue
        session = name[: -len(".jsonl")].partition(".")[0]
        if len(head) < _ID_BYTES:  # shorter than any record: a torn first line, healed later
            continue
        identity = f"{session}:{_identity(head)}"
        found.append((status.st_mtime_ns, Segment(path, identity, session, status.st_size)))
    found.sort(key=lambda pair: (pair[0], pair[1].path))
    return [segment for _, segment in found]


def iter_records(path: str, offset: int = 0) -> Iterator[Record | Damage]:
    """Yield what stands between ``offset`` and the last line break. Raises OSError."""
    session = os.path.basename(path)[: -len(".jsonl")].partition(".")[0]
    for start, line, end in _lines(path, offset):
        if line.strip():
            yield _parse(session, start, end, line)


def quarantine(home: str, damage: Damage) -> str:
    """Keep a damaged line's bytes as evidence; the same damage found again is kept once."""
    folder = os.path.join(home, "spool", "quarantine")
    name = f"{damage.session}-{damage.offset}-{crc32(damage.line):08x}"
    path = os.path.join(folder, name)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _O_BINARY, 0o600)
    except FileExistsError:
        return path
    try:
        _write_all(fd, damage.line)
    finally:
        os.close(fd)
    return path


def remove_segment(segment: Segment) -> None:
    """Remove a segment that a verified snapshot holds; one already gone is no error."""
    try:
        os.unlink(segment.path)
    except FileNotFoundError:
        return


# --------------------------------------------------------------------------------------------


def _one_line(event: bytes) -> bytes:
    text = event.strip()
    if b"\n" in text or b"\r" in text:
        text = text.replace(b"\r", b" ").replace(b"\n", b" ")
    return text or b"null"


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync(fd: int) -> None:
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def _identity(head: bytes) -> str:
    """Make a file-name-safe id of a segment's first bytes (checksum and time of its first record)."""
    return f"{crc32(head):08x}{crc32(head[::-1]):08x}"


def _lines(path: str, offset: int) -> Iterator[tuple[int, bytes, int]]:
    with open(path, "rb") as file:
        file.seek(offset)
        pending: list[bytes] = []
        start = position = offset
        while chunk := file.read(CHUNK_BYTES):
            begin = 0
            while (cut := chunk.find(b"\n", begin)) >= 0:
                pending.append(chunk[begin:cut])
                end = position + cut + 1
                yield start, b"".join(pending), end
                pending.clear()
                start, begin = end, cut + 1
            pending.append(chunk[begin:])
            position += len(chunk)
            if position - start > MAX_LINE_BYTES:  # no writer makes such a line: give up on it
                pending.clear()


def _parse(session: str, start: int, end: int, line: bytes) -> Record | Damage:
    if not line.startswith(_HEAD) or line[_HEAD_LENGTH - 2 : _HEAD_LENGTH] != b'",':
        return Damage(session, start, end, line, "no record of a version known here")
    body = line[_HEAD_LENGTH:]
    if b"%08x" % crc32(body) != line[len(_HEAD) : len(_HEAD) + 8]:
        return Damage(session, start, end, line, "the checksum does not fit: torn or changed")
    import json

    try:
        fields = json.loads(b"{" + body)
    except (ValueError, RecursionError):
        try:
            fields = json.loads((b"{" + body).decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return Damage(session, start, end, line, "the hook's input was no JSON")
    if not isinstance(fields, dict) or not isinstance(fields.get("event"), dict):
        return Damage(session, start, end, line, "the hook's input was no JSON object")
    return Record(session, start, end, fields)
