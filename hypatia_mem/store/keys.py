"""The memory's keys: what it is that makes a digest of a word mean nothing elsewhere.

``key`` is the present one. The folder ``keys`` holds a copy of it and every key before it: digests
of what was forgotten cannot be made anew under another key, for nobody knows the words any more, so
the key they were made with is asked as long as they stand. A lost or damaged ``key`` comes back
from its copy.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
from dataclasses import dataclass
from pathlib import Path

from hypatia_mem.errors import StoreError

__all__ = [
    "FOLDER",
    "KEY_BYTES",
    "Key",
    "add_keys",
    "adopt_key",
    "key_of",
    "keyring",
    "known_keys",
    "load_key",
    "rotate_key",
]

FILE = "key"
FOLDER = "keys"
KEY_BYTES = 32
_COPY = re.compile(r"(\d{4})-([0-9a-f]{12})\Z")


@dataclass(frozen=True, slots=True)
class Key:
    """The secret of one memory; digests made with it mean nothing elsewhere."""

    id: str
    secret: bytes

    def digest(self, *parts: str) -> str:
        """Return the keyed digest of some text, in hex."""
        data = "\x1f".join(parts).encode("utf-8", "replace")
        return hmac.digest(self.secret, data, hashlib.sha256).hex()

    def document_id(self, catalog: str, name: str) -> str:
        """Return by what the search index knows a name when the name itself must not be kept."""
        return self.digest("document", catalog, name)[:32]

    def target(self, name: str) -> str:
        """Return by what the ledger knows a name that may be a person's words."""
        return "#" + self.digest("target", name)[:24]


def load_key(home: Path) -> Key:
    """Return the memory's present key, made on first use (``key``, 0600). Raises StoreError.

    One that is gone or damaged is put back from its copy.
    """
    path = home / FILE
    try:
        secret = path.read_bytes()
    except FileNotFoundError:
        secret = b""
    except OSError as error:
        raise StoreError(f"the memory's key cannot be read: {path} ({error.strerror})") from error
    if len(secret) >= KEY_BYTES:
        if not (home / FOLDER).is_dir():
            _keep_copy(home, secret)
        return key_of(secret)
    copies = _copies(home)
    if copies:
        _replace_secret(path, copies[-1][1])
        return key_of(copies[-1][1])
    if secret:
        raise StoreError(
            f"the memory's key is damaged: {path}",
            hint="Put the file back from a backup; without it, what was forgotten is not known.",
        )
    secret = _make_key(path)
    _keep_copy(home, secret)
    return key_of(secret)


def keyring(home: Path) -> tuple[Key, ...]:
    """Return every key there is, the present one first, then the later before the earlier."""
    present = load_key(home)
    if not _is_any_other(home, present):
        return (present,)
    found = {present.id: present}
    for _, secret in reversed(_copies(home)):
        key = key_of(secret)
        found.setdefault(key.id, key)
    return tuple(found.values())


def known_keys(home: Path) -> tuple[Key, ...]:
    """Return the keys of a memory that is only asked: none is made, none is put back.

    Raises StoreError when there is none to be read.
    """
    found: dict[str, Key] = {}
    with contextlib.suppress(OSError):
        secret = (home / FILE).read_bytes()
        if len(secret) >= KEY_BYTES:
            found[key_of(secret).id] = key_of(secret)
    for _, secret in reversed(_copies(home)):
        found.setdefault(key_of(secret).id, key_of(secret))
    if not found:
        raise StoreError(f"the memory's key cannot be read: {home / FILE}")
    return tuple(found.values())


def key_of(secret: bytes) -> Key:
    """Return the key that a secret makes."""
    return Key(hashlib.sha256(b"id" + secret).hexdigest()[:12], secret)


def adopt_key(home: Path, secret: bytes) -> None:
    """Let a memory that has written nothing yet go on under another's key. Raises OSError.

    Only so do the digests of what was forgotten there mean anything here.
    """
    _keep_copy(home, secret)
    _replace_secret(home / FILE, secret)


def add_keys(home: Path, secrets: tuple[bytes, ...]) -> None:
    """Keep keys that others' digests were made with; the present key stays. Raises OSError."""
    present = load_key(home)
    for secret in secrets:
        _keep_copy(home, secret)
    if secrets and _copies(home)[-1][1] != present.secret:
        _keep_copy(home, present.secret, again=True)  # the last copy is that of the present one


def rotate_key(home: Path) -> Key:
    """Make a new key and let the memory go on under it; the one before is kept. Raises OSError."""
    load_key(home)
    secret = os.urandom(KEY_BYTES)
    _keep_copy(home, secret)  # first: a kill in between leaves the key before in its place
    _replace_secret(home / FILE, secret)
    return key_of(secret)


# ----------------------------------------------------------------------------------------------


def _is_any_other(home: Path, present: Key) -> bool:
    """Tell by their names alone whether there is a copy of another key."""
    try:
        with os.scandir(home / FOLDER) as found:
            named = [match.group(2) for one in found if (match := _COPY.match(one.name))]
    except OSError:
        return False
    return any(one != present.id for one in named)


def _copies(home: Path) -> list[tuple[Path, bytes]]:
    """Return the copies that are whole, in the order in which they came to be."""
    found: list[tuple[Path, bytes]] = []
    with contextlib.suppress(OSError):
        for path in sorted((home / FOLDER).iterdir()):
            match = _COPY.match(path.name)
            if match is None:
                continue
            with contextlib.suppress(OSError):
                secret = path.read_bytes()
                if key_of(secret).id == match.group(2):
                    found.append((path, secret))
    return found


def _keep_copy(home: Path, secret: bytes, *, again: bool = False) -> None:
    folder = home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    copies = _copies(home)
    same = [path for path, kept in copies if kept == secret]
    if same and not again:
        return
    last = int(copies[-1][0].name[:4]) if copies else 0
    _replace_secret(folder / f"{last + 1:04d}-{key_of(secret).id}", secret)
    for path in same:
        path.unlink(missing_ok=True)


def _make_key(path: Path) -> bytes:
    secret = os.urandom(KEY_BYTES)
    temporary = path.with_name(f".key-{os.getpid()}")
    _write_secret(temporary, secret)
    try:
        os.link(temporary, path)  # fails if another process was first: its key is the key
    except FileExistsError:
        return path.read_bytes()
    except OSError:
        temporary.replace(path)
        return secret
    finally:
        temporary.unlink(missing_ok=True)
    return secret


def _replace_secret(path: Path, secret: bytes) -> None:
    temporary = path.with_name(f".key-{os.getpid()}")
    _write_secret(temporary, secret)
    temporary.replace(path)


def _write_secret(path: Path, secret: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, secret)
        os.fsync(fd)
    finally:
        os.close(fd)
