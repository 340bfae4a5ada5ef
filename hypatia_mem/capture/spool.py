r"""The spool: what hooks saw, append-only, until a verified snapshot of the store holds it.

Format v1. ``spool/<session>.jsonl``, folder 0700, files 0600, one JSON object a line::

    {"v":1,"crc":"89abcdef","at":1780000000000000000,"dir":"/p","client":"claude-code_2-1-332",
     "entry":"cli","red":0,"event":{...the hook's input...}}\n

- ``crc``: CRC-32 of every byte behind ``"crc":"........",`` up to and with the last brace, so that
  a torn or damaged line is told from a whole one.
- ``at``: Unix nanoseconds. ``dir``: the client's project folder (``CLAUDE_PROJECT_DIR``).
  ``client``, ``entry``: which client, and by which door (``AI_AGENT``, ``CLAUDE_CODE_ENTRYPOINT``).
- ``red``: 0 the input as it came, 1 the redactor has been over it, 2 the redactor failed and only
  ids were kept (the text is then the transcript's to tell).
- ``v``: a later version N keeps the frame ``{"v":N,"crc":"........",`` and starts its checksum at
  N, so that an older reader tells a newer record from a damaged one.
- ``event``: the input byte for byte; line breaks, which JSON has between tokens only, are spaces.
  The hook does not parse it: a whole line whose event is no JSON object is the reader's damage.

What writers promise: one ``write`` with ``O_APPEND`` and a sync make a record, and no writer waits
for anything. A writer that finds the file not ending in a line break begins with one, so a torn
tail costs itself and nothing after it. A segment above 8 MiB is renamed to
``<session>.<at>.jsonl``. A segment is known by its first bytes, not by its name, so a rename at any
time keeps the reader's cursor.

What readers promise: they stop at the last line break, hold one line in memory, and stop in front
of a record that a newer version wrote. Removing is safe beside a writer: writers hold a shared
lock for their write, and one that finds the file locked or gone begins another segment.
"""

from __future__ import annotations

import sys
from binascii import crc32

from hypatia_mem.capture import paths
from hypatia_mem.capture.paths import O_BINARY, O_CLOEXEC, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

__all__ = [
    "Damage",
    "Failure",
    "Record",
    "Segment",
    "append",
    "iter_records",
    "json_string",
    "last_failure",
    "note_failure",
    "quarantine",
    "remove_segment",
    "segments",
    "session_name",
]

VERSION = 1
SEGMENT_BYTES = 8 << 20
CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 128 << 20  # four times what a hook keeps, for escapes
MAX_NAME = 128
AS_IT_CAME, REDACTED, IDS_ONLY = 0, 1, 2

_HEAD = b'{"v":1,"crc":"'
_CRC_END = len(_HEAD) + 8
_BODY = _CRC_END + 2  # behind `",`
_ID_BYTES = 64  # shorter than the shortest record, and past its checksum and time
_SUFFIX = ".jsonl"
_NAME = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_NO_LINK: int = getattr(system, "O_NOFOLLOW", 0)
_APPEND: int = system.O_RDWR | system.O_CREAT | system.O_APPEND | O_CLOEXEC | O_BINARY


class Record:
    """One hook event as spooled.

    ``offset`` and ``end`` are byte positions in its segment, ``at_ns`` Unix nanoseconds,
    ``redacted`` the format's ``red``, ``event`` the hook's input with lone surrogates replaced.
    """

    __slots__ = (
        "at_ns", "client", "dir", "end", "entry", "event", "offset", "redacted", "session"
    )  # fmt: skip

    def __init__(self, session: str, offset: int, end: int, fields: dict[str, Any]) -> None:
        """Take over the parsed line. Raises TypeError or ValueError where it is no record."""
        self.session = session
        self.offset = offset
        self.end = end
        self.at_ns = int(fields.get("at") or 0)
        self.dir = str(fields.get("dir") or "")
        self.client = str(fields.get("client") or "")
        self.entry = str(fields.get("entry") or "")
        self.redacted = int(fields.get("red") or 0)
        event = fields.get("event")
        if not isinstance(event, dict):
            raise TypeError("the event is no JSON object")
        self.event: dict[str, Any] = event


class Damage:
    """A stretch of a segment that is no record: its bytes (``line``) and why (``reason``)."""

    __slots__ = ("end", "line", "offset", "reason", "session")

    def __init__(self, session: str, offset: int, end: int, line: bytes, reason: str) -> None:
        """Keep what was found."""
        self.session = session
        self.offset = offset
        self.end = end
        self.line = line
        self.reason = reason


class Segment:
    """One spool file. ``id`` is the cursor's key and survives a rename; ``size`` in bytes."""

    __slots__ = ("id", "path", "session", "size")

    def __init__(self, path: str, identity: str, session: str, size: int) -> None:
        """Keep what was found."""
        self.path = path
        self.id = identity
        self.session = session
        self.size = size


class Failure:
    """The last time a hook could not keep its record: when (Unix seconds), why and where."""

    __slots__ = ("at", "path", "reason")

    def __init__(self, at: float, reason: str, path: str) -> None:
        """Keep what was found."""
        self.at = at
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        """Say it in a sentence."""
        import time

        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.at))
        return f"{when} a hook could not keep a record: {self.reason} ({self.path})"


# Writing ------------------------------------------------------------------------------------------


def append(
    home: str, session: str, event: bytes, *, at_ns: int, meta: bytes = b"", red: int = 0
) -> None:
    """Make one record durable; when it returns, the record is acknowledged.

    ``session`` is a name that ``session_name`` gave; ``meta`` is JSON members with a comma behind
    each (``"dir":"/p",``).

    Raises:
        OSError: the record could not be made durable (disk full, read-only, no permission).
    """
    if b"\n" in event:
        event = event.replace(b"\n", b" ")
    body = b'"at":%d,%s"red":%d,"event":%s}' % (at_ns, meta, red, event)
    line = b'%s%08x",%s\n' % (_HEAD, crc32(body), body)
    name = f"{home}/{paths.SPOOL}/{session}"
    # The second name: a reader is just removing the first, which it does only with a drained one.
    if not _append_line(home, name + _SUFFIX, line, at_ns):
        other = f"{name}.{at_ns}{_SUFFIX}"
        if not _append_line(home, other, line, at_ns):
            raise FileNotFoundError(2, "the segment was removed while it was written", other)


def _append_line(home: str, path: str, line: bytes, at_ns: int) -> bool:
    fd = _open(home, path)
    try:
        if not _begin(fd):
            return False
        size = _end_of(fd)
        if size and not _ends_line(fd, size):
            line = b"\n" + line
        written = system.write(fd, line)
        if written < len(line):
            # The disk took a part. Once more, whole: another writer may be behind it already.
            paths.write_all(fd, b"\n" + line.lstrip(b"\n"))
        _sync(fd)
    finally:
        system.close(fd)
    if size > SEGMENT_BYTES:
        _put_aside(path, at_ns)
    return True


def _open(home: str, path: str) -> int:
    try:
        return int(system.open(path, _APPEND, 0o600))
    except FileNotFoundError:
        paths.ensure_home(home)
        return int(system.open(path, _APPEND, 0o600))


def _begin(fd: int) -> bool:
    """Keep a remover out; False when one is at work or has been there. Never waits."""
    if sys.platform == "win32":
        return True  # no open file is removed there
    try:
        return paths.try_lock(fd, shared=True) and system.fstat(fd).st_nlink > 0
    except OSError:  # a file system without locks: no remover can have one either
        return True


def _end_of(fd: int) -> int:
    return int(system.lseek(fd, 0, 2))


def _ends_line(fd: int, size: int) -> bool:
    system.lseek(fd, size - 1, 0)
    return bool(system.read(fd, 1) == b"\n")


def _sync(fd: int) -> None:
    if hasattr(system, "fdatasync"):
        system.fdatasync(fd)
    else:
        system.fsync(fd)


def _put_aside(path: str, at_ns: int) -> None:
    stem = path[: -len(_SUFFIX)]
    if "." in stem.rpartition("/")[2]:
        return
    try:
        if system.stat(path).st_size > SEGMENT_BYTES:  # else another writer was first
            system.rename(path, f"{stem}.{at_ns}{_SUFFIX}")
    except OSError:
        return  # Windows keeps an open file's name; the next writer tries again


def session_name(session_id: str) -> str:
    """Return the session id where it can name a file as it is, else ``""``."""
    if not 0 < len(session_id) <= MAX_NAME or not session_id.isascii():
        return ""
    return "" if session_id.encode().translate(None, _NAME) else session_id


def json_string(text: str) -> bytes:
    """Return a text as a JSON string in ASCII, without importing ``json``."""
    lines = text.replace("\n", "")  # whose other characters are all but always printable
    if lines.isascii() and lines.isprintable():
        plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return b'"%s"' % plain.encode()
    try:
        from _json import encode_basestring_ascii as encode
    except ImportError:
        from json import dumps as encode
    return str(encode(text)).encode()


# Reading ------------------------------------------------------------------------------------------


def segments(home: str) -> list[Segment]:
    """Return the spool's segments, by the time of their first record.

    A file too short to hold a record is left out: a torn first line, which the next writer heals.
    """
    folder = f"{home}/{paths.SPOOL}"
    found: list[tuple[int, str, Segment]] = []
    try:
        names = system.listdir(folder)
    except OSError:
        return []
    for name in names:
        if not name.endswith(_SUFFIX):
            continue
        path = f"{folder}/{name}"
        try:
            size = system.stat(path).st_size
            head = paths.read_file(path, _ID_BYTES)
        except OSError:
            continue
        if len(head) == _ID_BYTES:
            session = _session_of(path)
            identity = f"{session}:{crc32(head):08x}{crc32(head[::-1]):08x}"
            found.append((_time_of(head), name, Segment(path, identity, session, size)))
    found.sort(key=lambda triple: triple[:2])
    return [segment for _, _, segment in found]


def iter_records(path: str, offset: int = 0) -> Iterator[Record | Damage]:
    """Yield what stands between ``offset`` and the last line break, in order.

    Empty lines are passed over. Ends early in front of a record that a newer version wrote.

    Raises:
        OSError: the segment cannot be read.
    """
    session = _session_of(path)
    for start, line, end in _lines(path, offset):
        if line.startswith(b'{"v":') and not line.startswith(_HEAD) and _is_newer(line):
            return
        if line.strip():
            yield from _parse(session, start, end, line)


def quarantine(home: str, damage: Damage) -> str:
    """Keep a damage's bytes in ``spool/quarantine`` and return the file; once, however often found.

    Raises:
        OSError: they cannot be written.
    """
    name = f"{damage.session}-{damage.offset}-{crc32(damage.line):08x}"
    path = f"{home}/{paths.SPOOL_QUARANTINE}/{name}"
    flags = system.O_WRONLY | system.O_CREAT | system.O_TRUNC | O_CLOEXEC | O_BINARY
    try:
        if system.stat(path).st_size == len(damage.line):
            return path
    except OSError:
        pass
    try:
        fd = system.open(path, flags, 0o600)
    except FileNotFoundError:
        paths.ensure_home(home)
        fd = system.open(path, flags, 0o600)
    try:
        paths.write_all(fd, damage.line)
    finally:
        system.close(fd)
    return path


def remove_segment(segment: Segment) -> bool:
    """Remove a segment that a verified snapshot holds; False when it must stay.

    It stays when it has grown since ``segment`` was made or a writer has it at this moment.

    Raises:
        OSError: the file system refused.
    """
    try:
        fd = system.open(segment.path, system.O_RDWR | O_CLOEXEC | O_BINARY)
    except FileNotFoundError:
        return True
    try:
        if sys.platform != "win32" and not paths.try_lock(fd):
            return False
        if _end_of(fd) != segment.size:
            return False
        if sys.platform != "win32":
            system.unlink(segment.path)  # under the lock: no writer can be at it
            return True
    finally:
        system.close(fd)
    system.unlink(segment.path)  # refused there while a writer has it open
    return True


def _session_of(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2]
    return name[: -len(_SUFFIX)].partition(".")[0]


def _time_of(head: bytes) -> int:
    digits = head[_BODY:].partition(b'"at":')[2].partition(b",")[0]
    return int(digits) if digits.isdigit() else 0


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
            if position - start > MAX_LINE_BYTES:
                del pending[1:]  # no writer makes such a line: what is kept of it is its beginning


def _parse(session: str, start: int, end: int, line: bytes) -> Iterator[Record | Damage]:
    """Yield a line's record, or its damage and a whole record that stands behind the damage."""
    found = _record(session, start, end, line)
    if isinstance(found, Record):
        yield found
        return
    # A torn write that another writer's record followed at once: no event holds these bytes, its
    # quotes would be escaped.
    at = line.rfind(_HEAD)
    if at > 0:
        behind = _record(session, start + at, end, line[at:])
        if isinstance(behind, Record):
            yield Damage(session, start, start + at, line[:at], found)
            yield behind
            return
    yield Damage(session, start, end, line, found)


def _record(session: str, start: int, end: int, line: bytes) -> Record | str:
    """Return a line's record, or why it is none."""
    if not line.startswith(_HEAD) or line[_CRC_END:_BODY] != b'",':
        return "not a record of any version known here"
    if b"%08x" % crc32(memoryview(line)[_BODY:]) != line[len(_HEAD) : _CRC_END]:
        return "the checksum does not fit: torn, or changed"
    import json

    text = line.decode("utf-8", "replace")
    try:
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise TypeError("the line is no JSON object")
        if "\\u" in text:
            fields = {key: _whole(value) for key, value in fields.items()}
        return Record(session, start, end, fields)
    except (ValueError, TypeError, RecursionError):
        return "the hook's input was no JSON object"


def _is_newer(line: bytes) -> bool:
    """Tell whether a line is a whole record of a later version: its checksum starts at that."""
    version, _, rest = line[len(b'{"v":') :].partition(b',"crc":"')
    if not version.isdigit() or len(version) > 4 or int(version) <= VERSION:
        return False
    return rest[:10] == b'%08x",' % crc32(memoryview(rest)[10:], int(version))


def _whole(value: object) -> object:
    """Replace lone surrogates, which no encoder downstream would take."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


# Failures -----------------------------------------------------------------------------------------


def note_failure(home: str, error: BaseException, environ: Mapping[str, str]) -> None:
    """Say that a record was not kept: in the log, else in a marker below the temporary folder.

    Never raises, and never says what the record held.
    """
    import time

    reason, path = type(error).__name__, home
    if isinstance(error, OSError):
        import errno

        reason = errno.errorcode.get(error.errno or 0, reason)
        reason = f"{reason} {error.strerror}" if error.strerror else reason
        path = error.filename if isinstance(error.filename, str) else home
    try:
        if not home:
            raise FileNotFoundError(2, "no home")
        paths.log_line(home, "ERROR", "hook", f"a record was not kept: {reason} ({path})")
    except Exception:  # noqa: BLE001 - the log is as unwritable as the spool: leave a marker
        _leave_marker(f"{time.time():.0f}\t{reason}\t{path}\t{home}\n", environ)


def last_failure(home: str = "") -> Failure | None:
    """Return the last time a hook could not keep its record; None when that never happened."""
    environ = paths.environment()
    try:
        home = home or paths.home(environ)
    except OSError:
        home = ""
    found = [_logged_failure(f"{home}/{paths.LOG}"), _logged_failure(f"{home}/{paths.LOG}.1")]
    found.append(_read_marker(_marker_folder(environ), home))
    there = [failure for failure in found if failure is not None]
    return max(there, key=lambda failure: failure.at) if there else None


def _logged_failure(path: str) -> Failure | None:
    try:
        text = paths.read_file(path, 2 * paths.LOG_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    for line in reversed(text.splitlines()):
        when, _, rest = line.partition(" ")
        if rest.startswith("ERROR hook a record was not kept: "):
            reason, _, where = rest.partition("kept: ")[2].rpartition(" (")
            return Failure(_seconds(when), reason, where.removesuffix(")"))
    return None


def _seconds(when: str) -> float:
    import calendar
    import time

    try:
        return float(calendar.timegm(time.strptime(when, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return 0.0


def _user() -> int:
    return int(system.getuid()) if hasattr(system, "getuid") else 0


def _marker_folder(environ: Mapping[str, str]) -> str:
    given = (environ.get(name, "").rstrip("/") for name in ("TMPDIR", "TEMP", "TMP"))
    return f"{next(filter(None, given), '/tmp')}/hypatia-mem-{_user()}"


def _is_ours(folder: str) -> bool:
    """Tell whether a folder is the user's own and no link: the folder above is everybody's."""
    try:
        status = system.lstat(folder)
    except (OSError, ValueError):
        return False
    return status.st_mode & 0o170000 == 0o040000 and status.st_uid == _user()


def _leave_marker(text: str, environ: Mapping[str, str]) -> None:
    flags = system.O_WRONLY | system.O_CREAT | system.O_TRUNC | O_CLOEXEC | O_BINARY
    folder = _marker_folder(environ)
    try:
        if not _is_ours(folder):
            system.mkdir(folder, 0o700)
        fd = system.open(f"{folder}/hook-failure", flags | _NO_LINK, 0o600)
        try:
            paths.write_all(fd, text.encode("utf-8", "backslashreplace"))
        finally:
            system.close(fd)
    except (OSError, ValueError):
        return  # there is no place left to say it


def _read_marker(folder: str, home: str) -> Failure | None:
    """Return what the marker says of this home, or of a hook that found no home at all."""
    if not _is_ours(folder):
        return None
    try:
        text = paths.read_file(f"{folder}/hook-failure", 16384).decode("utf-8", "replace")
        when, reason, path, where = text.rstrip("\n").split("\t", 3)
        return Failure(float(when), reason, path) if where in ("", home) else None
    except (OSError, ValueError):
        return None
