"""Where everything lies, and which project a folder belongs to. Part of the hot path.

Standard library only and of it only what costs nothing: ``posix`` instead of ``os`` (a quarter of
an interpreter start), no ``os.path``, no ``pathlib``. Paths are ``str``; on Windows, where ``os``
is the only door, the same functions use it.

The home is ``$HYPATIA_MEM_HOME``, else the folder that ``platformdirs`` names for user data; a
test holds the two together. Folders are 0700 and files 0600, whatever the umask.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import os as system
else:
    import posix as system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FOLDERS",
    "O_BINARY",
    "O_CLOEXEC",
    "Root",
    "brief_path",
    "ensure_home",
    "environment",
    "find_root",
    "home",
    "log_line",
    "path_key",
    "read_file",
    "real_path",
    "session_key",
    "system",
    "try_lock",
    "write_all",
]

APP = "hypatia-mem"
STORE = "memory.duckdb"
SPOOL = "spool"
SPOOL_QUARANTINE = "spool/quarantine"
TURNS = "turns"
# From when to when nothing was installed; the second is missing while it lasts. No session is
# called so.
AWAY = "turns/.away"
LEFT_OUT = ".off"  # beside a session's counter: the prompts that are not to be kept
INDEX = "index"
BRIEFS = "briefs"
SNAPSHOTS = "snapshots"
QUARANTINE = "quarantine"
WORKER_LOCK = "worker.lock"
WORKER_START = "worker.start"
STORE_LOCK = "store.lock"
LOG = "hypatia-mem.log"
CONFIG = "config.toml"
HOOK_CONF = "hook.conf"
FOLDERS = (SPOOL, SPOOL_QUARANTINE, TURNS, INDEX, BRIEFS, SNAPSHOTS, QUARANTINE)

LOG_BYTES = 1 << 20
MAX_LEVELS = 64
MAX_LINKS = 40
O_CLOEXEC: int = getattr(system, "O_CLOEXEC", 0)
O_BINARY: int = getattr(system, "O_BINARY", 0)
_SMALL_FILE = 4096
_ENCODING = sys.getfilesystemencoding()

README = """\
This folder is the memory of your coding agent, kept by hypatia-mem. Nothing in it leaves this
machine. To look inside:  hypatia-mem status
To remove it:             hypatia-mem uninstall

memory.duckdb is the store, spool/ holds what is not yet in a verified snapshot of it, archive/ the
files that entries name; all three matter, and so do key, keys/ and forgotten, by which forgotten
things are known: not a word of them is in there.
index/ and briefs/ can be deleted and are made again. snapshots/ holds verified copies of the store.
"""


class Root:
    """The project that a folder lies in.

    ``path`` is the main repository's folder (the folder itself without git), ``git_dir`` and
    ``common_dir`` the repository's own directories (``""`` without git), ``key`` the name under
    which its brief lies: ``g-...`` by git identity, ``p-...`` by path.
    """

    __slots__ = ("common_dir", "git_dir", "key", "path")

    def __init__(self, path: str, git_dir: str, common_dir: str, key: str) -> None:
        """Keep what was found."""
        self.path = path
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.key = key

    def __eq__(self, other: object) -> bool:
        """Compare by all four fields."""
        return isinstance(other, Root) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        """Hash what ``==`` compares."""
        return hash((self.path, self.git_dir, self.common_dir, self.key))

    def __repr__(self) -> str:
        """Show the fields."""
        return f"Root({self.path!r}, {self.git_dir!r}, {self.common_dir!r}, {self.key!r})"


# The home -----------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """Return this process's environment; as ``os.environ`` has it where ``os`` is imported."""
    loaded = sys.modules.get("os")
    if loaded is not None:
        return dict(loaded.environ)
    raw: Mapping[bytes, bytes] = system.environ  # type: ignore[assignment,unused-ignore]
    return {
        key.decode(_ENCODING, "surrogateescape"): value.decode(_ENCODING, "surrogateescape")
        for key, value in raw.items()
    }


def home(environ: Mapping[str, str] | None = None) -> str:
    """Return the memory's home, an absolute path that need not exist.

    A relative ``$HYPATIA_MEM_HOME`` is taken from the user's home, not from the current folder:
    a hook's current folder wanders, and a memory must neither split nor land in a repository.

    Raises:
        OSError: the user has no home folder and names none.
    """
    environ = environment() if environ is None else environ
    given = environ.get("HYPATIA_MEM_HOME", "")
    if given == "~" or given.startswith("~/"):
        given = _user_home(environ) + given[1:]
    if not given:
        given = _data_folder(environ) + "/" + APP
    elif not _is_absolute(given):
        given = _user_home(environ) + "/" + given
    return _normal(given)


def _data_folder(environ: Mapping[str, str]) -> str:
    if sys.platform == "win32":
        return environ.get("LOCALAPPDATA") or _user_home(environ) + "\\AppData\\Local"
    data = environ.get("XDG_DATA_HOME", "")
    if data.startswith("/"):
        return data
    local = "/Library/Application Support" if sys.platform == "darwin" else "/.local/share"
    return _user_home(environ) + local


def _user_home(environ: Mapping[str, str]) -> str:
    given = environ.get("USERPROFILE" if sys.platform == "win32" else "HOME", "")
    if _is_absolute(given):
        return given.rstrip("/")
    if sys.platform != "win32":
        import pwd

        try:
            return pwd.getpwuid(system.getuid()).pw_dir.rstrip("/")
        except KeyError:
            pass
    raise FileNotFoundError(2, "no home folder is known: set HOME or HYPATIA_MEM_HOME")


def _is_absolute(path: str) -> bool:
    if sys.platform == "win32":
        return bool(system.path.isabs(path))
    return path.startswith("/")


def _normal(path: str) -> str:
    """Return an absolute path without empty, ``.`` and ``..`` parts."""
    if sys.platform == "win32":
        return str(system.path.normpath(path))
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def ensure_home(path: str) -> None:
    """Make the home and its folders, closed to others; harmless when they are there.

    Raises:
        OSError: with the path that could not be made, or that is a file where a folder belongs.
    """
    _make_folder(path, parents=True)
    for name in FOLDERS:
        _make_folder(f"{path}/{name}")
    try:
        flags = system.O_WRONLY | system.O_CREAT | system.O_EXCL | O_CLOEXEC
        fd = system.open(f"{path}/README", flags, 0o600)
    except FileExistsError:
        return
    try:
        write_all(fd, README.encode())
    finally:
        system.close(fd)


def _make_folder(path: str, *, parents: bool = False) -> None:
    try:
        mode = system.stat(path).st_mode
    except FileNotFoundError:
        parent = path.rstrip("/\\").rpartition("/")[0]
        if parents and parent and not _exists(parent):
            _make_folder(parent, parents=True)
        try:
            system.mkdir(path, 0o700)
        except FileExistsError:  # another process was faster, or a link that leads nowhere
            mode = system.stat(path).st_mode
        else:
            return
    if mode & 0o170000 != 0o040000:
        raise NotADirectoryError(20, "a file stands where a folder belongs", path)
    if mode & 0o077 and sys.platform != "win32":
        try:
            system.chmod(path, 0o700)
        except PermissionError:
            return  # a file system without modes; what lies inside is made 0600 all the same


def _exists(path: str) -> bool:
    try:
        system.stat(path)
    except OSError:
        return False
    return True


def brief_path(home_path: str, key: str) -> str:
    """Return where the brief of a key lies.

    Its neighbours: ``.scope`` holds the scope's name, ``.later`` the briefs of times to come.
    """
    return f"{home_path}/{BRIEFS}/{key}.json"


def session_key(key: str, session: str) -> str:
    """Return the key of a session's own brief: a branch is not told what its siblings are.

    ``key`` is its folder's: in another project it is told what that one has to say.
    """
    return f"{key}@{session}"


# Projects -----------------------------------------------------------------------------------------


def find_root(directory: str) -> Root:
    """Find the project of a folder: the first ``.git`` on the way up. Never raises.

    A worktree is its main repository, also after it was removed from disk as long as its ``.git``
    file is there; a submodule is a project of its own; without git it is the folder itself.
    """
    start = real_path(directory)
    folder = start
    for _ in range(MAX_LEVELS):
        found = _git_dirs(folder)
        if found is not None:
            git_dir, common_dir = found
            path = folder
            if common_dir != git_dir and _base(common_dir) == ".git":
                path = _parent(common_dir)
            return Root(path, git_dir, common_dir, _git_key(common_dir) or path_key(path))
        above = _parent(folder)
        if above == folder:
            break
        folder = above
    return Root(start, "", "", path_key(start))


def path_key(path: str) -> str:
    """Return the brief key of a folder that git says nothing about: a digest of its path."""
    try:
        raw = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that came from JSON, not from a file system
        raw = path.encode("utf-8", "surrogatepass")
    return "p-" + digest(raw)


def digest(raw: bytes) -> str:
    """Return 24 hexadecimal digits that stand for some bytes, the same on every machine."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return str(blake2b(raw, digest_size=12).hexdigest())


def real_path(path: str) -> str:
    """Return a path with links resolved, as far as it exists. Never raises."""
    if sys.platform == "win32":
        try:
            return str(system.path.realpath(path))
        except (OSError, ValueError):
            return path
    if not path.startswith("/"):
        try:
            path = system.getcwd() + "/" + path
        except OSError:
            path = "/" + path
    todo = path.split("/")[::-1]
    done = ""
    links = 0
    while todo:
        name = todo.pop()
        if name == "..":
            done = done.rpartition("/")[0]
        elif name not in ("", "."):
            try:
                target = system.readlink(f"{done}/{name}")
            except (OSError, ValueError):  # no link, or not there
                done = f"{done}/{name}"
                continue
            links += 1
            if links > MAX_LINKS:  # a circle
                done = f"{done}/{name}"
                continue
            if target.startswith("/"):
                done = ""
            todo.extend(target.split("/")[::-1])
    return done or "/"


def _git_dirs(folder: str) -> tuple[str, str] | None:
    """Return (git directory, common directory) of the ``.git`` in a folder, None without one."""
    dot_git = _join(folder, ".git")
    try:
        mode = system.stat(dot_git).st_mode
    except (OSError, ValueError):
        return None
    if mode & 0o170000 == 0o040000:
        # Some programs leave an empty folder of that name; git does not take it for a repository.
        if not _exists(_join(dot_git, "HEAD")):
            return None
        git_dir = real_path(dot_git)  # the folder may be a link to another repository's
        return git_dir, git_dir
    line = _small(dot_git)
    if not line.startswith("gitdir:"):
        return None
    git_dir = _from(folder, line[7:].strip())
    common = _small(_join(git_dir, "commondir")).strip()
    if common:
        return git_dir, _from(git_dir, common)
    if _exists(git_dir):
        return git_dir, git_dir
    # A worktree that was pruned: git forgot it, its folder still says whose it was.
    main, marker, _ = git_dir.replace("\\", "/").rpartition("/worktrees/")
    return (git_dir, main) if marker and _exists(_join(main, "HEAD")) else None


def _git_key(common_dir: str) -> str:
    """Return a key that a rename keeps and another clone changes, ``""`` when there is none.

    git writes ``description`` when a repository comes to be, and never again.
    """
    try:
        inode = system.stat(common_dir).st_ino
        born = system.stat(_join(common_dir, "description")).st_mtime_ns
    except (OSError, ValueError):
        return ""
    return f"g-{inode:x}-{born:x}"


def _from(folder: str, path: str) -> str:
    return real_path(path if _is_absolute(path) else _join(folder, path))


def _join(folder: str, name: str) -> str:
    if sys.platform == "win32":
        return str(system.path.join(folder, name))
    return folder + name if folder.endswith("/") else f"{folder}/{name}"


def _parent(path: str) -> str:
    if sys.platform == "win32":
        return str(system.path.dirname(path))
    return path.rpartition("/")[0] or "/"


def _base(path: str) -> str:
    return (path.replace("\\", "/") if sys.platform == "win32" else path).rpartition("/")[2]


def _small(path: str) -> str:
    try:
        return read_file(path, _SMALL_FILE).decode(_ENCODING, "surrogateescape")
    except (OSError, ValueError):
        return ""


# Files --------------------------------------------------------------------------------------------


def read_file(path: str, limit: int) -> bytes:
    """Return at most ``limit`` bytes of a file. Raises OSError."""
    fd = system.open(path, system.O_RDONLY | O_CLOEXEC | O_BINARY)
    try:
        data = system.read(fd, limit)
        while data and len(data) < limit:
            more = system.read(fd, limit - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        system.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of some bytes, in as many writes as it takes. Raises OSError."""
    written = system.write(fd, data)
    while written < len(data):
        written += system.write(fd, memoryview(data)[written:])


def try_lock(fd: int, *, shared: bool = False) -> bool:
    """Take a lock on an open file without waiting; False when another's lock is in the way.

    It goes with the descriptor, so a process that dies lets go of it.

    Raises:
        OSError: the file system knows no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            system.lseek(fd, 0, system.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def log_line(home_path: str, level: str, component: str, sentence: str) -> None:
    """Append ``<ISO time> <level> <component> <sentence>`` to the program's log.

    The caller sees to it that no message text is in the sentence; line breaks become spaces. At
    1 MiB the file becomes ``hypatia-mem.log.1``, replacing the one before.

    Raises:
        OSError: the log cannot be written.
    """
    import time

    path = f"{home_path}/{LOG}"
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = " ".join(sentence.split())[:2000]
    flags = system.O_WRONLY | system.O_CREAT | system.O_APPEND | O_CLOEXEC | O_BINARY
    fd = system.open(path, flags, 0o600)
    try:
        write_all(fd, f"{when} {level} {component} {text}\n".encode("utf-8", "backslashreplace"))
        size = system.fstat(fd).st_size
    finally:
        system.close(fd)
    if size > LOG_BYTES:
        try:
            system.replace(path, path + ".1")
        except OSError:
            return  # another process did it just now, or Windows has it open
