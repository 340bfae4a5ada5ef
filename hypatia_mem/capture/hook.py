"""What the client runs at each event: capture first, print second, exit 0 whatever happens (I1).

The order is fixed: guards (I6), redaction if a look at the bytes asks for it, one durable record,
the worker's start, and only then output. An ordinary prompt imports neither ``json`` nor ``re``.
Nothing here opens the store, waits for a lock, or writes to stderr: the client shows stderr to
the person, and exit code 2 would block the prompt.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Failure", "handle", "last_failure", "main", "start_worker"]

EVENTS = (b"SessionStart", b"UserPromptSubmit", b"Stop", b"PreCompact", b"SessionEnd")
GUARD = "HYPATIA_MEM_INTERNAL"
MARKER = b"hypatia-mem:internal"
HEARTBEAT_STALE_SECONDS = 60
MAX_INPUT = 512 << 20
# What the worker may see of the environment: never a key, never a token.
WORKER_ENV = (
    "HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USERPROFILE",
    "LOCALAPPDATA", "APPDATA", "CLAUDE_CONFIG_DIR", "HYPATIA_MEM_HOME",
)  # fmt: skip
WORKER_ENV_PREFIXES = ("LC_", "XDG_", "HYPATIA_MEM_")
_SAFE_KEYS = ("session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name")


class Failure:
    """The last time a hook could not keep its record: when (Unix seconds), why and where."""

    __slots__ = ("at", "path", "reason")

    def __init__(self, at: float, reason: str, path: str) -> None:
        self.at = at
        self.reason = reason
        self.path = path


class _Quiet(Exception):
    """There is nothing to do for this event; not an error."""


def main() -> None:
    """Run as a hook and never return: the process ends here with exit code 0."""
    try:
        handle(_read(0), os.environ, 1)
    except BaseException:  # noqa: BLE001 - the one handler of the hot path: nothing may get out
        pass
    os._exit(0)


def handle(data: bytes, environ: Mapping[str, str], out: int) -> None:
    """Handle one event's input; write what the client is to see to the descriptor ``out``.

    Never raises: what went wrong is in the program's log, or, where that cannot be written, in a
    marker that ``last_failure`` finds.
    """
    from . import paths

    home = ""
    try:
        if environ.get(GUARD) or environ.get("HYPATIA_MEM_CAPTURE", "").lower() in ("off", "0"):
            return
        home = paths.home()
        _handle(home, data, environ, out)
    except _Quiet:
        return
    except Exception as error:  # noqa: BLE001 - a failing hook must not fail the session
        _note_failure(home, error)


def _handle(home: str, data: bytes, environ: Mapping[str, str], out: int) -> None:
    from . import spool

    event = _value(data, b"hook_event_name")
    if event is None:
        event = _parsed_value(data, "hook_event_name")
    if event not in EVENTS:
        return
    conf = _conf(home)
    _guard(home, data, environ, conf)
    session = _session(data)
    kept, red = _redacted(data)
    spool.append(home, session, kept, at_ns=time.time_ns(), meta=_meta(environ), red=red)
    # From here on the turn is safe; the rest may fail without a loss.
    lines: bytes = b""
    if event == b"UserPromptSubmit":
        lines = _prompt_output(home, session, kept, environ, conf)
    elif event == b"SessionStart":
        lines = _brief(home, data, environ) if conf.get("briefs") != "off" else b""
    elif event == b"SessionEnd" and conf.get("triggers") != "off":
        lines = b"TRIGGER:session-end\n"
    elif event == b"Stop" and conf.get("triggers") == "literal":
        lines = b"TRIGGER:log\n"
    if lines:
        _write(out, lines)
    start_worker(home, environ, conf)


# -- guards -----------------------------------------------------------------------------------


def _guard(home: str, data: bytes, environ: Mapping[str, str], conf: dict[str, str]) -> None:
    """Leave at once when this is our own traffic or a folder that is not to be kept."""
    if conf.get("capture") == "off" or MARKER in data:
        raise _Quiet
    folder = environ.get("CLAUDE_PROJECT_DIR") or _text(_value(data, b"cwd"))
    if not folder:
        return
    for excluded in (home, *conf.get("excluded", "").split("\t")):
        if excluded and (folder == excluded or folder.startswith(excluded.rstrip("/\\") + os.sep)):
            raise _Quiet


# -- the record -------------------------------------------------------------------------------


def _session(data: bytes) -> str:
    from . import spool

    for key in (b"session_id", b"conversation_id"):
        found = _value(data, key)
        if found is None:
            found = _parsed_value(data, key.decode())
        name = spool.file_name(_text(found))
        if name:
            return name
    path = _value(data, b"transcript_path") or _parsed_value(data, "transcript_path")
    if path:
        from _blake2 import blake2b

        return "t-" + str(blake2b(path, digest_size=12).hexdigest())
    return "unknown"


def _redacted(data: bytes) -> tuple[bytes, int]:
    """Return what may touch the disk. If the redactor fails, ids only: never the raw bytes."""
    from .hints import may_hold_secret

    if not may_hold_secret(data):
        return data, 0
    try:
        from .redact import redact_event

        return redact_event(data), 1
    except Exception:  # noqa: BLE001 - whatever it was, the text must not be written
        import json

        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            event = {}
        safe = {key: event[key] for key in _SAFE_KEYS if isinstance(event.get(key), str)}
        return json.dumps(safe).encode(), 2


def _meta(environ: Mapping[str, str]) -> bytes:
    folder = _json_text(environ.get("CLAUDE_PROJECT_DIR", ""))
    client = _json_text(environ.get("AI_AGENT", ""))
    entry = _json_text(environ.get("CLAUDE_CODE_ENTRYPOINT", ""))
    return b'"dir":%s,"client":%s,"entry":%s,' % (folder, client, entry)


def _json_text(text: str) -> bytes:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return b'"%s"' % text.encode()
    import json

    return json.dumps(text).encode()


# -- output -----------------------------------------------------------------------------------


def _prompt_output(
    home: str, session: str, event: bytes, environ: Mapping[str, str], conf: dict[str, str]
) -> bytes:
    from .hints import may_be_request

    mode = conf.get("triggers", "combined")
    if b'"prompt":"<task-notification>' in event or mode == "off":
        return b""
    lines: list[str] = ["TRIGGER:log"] if mode == "literal" else []
    if may_be_request(event):
        lines += _request_lines(home, event, environ, mode)
    every = int(conf.get("extract_every", "5") or 0) if conf.get("extract_every", "5").isdigit() else 5
    if every and _count(home, session) % every == 0:
        lines.append("TRIGGER:extract")
    if not lines:
        return b""
    text = "\n".join(lines)
    if text.isascii() and '"' not in text and "\\" not in text:
        quoted = text.replace("\n", "\\n")
    else:
        import json

        quoted = json.dumps(text)[1:-1]
    head = '{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"'
    return (head + quoted + '"}}\n').encode()


def _request_lines(
    home: str, event: bytes, environ: Mapping[str, str], mode: str
) -> list[str]:
    import json

    from . import immediate

    parsed = json.loads(event)
    prompt = parsed.get("prompt")
    request = immediate.parse(prompt) if isinstance(prompt, str) else None
    if request is None:
        return []
    if request.verb == "remember":
        name = immediate.entry_name(request)
        scope = "global" if request.is_global else _scope(home, parsed, environ)
        stored = f'[hypatia-memory] Stored: "{name}" ({request.kind}, scoped to {scope}).'
        return ["TRIGGER:immediate", stored] if mode == "literal" else [stored]
    words = " ".join(request.text.split())[:200].replace('"', "'")
    return [
        "TRIGGER:immediate",
        f'[hypatia-memory] Forget requested: "{words}". A single clear match is withheld already; '
        f'to see and choose among several: hypatia-mem forget "{words}"',
    ]


def _scope(home: str, event: dict[str, object], environ: Mapping[str, str]) -> str:
    from . import paths

    folder = environ.get("CLAUDE_PROJECT_DIR") or event.get("cwd")
    if not isinstance(folder, str) or not folder:
        return "this project"
    path = paths.brief_path(home, paths.find_root(folder).key)[: -len("json")] + "scope"
    try:
        return _slurp(path, 1024).decode("utf-8", "replace").strip() or "this project"
    except OSError:
        return "this project"


def _brief(home: str, data: bytes, environ: Mapping[str, str]) -> bytes:
    """Return the brief of the session's project as the worker rendered it, else the global one."""
    from . import paths

    folder = environ.get("CLAUDE_PROJECT_DIR") or _text(_value(data, b"cwd")) or os.getcwd()
    for key in (paths.find_root(folder).key, "global"):
        try:
            return _slurp(paths.brief_path(home, key), 1 << 20)
        except OSError:
            continue
    return b""


def _count(home: str, session: str) -> int:
    """Count this prompt: the file's size is the number of prompts of the session."""
    path = os.path.join(home, "turns", session)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, b".")
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


# -- the worker -------------------------------------------------------------------------------


def start_worker(
    home: str, environ: Mapping[str, str], conf: dict[str, str] | None = None
) -> bool:
    """Start a worker if none runs, detached and with a clean environment; True when started.

    A worker whose heartbeat is old gets a successor that looks whether it still lives.
    """
    conf = _conf(home) if conf is None else conf
    python = conf.get("python", "")
    if not python:
        return False
    more: list[str] = []
    if not _lock_is_free(home):
        try:
            age = time.time() - os.stat(os.path.join(home, "worker.lock")).st_mtime
        except OSError:
            return False
        if abs(age) <= HEARTBEAT_STALE_SECONDS:
            return False
        more = ["--takeover"]
    argv = [python, "-P", "-E", "-m", "hypatia_mem.worker", "--home", home, *more]
    env = {
        key: value
        for key, value in environ.items()
        if key in WORKER_ENV or key.startswith(WORKER_ENV_PREFIXES)
    }
    env[GUARD] = "1"
    if conf.get("worker_path"):
        argv[1:5] = ["-c", _BOOT % (conf["worker_path"],)]
    _spawn(argv, env)
    return True


# Used only where the package is not on the interpreter's own path (``worker_path``).
_BOOT = "import sys; sys.path.append(%r); from hypatia_mem.worker import main; sys.exit(main())"


def _lock_is_free(home: str) -> bool:
    from . import paths

    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    try:
        fd = os.open(os.path.join(home, "worker.lock"), flags, 0o600)
    except OSError:
        return False
    try:
        return paths.try_lock(fd)
    finally:
        os.close(fd)


def _spawn(argv: list[str], env: dict[str, str]) -> None:
    if not hasattr(os, "posix_spawn"):  # Windows
        import subprocess

        subprocess.Popen(  # noqa: S603 - our own interpreter, from a file only we write
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            creationflags=0x00000008 | 0x00000200,  # detached, own process group
            close_fds=True,
        )
        return
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in (0, 1, 2)]
    try:
        os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True)
    except NotImplementedError:  # a platform whose posix_spawn cannot make a session
        os.posix_spawn(argv[0], argv, env, file_actions=actions, setpgroup=0)
    finally:
        os.close(null)


# -- failures ---------------------------------------------------------------------------------


def last_failure(home: str) -> Failure | None:
    """Return the last time a hook could not keep its record, None when that never happened."""
    found: list[Failure] = []
    try:
        log = _slurp(os.path.join(home, "hypatia-mem.log"), 4 << 20).decode("utf-8", "replace")
    except OSError:
        log = ""
    for line in reversed(log.splitlines()):
        when, _, rest = line.partition(" ")
        level, _, rest = rest.partition(" ")
        component, _, sentence = rest.partition(" ")
        if level == "ERROR" and component == "hook":
            at = _utc(when)
            found.append(Failure(at, sentence, home))
            break
    marker = _marker_path()
    try:
        if os.stat(os.path.dirname(marker)).st_uid == getattr(os, "getuid", lambda: 0)():
            text = _slurp(marker, 4096).decode("utf-8", "replace").split("\t", 2)
            found.append(Failure(float(text[0]), text[1], text[2].strip()))
    except (OSError, ValueError, IndexError):
        pass
    return max(found, key=lambda failure: failure.at) if found else None


def _note_failure(home: str, error: Exception) -> None:
    """Say why in the log; where that is impossible, in a marker below the temporary folder."""
    reason = type(error).__name__
    path = home
    if isinstance(error, OSError):
        import errno

        reason = f"{errno.errorcode.get(error.errno or 0, reason)}: {error.strerror}"
        path = str(error.filename or home)
    from . import paths

    try:
        paths.log_line(home, "ERROR", "hook", f"a record was not kept: {reason} ({path})")
        return
    except Exception:  # noqa: BLE001 - the log is as unwritable as the spool: leave a marker
        pass
    try:
        marker = _marker_path()
        folder = os.path.dirname(marker)
        if not os.path.isdir(folder):
            os.mkdir(folder, 0o700)
        if hasattr(os, "getuid") and os.stat(folder).st_uid != os.getuid():
            return
        fd = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, f"{time.time():.0f}\t{reason}\t{path}\n".encode("utf-8", "replace"))
        finally:
            os.close(fd)
    except Exception:  # noqa: BLE001 - nothing more can be done without harm to the session
        return


def _marker_path() -> str:
    base = next((os.environ[k] for k in ("TMPDIR", "TEMP", "TMP") if os.environ.get(k)), "/tmp")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return os.path.join(base, f"hypatia-mem-{user}", "hook-failure")


def _utc(when: str) -> float:
    import calendar

    try:
        return float(calendar.timegm(time.strptime(when, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return 0.0


# -- bytes ------------------------------------------------------------------------------------


def _conf(home: str) -> dict[str, str]:
    try:
        text = _slurp(os.path.join(home, "hook.conf"), 1 << 16).decode("utf-8", "replace")
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _read(fd: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while size < MAX_INPUT:
        chunk = os.read(fd, 1 << 20)
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _slurp(path: str, limit: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        chunks: list[bytes] = []
        while limit > 0 and (chunk := os.read(fd, limit)):
            chunks.append(chunk)
            limit -= len(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


def _write(out: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(out, view) :]


def _value(data: bytes, key: bytes) -> bytes | None:
    """Return the raw string behind ``"key":``, None where the bytes do not show one plainly.

    Inside a JSON string a quote is escaped, so the pattern cannot be forged from a prompt.
    """
    start = data.find(b'"' + key + b'":"')
    if start < 0:
        return None
    start += len(key) + 4
    end = data.find(b'"', start)
    value = data[start:end] if end >= 0 else b""
    return value if value and b"\\" not in value else None


def _parsed_value(data: bytes, key: str) -> bytes | None:
    """Find a top-level string the slow way, for input that is spaced or escaped in its own way."""
    if key.encode() not in data:
        return None
    import json

    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return None
    value = event.get(key) if isinstance(event, dict) else None
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) and value else None


def _text(value: bytes | None) -> str:
    return value.decode("utf-8", "replace") if value else ""
