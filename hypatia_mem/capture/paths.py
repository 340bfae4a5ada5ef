"""Where everything lies, and which folder a session works in. No pathlib: this is the hot path.

The home is ``$HYPATIA_MEM_HOME``, else the user data directory that ``platformdirs`` would name
(a test holds the two together), without its import. Folders are 0700, files 0600.
"""

from __future__ import annotations

import os
import stat
import sys
import time

__all__ = [
    "Root",
    "brief_path",
    "ensure_home",
    "find_root",
    "home",
    "log_line",
    "path_key",
    "try_lock",
]

APP = "hypatia-mem"
FOLDERS = ("spool", "spool/quarantine", "turns", "index", "briefs", "snapshots", "quarantine")
LOG_BYTES = 1 << 20
MAX_LEVELS = 64
SMALL_FILE = 4096

README = """\
This folder is the memory of your coding agent, kept by hypatia-mem; nothing in it leaves this
machine. To look inside:  hypatia-mem status
To remove it:  hypatia-mem uninstall
memory.duckdb is the store; spool/ holds turns not yet stored; index/ and briefs/ can be deleted and
are made again; snapshots/ are verified copies of the store.
"""


class Root:
    """The project that a folder lies in.

    ``path`` is the main repository's folder (or the folder itself without git), ``git_dir`` and
    ``common_dir`` the repository's own directories (``""`` without git), ``key`` the name under
    which its brief lies.
    """

    __slots__ = ("common_dir", "git_dir", "key", "path")

    def __init__(self, path: str, git_dir: str, common_dir: str, key: str) -> None:
        self.path = path
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.key = key


def home() -> str:
    """Return the memory's home, an absolute path that need not exist."""
    given = os.environ.get("HYPATIA_MEM_HOME")
    if given:
        return os.path.abspath(os.path.expanduser(given))
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Application Support")
    else:
        base = os.environ.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share")
    return os.path.join(base, APP)


def ensure_home(path: str) -> None:
    """Make the home and its folders, closed to others. Raises OSError."""
    if not os.path.isdir(path):
        os.makedirs(path, mode=0o700, exist_ok=True)
    for name in ("", *FOLDERS):
        folder = os.path.join(path, name) if name else path
        try:
            mode = os.stat(folder).st_mode
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            continue
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(20, "a file stands where a folder belongs", folder)
        if mode & 0o077 and os.name == "posix":
            os.chmod(folder, 0o700)
    readme = os.path.join(path, "README")
    if not os.path.exists(readme):
        fd = os.open(readme, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(fd, README.encode())
        finally:
            os.close(fd)


def find_root(directory: str) -> Root:
    """Find the project of a folder by walking up to the first ``.git``. Never raises.

    A worktree is its main repository; a submodule is a project of its own.
    """
    try:
        start = os.path.realpath(directory)
    except (OSError, ValueError):
        start = directory
    folder = start
    for _ in range(MAX_LEVELS):
        dot_git = os.path.join(folder, ".git")
        found = _git_dirs(dot_git)
        if found is not None:
            git_dir, common_dir = found
            path = folder
            if common_dir != git_dir and os.path.basename(common_dir) == ".git":
                path = os.path.dirname(common_dir)
            return Root(path, git_dir, common_dir, _git_key(common_dir) or path_key(path))
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return Root(start, "", "", path_key(start))


def path_key(path: str) -> str:
    """Return the brief key of a folder without git: a digest of its path."""
    from _blake2 import blake2b

    raw = path.encode("utf-8", "surrogatepass" if sys.platform == "win32" else "surrogateescape")
    return "p-" + str(blake2b(raw, digest_size=12).hexdigest())


def brief_path(home_path: str, key: str) -> str:
    """Return where the brief of a key lies."""
    return os.path.join(home_path, "briefs", key + ".json")


def try_lock(fd: int) -> bool:
    """Take an exclusive lock on an open file without waiting; False when another has it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def log_line(home_path: str, level: str, component: str, sentence: str) -> None:
    """Append a line to the program's log, rotating it at 1 MiB. Raises OSError.

    The sentence must hold no message text; line breaks in it become spaces.
    """
    path = os.path.join(home_path, "hypatia-mem.log")
    now = time.gmtime()
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", now)
    text = " ".join(sentence.split())[:2000]
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, f"{when} {level} {component} {text}\n".encode("utf-8", "backslashreplace"))
        size = os.fstat(fd).st_size
    finally:
        os.close(fd)
    if size > LOG_BYTES:
        os.replace(path, path + ".1")


def _git_dirs(dot_git: str) -> tuple[str, str] | None:
    """Return (git directory, common directory) of a ``.git`` entry, None when there is none."""
    try:
        mode = os.stat(dot_git).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(mode):
        return dot_git, dot_git
    line = _small(dot_git)
    if not line.startswith("gitdir:"):
        return None
    git_dir = os.path.realpath(os.path.join(os.path.dirname(dot_git), line[7:].strip()))
    common = _small(os.path.join(git_dir, "commondir")).strip()
    if not common:
        return git_dir, git_dir
    return git_dir, os.path.realpath(os.path.join(git_dir, common))


def _git_key(common_dir: str) -> str:
    """Return a key that a rename keeps and a new clone changes, ``""`` when there is none.

    git writes ``description`` once, when a repository comes to be, and never again.
    """
    try:
        inode = os.stat(common_dir).st_ino
        born = os.stat(os.path.join(common_dir, "description")).st_mtime_ns
    except OSError:
        return ""
    return f"g-{inode:x}-{born:x}"


def _small(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY)
    except (OSError, ValueError):
        return ""
    try:
        return os.read(fd, SMALL_FILE).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(fd)
