"""What the client runs at each event: capture first, print second, exit 0 whatever happens (I1).

The order is fixed: guards (I6), redaction if a look at the bytes asks for it, one durable record,
the worker's start, and only then output. An ordinary prompt imports neither ``json`` nor ``re``
nor ``os``. Nothing here opens the store, waits for a lock, or writes to stderr: the client shows
stderr to the person, and exit code 2 would block the prompt.

What is printed, and never anything else: at SessionStart the brief as the worker rendered it; at
UserPromptSubmit one JSON object with trigger lines, confirmations and what the prompt's words call
up, when there are any; at SessionEnd what is left to judge, which the client ignores; at Stop and
PreCompact nothing (what a hook prints there makes the turn go on, or lands in the compaction's
instructions).
"""

from __future__ import annotations

import sys
import time

from hypatia_mem.capture import paths, spool
from hypatia_mem.capture.paths import O_CLOEXEC, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["handle", "main", "start_worker"]

START, PROMPT, STOP, COMPACT, END = (
    "SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd",
)  # fmt: skip
# PreCompact is understood but not installed: after /compact the client shows a person the command
# line of every hook on that event. SessionStart comes right after it and does as well.
EVENTS = (START, PROMPT, STOP, COMPACT, END)
GUARD = "HYPATIA_MEM_INTERNAL"
MARKER = b"hypatia-mem:internal"
NOTIFICATION = b'"prompt":"<task-notification>'
MAX_INPUT = 32 << 20  # beyond it only ids are kept; the transcript has the text
MAX_BRIEF = 1 << 18
MAX_LATER = 1 << 20
EXTRACT_EVERY = 5
HEARTBEAT_STALE_SECONDS = 60.0
START_SECONDS = 3.0  # how long a started worker may take to its lock
# What the worker may see of the environment: never a key, never a token.
WORKER_ENV = (
    "HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USERPROFILE",
    "LOCALAPPDATA", "APPDATA", "CLAUDE_CONFIG_DIR", "HYPATIA_MEM_HOME",
)  # fmt: skip
WORKER_ENV_PREFIXES = ("LC_", "XDG_")
_SAFE_KEYS = ("session_id", "transcript_path", "cwd", "prompt_id", "hook_event_name")
_CONTEXT = '{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":%s}}\n'
# Only where the worker's interpreter does not find the package by itself (``worker_path``).
_BOOT = "import sys; sys.path.append(%r); from hypatia_mem.worker import main; sys.exit(main())"


def main() -> None:
    """Run as a hook and never return: the process ends here, with exit code 0."""
    try:
        system.umask(0o077)
        data = _read_input(0)
        _finish_what_is_begun()
        handle(data, paths.environment(), 1)
    except BaseException:  # noqa: BLE001 - the hot path's last handler: nothing may get out
        pass
    system._exit(0)


def handle(data: bytes, environ: Mapping[str, str], out: int) -> None:
    """Handle one event's input; write what the client is to see to the descriptor ``out``.

    Never raises. A record that could not be kept is in the program's log, or, where that cannot be
    written, in a marker that ``spool.last_failure`` finds.
    """
    if environ.get(GUARD):
        return
    home = ""
    try:
        home = paths.home(environ)
        _handle(home, data, environ, out)
    except Exception as error:  # noqa: BLE001 - a failing hook must not fail the session
        spool.note_failure(home, error, environ)


def _handle(home: str, data: bytes, environ: Mapping[str, str], out: int) -> None:
    data = _plain(data)
    event = _value(data, "hook_event_name")
    if event not in EVENTS:
        return
    conf = _read_conf(home)
    session = _session(data)
    if conf.get("capture") == "off":
        _quietly(_leave_out, home, session, data)
        return
    if _is_internal(home, session, event, data, environ, conf):
        return
    kept, captured = _capture(home, session, data, environ)
    if captured:
        _quietly(start_worker, home, environ, conf)
    _quietly(_print, out, _output(home, session, event, kept, environ, conf, captured))


def _output(
    home: str,
    session: str,
    event: str,
    data: bytes,
    environ: Mapping[str, str],
    conf: Mapping[str, str],
    captured: bool,
) -> bytes:
    """Return what the client is to be told; failures are silence."""
    mode = conf.get("triggers", "combined")
    try:
        if event == START:
            return b"" if conf.get("briefs") == "off" else _brief(home, data, environ)
        if event == PROMPT:
            count = _count(home, session) if NOTIFICATION not in data else 0
            return _prompt_output(home, session, data, environ, conf, count) if captured else b""
    except Exception as error:  # noqa: BLE001 - the turn is safe; nobody waits for the rest
        _log(home, "WARNING", f"no output for {event}: {type(error).__name__}")
        return b""
    if event == END and mode != "off":
        return _end_output(home, session, conf)
    return b"TRIGGER:log\n" if event == STOP and mode == "literal" else b""


# Guards -------------------------------------------------------------------------------------------


def _is_internal(
    home: str,
    session: str,
    event: str,
    data: bytes,
    environ: Mapping[str, str],
    conf: Mapping[str, str],
) -> bool:
    """Tell our own traffic, and sessions and folders that are not to be kept.

    The environment's guard may have been stripped on the way, so a folder below our home, and the
    marker line in a prompt, say it too. A session once seen to be ours, or off the record by
    ``HYPATIA_MEM_CAPTURE``, stays so: the worker does not read its transcript either.
    """
    folders = (environ.get("CLAUDE_PROJECT_DIR", ""), _value(data, "cwd"))
    excluded = conf.get("excluded", "").split("\t")
    for folder in folders:
        if folder and _is_below(folder, home):
            return True
        if folder and any(_is_named(folder, e) for e in excluded):
            _quietly(_leave_out, home, session, data)
            return True
    mark = f"{home}/{paths.TURNS}/{session}.internal"
    off_record = environ.get("HYPATIA_MEM_CAPTURE", "").lower() in ("off", "false", "no", "0")
    if off_record or (event == PROMPT and _has_marker(data)):
        _quietly(_mark, mark, time.time())
    elif _age_mark(mark) is None:
        return False
    _quietly(_leave_out, home, session, data)
    return True


def _leave_out(home: str, session: str, data: bytes) -> None:
    """Note which turn is not to be kept: the session's transcript may be read for other turns."""
    fd = system.open(f"{home}/{paths.TURNS}/{session}{paths.LEFT_OUT}", _COUNTER, 0o600)
    try:
        paths.write_all(fd, spool.session_name(_value(data, "prompt_id")).encode() + b"\n")
    finally:
        system.close(fd)


def _is_below(folder: str, home: str) -> bool:
    """Tell whether a folder is the home or in it, by identity: links and case may differ."""
    if folder == home or folder.startswith(home + "/"):
        return True
    try:
        status = system.stat(home)
        there = (status.st_dev, status.st_ino)
        while folder and folder != "/":
            status = system.stat(folder)
            if (status.st_dev, status.st_ino) == there:
                return True
            folder = folder.rpartition("/")[0]
    except (OSError, ValueError):
        pass
    return False


def _is_named(folder: str, excluded: str) -> bool:
    root = excluded.rstrip("/\\")
    return bool(root) and (folder == root or folder.startswith((root + "/", root + "\\")))


def _has_marker(data: bytes) -> bool:
    """Tell whether a line of the input consists of the marker."""
    at = data.find(MARKER)
    while at >= 0:
        end = at + len(MARKER)
        begins = data.endswith((b'"', b"\\n"), 0, at)
        if begins and data.startswith((b'"', b"\\n", b"\\r"), end):
            return True
        at = data.find(MARKER, end)
    return False


# The record ---------------------------------------------------------------------------------------


def _capture(
    home: str, session: str, data: bytes, environ: Mapping[str, str]
) -> tuple[bytes, bool]:
    """Make the event durable; return what was kept of it and whether it is."""
    try:
        kept, meta, red = _redacted(home, data, environ)
        spool.append(home, session, kept, at_ns=time.time_ns(), meta=meta, red=red)
    except Exception as error:  # noqa: BLE001 - the brief can still be printed
        spool.note_failure(home, error, environ)
        return data, False
    return kept, red != spool.IDS_ONLY


def _redacted(home: str, data: bytes, environ: Mapping[str, str]) -> tuple[bytes, bytes, int]:
    """Return (event, meta, red): what may touch the disk. If the redactor fails, ids only."""
    folder = environ.get("CLAUDE_PROJECT_DIR", "")
    try:
        if len(data) > MAX_INPUT:
            raise ValueError("too large an input")
        from hypatia_mem.capture.hints import may_hold_secret

        red = spool.AS_IT_CAME
        if may_hold_secret(data):
            from hypatia_mem.capture.redact import redact_event

            data, red = redact_event(data), spool.REDACTED
        raw = folder.encode("utf-8", "surrogateescape")
        if raw not in data and may_hold_secret(raw):
            from hypatia_mem.capture.redact import redact_text

            folder = redact_text(folder)
        return data, _meta(folder, environ), red
    except Exception as error:  # noqa: BLE001 - never the raw bytes: the transcript has the text
        _log(home, "WARNING", f"only ids of an event were kept: {type(error).__name__}")
        return _ids(data), _meta("", environ), spool.IDS_ONLY


def _ids(data: bytes) -> bytes:
    """Return an event that holds nothing but where its text can be found."""
    pairs = ((key, _value(data, key)) for key in _SAFE_KEYS)
    members = [
        b'"%s":%s' % (key.encode(), spool.json_string(value)) for key, value in pairs if value
    ]
    return b"{%s}" % b",".join(members)


def _meta(folder: str, environ: Mapping[str, str]) -> bytes:
    return b'"dir":%s,"client":%s,"entry":%s,' % (
        spool.json_string(folder),
        spool.json_string(_word(environ.get("AI_AGENT", ""))),
        spool.json_string(_word(environ.get("CLAUDE_CODE_ENTRYPOINT", ""))),
    )


def _word(text: str) -> str:
    """Return a name from the environment, nothing where it holds anything but a name."""
    return text if len(text) <= 80 and text.isascii() and text.isprintable() else ""


def _session(data: bytes) -> str:
    """Return the session's name: its id, else a digest of its transcript's path, else unknown."""
    for key in ("session_id", "conversation_id"):
        name = spool.session_name(_value(data, key))
        if name:
            return name
    path = _value(data, "transcript_path")
    return "t-" + paths.digest(path.encode("utf-8", "surrogatepass")) if path else "unknown"


# Output -------------------------------------------------------------------------------------------


def _prompt_output(
    home: str,
    session: str,
    data: bytes,
    environ: Mapping[str, str],
    conf: Mapping[str, str],
    count: int,
) -> bytes:
    if not count:
        return b""
    mode = conf.get("triggers", "combined")
    lines = [] if mode == "off" else _trigger_lines(home, session, data, environ, conf, count)
    if conf.get("briefs") != "off" and _age_mark(f"{home}/{paths.BRIEFS}/any.keyed") is not None:
        lines += _called_up(home, session, data, environ, count)
    if not lines:
        return b""
    return (_CONTEXT % spool.json_string("\n".join(lines)).decode()).encode()


def _trigger_lines(
    home: str,
    session: str,
    data: bytes,
    environ: Mapping[str, str],
    conf: Mapping[str, str],
    count: int,
) -> list[str]:
    mode = conf.get("triggers", "combined")
    lines = _logged(home, session) if mode == "literal" else []
    from hypatia_mem.capture.hints import may_be_request

    if may_be_request(data):
        lines += _request_lines(home, data, environ, mode)
    if _age_mark(f"{home}/{paths.BRIEFS}/{session}.pressure") is not None:
        from hypatia_mem.capture import triggers

        lines += triggers.pressure(home, session)
    if _age_mark(f"{home}/{paths.BRIEFS}/{session}.batch") is not None:
        from hypatia_mem.capture import triggers

        lines += triggers.batch(home, session)
    interval = _interval(conf)
    if interval and count % interval == 0:
        lines += _due_lines(home, session, mode)
    return lines


def _due_lines(home: str, session: str, mode: str) -> list[str]:
    due: list[str] = []
    if _age_mark(f"{home}/{paths.BRIEFS}/{session}.due") is not None:
        from hypatia_mem.capture import triggers

        due = triggers.due(home, session, at_end=False)
    return ["TRIGGER:extract", *due] if due or mode == "literal" else []


def _called_up(
    home: str, session: str, data: bytes, environ: Mapping[str, str], count: int
) -> list[str]:
    """Return what the prompt's words call up of what is remembered (``keyed``)."""
    try:
        from hypatia_mem.capture import keyed

        prompt = _value(data, "prompt", len(data))
        return keyed.lines_for(home, session, _folder(data, environ), prompt, count, time.time())
    except Exception as error:  # noqa: BLE001 - nothing is recalled; the other lines are still true
        _log(home, "WARNING", f"nothing could be called up: {type(error).__name__}")
        return []


def _logged(home: str, session: str) -> list[str]:
    from hypatia_mem.capture import triggers

    return ["TRIGGER:log", *triggers.logged(home, session)]


def _request_lines(home: str, data: bytes, environ: Mapping[str, str], mode: str) -> list[str]:
    try:
        from hypatia_mem.capture import triggers

        prompt = _value(data, "prompt", len(data))
        return triggers.of_request(home, prompt, _folder(data, environ), mode)
    except Exception as error:  # noqa: BLE001 - no confirmation; the other lines are still true
        _log(home, "WARNING", f"a request could not be read: {type(error).__name__}")
        return []


def _end_output(home: str, session: str, conf: Mapping[str, str]) -> bytes:
    """Return what a session's end says: nothing where nobody spoke, or nothing is left to judge.

    The client ends sessions, too, that never were: of those no prompt was counted.
    """
    if not _interval(conf) or _age_mark(f"{home}/{paths.TURNS}/{session}") is None:
        return b""
    from hypatia_mem.capture import triggers

    due = triggers.due(home, session, at_end=True)
    if not due and conf.get("triggers") != "literal":
        return b""
    return "".join(f"{line}\n" for line in ("TRIGGER:session-end", *due)).encode()


def _interval(conf: Mapping[str, str]) -> int:
    every = conf.get("extract_every", "")
    return int(every) if every.isascii() and every.isdigit() else EXTRACT_EVERY


def _brief(home: str, data: bytes, environ: Mapping[str, str]) -> bytes:
    """Return the session's own brief (a branch's), else its project's, else the global one."""
    here = paths.find_root(_folder(data, environ)).key
    for key in (paths.session_key(here, _session(data)), here, "global"):
        path = paths.brief_path(home, key)
        try:
            brief = _brief_due(path)
            if brief is None:
                brief = paths.read_file(path, MAX_BRIEF)
        except OSError:
            continue
        # Anything else the client would take for plain text and hand to the model.
        if brief.startswith(b'{"hookSpecificOutput":') and brief.rstrip().endswith(b"}}"):
            return brief
    return b""


def _brief_due(path: str) -> bytes | None:
    """Return what a brief has become since it was rendered, None where it still is what it was.

    A rule may begin or end to be true while nobody works: the worker has rendered what comes then.
    """
    try:
        lines = paths.read_file(path.removesuffix("json") + "later", MAX_LATER).split(b"\n")
    except OSError:
        return None
    now = time.time()
    due = None
    for number in range(0, len(lines) - 1, 2):
        if lines[number].isdigit() and int(lines[number]) <= now:
            due = lines[number + 1] + b"\n"
    return due


def _folder(data: bytes, environ: Mapping[str, str]) -> str:
    return environ.get("CLAUDE_PROJECT_DIR") or _value(data, "cwd") or system.getcwd()


def _count(home: str, session: str) -> int:
    """Count this prompt: the file's size is the number of the session's prompts."""
    fd = system.open(f"{home}/{paths.TURNS}/{session}", _COUNTER, 0o600)
    try:
        system.write(fd, b".")
        return int(system.fstat(fd).st_size)
    finally:
        system.close(fd)


_COUNTER: int = system.O_WRONLY | system.O_CREAT | system.O_APPEND | O_CLOEXEC


def _print(out: int, output: bytes) -> None:
    while output:
        try:
            output = output[system.write(out, output) :]
        except BlockingIOError:
            system.set_blocking(out, True)


# The worker ---------------------------------------------------------------------------------------


def start_worker(
    home: str, environ: Mapping[str, str], conf: Mapping[str, str] | None = None
) -> bool:
    """Start a worker if none runs, detached and with a clean environment; True when started.

    One that was started a moment ago and has not come to its lock yet is waited for, not doubled;
    one whose heartbeat is old gets a successor that looks whether it still lives.

    Raises:
        OSError: the lock cannot be looked at.
    """
    conf = _read_conf(home) if conf is None else conf
    python = conf.get("python", "")
    if not python:
        return False
    lock, start = f"{home}/{paths.WORKER_LOCK}", f"{home}/{paths.WORKER_START}"
    beat, started, now = _age_mark(lock) or 0.0, _age_mark(start) or 0.0, time.time()
    if started >= beat and 0.0 <= now - started < START_SECONDS:
        return False
    more = []
    if not _is_free(lock):
        if abs(now - beat) <= HEARTBEAT_STALE_SECONDS:
            return False
        more = ["--takeover"]
    argv = [python, "-P", "-E", "-m", "hypatia_mem.worker", "--home", home, *more]
    if conf.get("worker_path"):
        argv[3:5] = ["-c", _BOOT % conf["worker_path"]]
    wanted = conf.get("worker_env", "").split(",")  # what a model needs, if the user chose one
    env = {
        name: value
        for name, value in environ.items()
        if name in WORKER_ENV or name in wanted or name.startswith(WORKER_ENV_PREFIXES)
    }
    env[GUARD] = "1"
    try:
        _spawn(argv, env)
    except OSError as error:
        _log(home, "ERROR", f"the worker cannot be started with {python}: {error.strerror}")
        return False
    _mark(start, now)  # only now: a hook killed before it started one must hold up no other
    return True


def _is_free(lock: str) -> bool:
    fd = system.open(lock, system.O_RDWR | system.O_CREAT | O_CLOEXEC, 0o600)
    try:
        return paths.try_lock(fd)
    finally:
        system.close(fd)


def _age_mark(path: str) -> float | None:
    try:
        return float(system.stat(path).st_mtime)
    except OSError:
        return None


def _mark(path: str, when: float) -> None:
    fd = system.open(path, system.O_WRONLY | system.O_CREAT | O_CLOEXEC, 0o600)
    system.close(fd)
    system.utime(path, (when, when))


def _spawn(argv: list[str], env: dict[str, str]) -> None:
    """Start a process of its own session that holds none of our descriptors. Raises OSError."""
    if sys.platform == "win32":
        import subprocess

        subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            creationflags=subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP,
        )
        return
    import _signal  # type: ignore[import-not-found,unused-ignore]

    for number in range(3, 64):  # what the client left open: it would wait for the worker
        try:
            system.set_inheritable(number, False)
        except OSError:
            continue
    actions = [
        (system.POSIX_SPAWN_OPEN, 0, "/dev/null", system.O_RDWR, 0),
        (system.POSIX_SPAWN_DUP2, 0, 1),
        (system.POSIX_SPAWN_DUP2, 0, 2),
    ]
    defaults = [_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGPIPE]
    start: Callable[..., int] = system.posix_spawn
    try:
        start(argv[0], argv, env, file_actions=actions, setsid=True, setsigdef=defaults)
    except NotImplementedError:  # a platform whose posix_spawn makes no session
        start(argv[0], argv, env, file_actions=actions, setpgroup=0, setsigdef=defaults)


# Bytes --------------------------------------------------------------------------------------------


def _read_input(fd: int) -> bytes:
    """Read to the end; of an input beyond all measure only the beginning is kept."""
    chunks: list[bytes] = []
    size, limit = 0, 1 << 16
    while True:
        try:
            chunk = system.read(fd, limit)
        except BlockingIOError:
            system.set_blocking(fd, True)
            continue
        if not chunk:
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if size <= MAX_INPUT:
            chunks.append(chunk)
        size += len(chunk)
        limit = 1 << 20


def _plain(data: bytes) -> bytes:
    """Return the input as clients write it; one that is spaced or escaped otherwise is rewritten.

    Inside a JSON string a quote is escaped, so no prompt can forge what is looked for here.
    """
    data = data.removeprefix(b"\xef\xbb\xbf").strip()
    for name in (b"hook_event_name", b"session_id"):
        if b'"%s":"' % name not in data and name in data:
            break
    else:
        return data
    import json

    try:
        event = json.loads(data.decode("utf-8", "surrogateescape"))
        return json.dumps(event, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return data


def _value(data: bytes, key: str, limit: int = 1 << 16) -> str:
    """Return the string of a key, ``""`` where there is none. Lone surrogates are left in it.

    One with escapes in it that is longer than ``limit`` bytes is none either: no id or path is.
    """
    name = b'"%s":"' % key.encode()
    start = data.find(name) + len(name)
    if start < len(name):
        return ""
    end = data.find(b'"', start)
    raw = data[start : end if end >= 0 else start]
    if b"\\" not in raw:
        return raw.decode("utf-8", "surrogateescape")
    from _json import scanstring

    try:
        text = data[start : start + limit].decode("utf-8", "surrogateescape")
        return str(scanstring(text, 0, False)[0])
    except (ValueError, SystemError):
        # Escapes that are none, or no end. SystemError: the scanner's own error lies in json.
        return ""


def _read_conf(home: str) -> dict[str, str]:
    try:
        text = paths.read_file(f"{home}/{paths.HOOK_CONF}", 1 << 16).decode("utf-8", "replace")
    except (OSError, ValueError):
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: value for key, separator, value in pairs if separator}


def _finish_what_is_begun() -> None:
    """Let no signal cut off the few milliseconds left: an interrupted client sends SIGTERM."""
    import _signal  # type: ignore[import-not-found,unused-ignore] # `signal` costs a bare start

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(_signal, name, None)
        if number is not None:
            _signal.signal(number, _signal.SIG_IGN)


def _quietly(act: Callable[..., object], *arguments: object) -> None:
    """Do what may fail without harm: the turn is safe already, or was never to be kept."""
    try:  # noqa: SIM105 - contextlib costs half a bare start
        act(*arguments)
    except Exception:  # noqa: BLE001 - see above
        pass


def _log(home: str, level: str, sentence: str) -> None:
    _quietly(paths.log_line, home, level, "hook", sentence)
