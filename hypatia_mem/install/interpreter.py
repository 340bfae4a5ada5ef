"""Which Python the hook runs on, and where the package lies.

A hook starts twice a turn, so it must start the real executable: a pyenv shim costs fourteen
starts, a virtual environment's link half a start more than its base.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from hypatia_mem.errors import InstallError

__all__ = ["GUARD", "hook_arguments", "hook_interpreter", "site_directory", "worker_path"]

# Python leaves with 2 when its script is missing, and 2 is the code by which a hook blocks a
# prompt. A session that was open while we were removed still runs the command it loaded, so the
# script is read by these lines, for which a missing file is nothing to do. `compile` is not called:
# it alone would cost a sixth of the start.
GUARD = "import sys\n__file__=sys.argv[1]\ntry:exec(open(__file__).read())\nexcept OSError:pass"

_CELLAR = re.compile(r"^(?P<root>.*)/Cellar/(?P<formula>[^/]+)/[^/]+/(?P<rest>.+)$")


def hook_arguments(script: str) -> list[str]:
    """Return what follows the interpreter on a hook's command line."""
    return ["-I", "-S", "-c", GUARD, script]


def hook_interpreter() -> str:
    """Return the absolute path of the real interpreter behind this one.

    The base of a virtual environment, links resolved, and for Homebrew the stable ``opt`` path
    that outlives an upgrade of the formula. The candidate is started once to be sure.

    Raises:
        InstallError: no candidate starts and is of this Python's version.
    """
    own = sys.executable or ""
    base = getattr(sys, "_base_executable", None) or own
    tried = []
    for candidate in dict.fromkeys((_stable(os.path.realpath(base)), _stable(base), own)):
        if candidate and not _is_script(candidate):
            tried.append(candidate)
            if _starts(candidate):
                return candidate
    raise InstallError(
        f"none of these interpreters starts: {', '.join(tried) or 'none found'}.",
        hint="Run the installation with the Python that the hooks shall use.",
    )


def _stable(path: str) -> str:
    """Return Homebrew's ``opt`` path of the same file when there is one."""
    match = _CELLAR.match(path)
    if match is None:
        return path
    stable = f"{match['root']}/opt/{match['formula']}/{match['rest']}"
    try:
        return stable if Path(stable).samefile(path) else path
    except OSError:
        return path


def _is_script(path: str) -> bool:
    """Tell a shim (a text file naming another interpreter) from an executable."""
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def _starts(path: str) -> bool:
    expected = f"{sys.version_info[0]}.{sys.version_info[1]}"
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [path, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and done.stdout.strip() == expected


def site_directory() -> str:
    """Return the directory that holds the package, which the hook adds to its path.

    Raises:
        InstallError: the path has bytes that JSON cannot carry.
    """
    import hypatia_mem

    directory = str(Path(hypatia_mem.__file__).resolve().parent.parent)
    try:
        directory.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InstallError(
            f"the path {directory!a} is not valid UTF-8, so a hooks file cannot name it.",
            hint="Install the package in a folder with a plain name.",
        ) from error
    return directory


def worker_path() -> str:
    """Return the site directory the worker needs added, or "" when its Python finds us anyway."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-E", "-c", "import hypatia_mem; print(hypatia_mem.__file__)"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            cwd=os.path.sep,
        )
    except (OSError, subprocess.SubprocessError):
        return site_directory()
    found = done.stdout.strip()
    same = done.returncode == 0 and Path(found).resolve().parent.parent == Path(site_directory())
    return "" if same else site_directory()
