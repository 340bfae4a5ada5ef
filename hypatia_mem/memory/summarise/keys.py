"""Whose key a call is made with: the user's own, never a project's.

A key may come into the environment of a session from the project it runs in: a loaded ``.env``,
direnv, the client's settings of that project. So a key counts as a project's when it stands in one
of these files of a folder that the memory knows. It is compared, never kept.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed

__all__ = ["own_key", "project_keys", "safe_url"]

_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_FILES = (
    ".envrc",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".mise.toml",
    "mise.toml",
)
_PLACES = ("", "config", "backend", "server", "api", "app", "docker")
_LARGEST = 256 * 1024  # bytes of a file that are looked at
_ASSIGNED = re.compile(
    r"\b(?:" + "|".join(_VARIABLES) + r")\b[\"']?\s*[=:]\s*[\"']?([^\s\"',;#}]+)"
)


def safe_url(url: str) -> str:
    """Return the address of an API as it stands in the settings; "" is the provider's own.

    Your key and your words are sent there: in the clear only to this machine itself. Raises
    SummaryFailed for any other, and nothing is sent.
    """
    from urllib.parse import urlsplit

    hint = "Example: hypatia-mem config set anthropic_url https://proxy.example"
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if not url.strip() or (parts.scheme == "https" and host):
        return url.strip()
    if parts.scheme != "http" or not host:
        raise SummaryFailed(
            FailureKind.SETTINGS, f"anthropic_url is no address of an API: {url!r}", hint=hint
        )
    if host != "localhost" and not _is_loopback(host):
        raise SummaryFailed(
            FailureKind.SETTINGS,
            f"anthropic_url would send your key and your words unencrypted to {host}",
            hint=hint,
        )
    return url.strip()


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def own_key(home: Path, key_file: str, environ: Mapping[str, str], roots: Iterable[str]) -> str:
    """Return the user's key, ``""`` when there is none.

    ``roots`` are the folders of all projects known here. Raises SummaryFailed when the file cannot
    be read, or when the only key there is belongs to a project.
    """
    if key_file:
        return _from_file(home, key_file, roots)
    key = environ.get("ANTHROPIC_API_KEY", "").strip()
    if key and key in project_keys(roots):
        raise SummaryFailed(
            FailureKind.AUTH,
            "the ANTHROPIC_API_KEY in this environment is a project's own, so it is not used",
            hint="Name a file with your own key: hypatia-mem config set anthropic_key_file PATH",
        )
    return key


def project_keys(roots: Iterable[str]) -> frozenset[str]:
    """Return the keys that stand in the files of these folders."""
    found: set[str] = set()
    for root in roots:
        for path in _candidates(Path(root)):
            with contextlib.suppress(OSError), path.open("rb") as file:
                text = file.read(_LARGEST).decode("utf-8", "replace")
                found.update(_ASSIGNED.findall(text))
    return frozenset(found)


def _candidates(root: Path) -> Iterator[Path]:
    for place in _PLACES:
        folder = root / place if place else root
        with contextlib.suppress(OSError):
            yield from sorted(path for path in folder.glob(".env*") if path.is_file())
    for name in _FILES:
        yield root / name


def _from_file(home: Path, name: str, roots: Iterable[str]) -> str:
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - a home that is not known is no failure
    hint = "Name another: hypatia-mem config set anthropic_key_file PATH"
    path = path if path.is_absolute() else home / path
    real = os.path.realpath(path)
    inside = next((root for root in roots if real.startswith(os.path.realpath(root) + os.sep)), "")
    is_dotenv = any(part.startswith(".env") for part in (path.name, Path(real).name))
    if is_dotenv or (inside and not _holds_home(inside)):
        raise SummaryFailed(
            FailureKind.AUTH,
            f"{path.name} is one of a project's own files, so no key is taken from it",
            hint=hint,
        )
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SummaryFailed(
            FailureKind.AUTH, f"the key file {path} cannot be read ({why})", hint=hint
        ) from error
    assigned = _ASSIGNED.search(text)
    return assigned[1] if assigned else next(iter(text.split()), "")


def _holds_home(root: str) -> bool:
    """Tell whether a project is the user's whole home, where their own files stand too."""
    with contextlib.suppress(RuntimeError, OSError):
        return os.path.realpath(Path.home()).startswith(os.path.realpath(root))
    return False
