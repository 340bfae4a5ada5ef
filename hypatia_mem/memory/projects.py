"""Which project a folder is: identities that must not wobble.

A project's scope is the basename of its git root, else of the folder. Worktrees and subfolders map
to the main repository, a submodule is a project of its own, and two folders of one basename never
share a scope: the second is called ``app@<parent>``. A folder that moved keeps its memory, told by
marks that travel with it:

- ``git_key``: inode of the git directory and birth of its ``description`` file; survives a rename
  within a file system, differs for every clone;
- ``origin_key``: digest of the first line of the reflog, which names the moment this repository
  came to be; survives a copy to another file system.

What cannot be guessed is a person's to say: ``alias``, ``merge`` and ``rename``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.config import load_settings, write_hook_conf
from hypatia_mem.errors import Conflict, NotFound, UsageError
from hypatia_mem.memory import persons
from hypatia_mem.model import GLOBAL_SCOPE, Author, Outcome, Project

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.gateway import Transaction

__all__ = [
    "Decision",
    "Identity",
    "KnownRoot",
    "claim",
    "decide",
    "identify",
    "resolve",
    "scope_name",
]

_REMOTE = re.compile(r'\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.M | re.S)
_MAX_SMALL_FILE = 256 * 1024
_EVERY = 1_000_000  # sessions of a project


@dataclass(frozen=True, slots=True)
class Identity:
    """What can be read off a folder without asking git.

    ``path`` is the root's real path; ``git_key``, ``origin_key`` and ``remote`` are ``""`` where
    the folder has none.
    """

    path: str
    key: str
    git_key: str = ""
    origin_key: str = ""
    remote: str = ""

    @property
    def basename(self) -> str:
        """Return the last component of the path, or ``root`` for ``/``."""
        return Path(self.path).name or "root"


@dataclass(frozen=True, slots=True)
class KnownRoot:
    """A folder the store has seen, and the scope it belongs to."""

    path: str
    scope: str
    git_key: str = ""
    origin_key: str = ""
    remote: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The scope of a folder, and whether the project or the folder is new to the store."""

    scope: str
    new_project: bool
    new_root: bool
    moved_from: str = ""


def identify(directory: str) -> Identity:
    """Read the marks of the project that ``directory`` lies in.

    Never raises: a folder that is gone or unreadable is known by its path alone.
    """
    root = paths.find_root(directory)
    git_key = root.key if root.key.startswith("g-") else ""
    if not root.common_dir:
        return Identity(path=root.path, key=root.key)
    return Identity(
        path=root.path,
        key=root.key,
        git_key=git_key,
        origin_key=_origin_key(Path(root.common_dir)),
        remote=_remote(Path(root.common_dir)),
    )


def scope_name(basename: str) -> str:
    """Make a scope of a folder's name: no comma (scopes are lists), no control characters.

    >>> scope_name("my,app")
    'my_app'
    """
    cleaned = "".join("_" if c == "," or ord(c) < 32 else c for c in basename).strip()
    encoded = cleaned.encode("utf-8", "replace").decode("utf-8")
    return encoded or "project"


def decide(
    identity: Identity,
    roots: Sequence[KnownRoot],
    scopes: Iterable[str],
    exists: Callable[[str], bool],
    aliases: dict[str, str] | None = None,
) -> Decision:
    """Say which project ``identity`` is, given the folders and scopes known so far.

    ``exists`` tells whether a known path is still there with its own marks; ``aliases`` maps a
    folder path or a basename to a scope, as a person said. Pure: writes nothing.
    """
    here = next((root for root in roots if root.path == identity.path), None)
    if here is not None and not _is_another_repository(here, identity):
        return Decision(here.scope, new_project=False, new_root=_marks_differ(here, identity))
    if identity.git_key:
        for root in roots:
            if root.git_key == identity.git_key and root.path != identity.path:
                return Decision(root.scope, False, True, moved_from=root.path)
    if identity.origin_key:
        for root in roots:
            same = root.origin_key == identity.origin_key
            if same and root.path != identity.path and not exists(root.path):
                return Decision(root.scope, False, True, moved_from=root.path)
    alias = (aliases or {}).get(identity.path)
    if alias is not None:
        return Decision(alias, new_project=False, new_root=True)
    return Decision(_free_scope(identity, scopes), new_project=True, new_root=True)


def resolve(store: Store, directory: str) -> Project:
    """Return the project of ``directory`` as the store knows it; writes nothing.

    A folder never seen before gets the scope it would be given, with no roots.
    """
    identity = identify(directory)
    decision = decide(identity, _roots(store), _scopes(store), _still_there, _aliases(store))
    for project in store.projects():
        if project.scope == decision.scope:
            return project
    return Project(scope=decision.scope)


def claim(store: Store, txn: Transaction, directory: str) -> str:
    """Return the scope of ``directory`` and write down what is new about it."""
    identity = identify(directory)
    decision = decide(identity, _roots(store), _scopes(store), _still_there, _aliases(store))
    if decision.new_project:
        txn.put_project(decision.scope)
    if decision.moved_from and not _still_there(decision.moved_from):
        txn.delete_root(decision.moved_from)
    if decision.new_root or decision.new_project:
        txn.put_root(
            identity.path,
            scope=decision.scope,
            git_key=identity.git_key,
            origin_key=identity.origin_key,
            remote=identity.remote,
        )
    return decision.scope


def brief_keys(root: KnownRoot) -> tuple[str, ...]:
    """Return the names under which a session start may look for this folder's brief."""
    return (root.git_key,) if root.git_key else (paths.path_key(root.path),)


def known_roots(store: Store) -> list[KnownRoot]:
    """Return every folder the store knows."""
    return _roots(store)


# A person's own word about projects ----------------------------------------------------------


def list_projects(store: Store) -> list[Project]:
    """Return every project with its folders and aliases, by scope."""
    return sorted(store.projects(), key=lambda project: project.scope)


def alias(home: Path, scope: str, name: str, *, author: Author, now: datetime) -> Outcome:
    """Let the folder ``name`` (a path) belong to ``scope`` from now on.

    Raises NotFound when there is no such project, Conflict when the folder is another project's,
    and Refused for whoever is no person.
    """
    from hypatia_mem.memory.curate import changing

    persons.only(
        home, author, "say to which project a folder belongs", now=now, verb="alias project"
    )
    identity = identify(name)
    with changing(home, author, now) as (store, txn):
        _require(store, scope)
        for root in _roots(store):
            if root.path == identity.path and root.scope != scope:
                raise Conflict(
                    f"{identity.path} belongs to project {root.scope!r} already",
                    hint=f"Merge the two with: hypatia-mem project merge {root.scope} {scope}",
                )
        txn.put_root(
            identity.path,
            scope=scope,
            git_key=identity.git_key,
            origin_key=identity.origin_key,
            remote=identity.remote,
        )
    return Outcome("updated", scope, details={"path": identity.path})


def rename(home: Path, old: str, new: str, *, author: Author, now: datetime) -> Outcome:
    """Give a project another scope; everything stored under the old one follows.

    Raises NotFound, Conflict when the new name is taken (that is what merge is for), Refused for
    whoever is no person.
    """
    from hypatia_mem.memory.curate import changing

    _check_scope(new)
    persons.only(home, author, "rename a project", now=now, verb="rename project")
    with changing(home, author, now) as (store, txn):
        _require(store, old)
        if new in _scopes(store):
            raise Conflict(
                f"there is a project {new!r} already",
                hint=f"To put both together: hypatia-mem project merge {old} {new}",
            )
        count = txn.rename_scope(old, new)
    return Outcome("updated", new, details={"entries": count})


def merge(
    home: Path,
    source: str,
    target: str,
    *,
    dry_run: bool = False,
    author: Author,
    now: datetime,
) -> Outcome:
    """Put everything of ``source`` under ``target``; ``source`` is gone afterwards.

    The details name the entries, sessions and folders that move, and the operation (none for a
    ``dry_run``, which takes all of it back). Raises UsageError, NotFound, and Refused: only a
    person puts things into another project.
    """
    from hypatia_mem.memory.curate import changing
    from hypatia_mem.store import effects

    if source == target:
        raise UsageError("a project cannot be merged with itself")
    persons.only(home, author, "put one project into another", now=now, verb="merge projects")
    with changing(home, author, now, dry_run=dry_run) as (store, txn):
        _require(store, source)
        _require(store, target)
        known = store.sessions(source, limit=_EVERY, include_archived=True)
        folders = [root.path for root in _roots(store) if root.scope == source]
        since = txn.seq
        count = txn.rename_scope(source, target)
        details = {
            "entries": count,
            "names": [one.name for one in effects.effects(store, since)],
            "sessions": [session.id for session, _ in known],
            "folders": sorted(folders),
            "dry_run": dry_run,
            "op_id": "" if dry_run else txn.op_id,
        }
    return Outcome("unchanged" if dry_run else "updated", target, details=details)


def set_excluded(
    home: Path, scope: str, excluded: bool, *, author: Author, now: datetime
) -> Outcome:
    """Stop (or start again) keeping the turns of a project; what is stored stays.

    Raises NotFound, and Refused for whoever is no person.
    """
    from hypatia_mem.memory.curate import changing
    from hypatia_mem.store.connection import open_store

    persons.only(home, author, "say which projects are kept", now=now, verb="exclude project")
    with changing(home, author, now) as (store, txn):
        _require(store, scope)
        txn.put_project(scope, excluded=excluded)
    with open_store(home, write=False) as store:
        tell_hook(store, home)
    return Outcome("updated", scope, details={"excluded": excluded})


def tell_hook(store: Store, home: Path, also: Iterable[str] = ()) -> None:
    """Let the hook know which folders are not to be kept, so that nothing of them is spooled.

    ``also`` are folders outside the known roots (worktrees) that belong to such a project.
    """
    folders = {path for project in store.projects() if project.excluded for path in project.roots}
    write_hook_conf(home, load_settings(home), excluded=folders | set(also))


# ----------------------------------------------------------------------------------------------


def _check_scope(scope: str) -> None:
    if scope == GLOBAL_SCOPE or scope != scope_name(scope):
        raise UsageError(
            f"{scope!r} cannot be the name of a project",
            hint="A name has at least one character and neither commas nor control characters.",
        )


def _require(store: Store, scope: str) -> None:
    if scope not in _scopes(store):
        known = ", ".join(sorted(_scopes(store))) or "none yet"
        raise NotFound(f"project {scope!r}", hint=f"Known projects: {known}")


def _roots(store: Store) -> list[KnownRoot]:
    return [
        KnownRoot(
            path=root.path,
            scope=root.scope,
            git_key=root.git_key,
            origin_key=root.origin_key,
            remote=root.remote,
        )
        for root in store.roots()
    ]


def _scopes(store: Store) -> set[str]:
    return {project.scope for project in store.projects()}


def _aliases(store: Store) -> dict[str, str]:
    return {path: project.scope for project in store.projects() for path in project.aliases}


def _still_there(path: str) -> bool:
    return Path(path).is_dir()


def _marks_differ(root: KnownRoot, identity: Identity) -> bool:
    return (root.git_key, root.origin_key, root.remote) != (
        identity.git_key,
        identity.origin_key,
        identity.remote,
    )


def _is_another_repository(root: KnownRoot, identity: Identity) -> bool:
    """Tell whether the path now holds a repository other than the one remembered there.

    ``git init`` in a known folder, or a fresh clone of the same remote, is still that project;
    two different remotes, or two histories with nothing in common to show, are not: what is told
    of another repository cannot be untold, while ``project merge`` joins two that are one.
    """
    if root.git_key == identity.git_key or not root.git_key or not identity.git_key:
        return False
    if root.origin_key and root.origin_key == identity.origin_key:
        return False
    return not root.remote or _address(root.remote) != _address(identity.remote)


def _address(remote: str) -> str:
    """Return what the addresses of one repository have in common, however it is reached.

    >>> _address("git@host.org:me/app.git") == _address("https://host.org/me/app")
    True
    """
    scheme, _, rest = remote.rpartition("://")
    host, colon, path = rest.partition(":")
    if not scheme and colon and "/" not in host and len(host) > 1:  # user@host:path
        rest = f"{host}/{path.lstrip('/')}"
    elif re.match(r"\d+/", path):  # a port, which only one of the ways has
        rest = f"{host}/{path.partition('/')[2]}"
    user, at, after = rest.partition("@")
    if at and "/" not in user:
        rest = after
    host, slash, path = rest.partition("/")
    return f"{host.lower()}{slash}{path.rstrip('/').removesuffix('.git')}"


def _free_scope(identity: Identity, scopes: Iterable[str]) -> str:
    taken = set(scopes)
    base = scope_name(identity.basename)
    if base not in taken:
        return base
    parent = scope_name(Path(identity.path).parent.name or "root")
    candidate = f"{base}@{parent}"
    number = 2
    while candidate in taken:
        candidate = f"{base}@{parent}-{number}"
        number += 1
    return candidate


def _origin_key(git_dir: Path) -> str:
    try:
        with (git_dir / "logs" / "HEAD").open("rb") as file:
            line = file.readline(_MAX_SMALL_FILE)
    except OSError:
        return ""
    return hashlib.sha256(line).hexdigest()[:32] if line.strip() else ""


def _remote(git_dir: Path) -> str:
    """Return the origin's address without any credentials in it, or ``""``."""
    try:
        text = (git_dir / "config").read_bytes()[:_MAX_SMALL_FILE].decode("utf-8", "replace")
    except OSError:
        return ""
    found = _REMOTE.search(text)
    return re.sub(r"//[^/@]*@", "//", found.group(1)) if found else ""
