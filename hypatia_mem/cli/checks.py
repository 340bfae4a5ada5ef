"""``doctor``: every check with what it found, its remedy, and where it is safe, its repair.

A check never raises and never repairs by itself. ``note`` is worth knowing, ``problem`` makes the
exit code 1. A repair only makes again what is derived, tightens permissions, or drains.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hypatia_mem.capture import paths
from hypatia_mem.cli import observe
from hypatia_mem.cli.observe_models import see_models
from hypatia_mem.cli.output import ago
from hypatia_mem.errors import HypatiaError, StoreBusy, StoreCorrupt, StoreTooNew

__all__ = ["Check", "survey"]

_LITTLE_SPACE = 64 * 1024 * 1024
_WAITING_TOO_LONG = 120.0
_OLD_SNAPSHOT = 7 * 86400.0
_LOOKING_FOR_SECRETS = 2.0  # seconds
_MENDED = 14 * 86400.0


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; ``state`` is ``ok``, ``note`` or ``problem``."""

    name: str
    state: str
    says: str
    remedy: str = ""
    repair: Callable[[], object] | None = None


def survey(home: Path) -> list[Check]:
    """Run every check, cheapest first."""
    if not home.is_dir():
        return [
            Check(
                "home",
                "problem",
                f"{home} does not exist",
                "Run: hypatia-mem install",
                lambda: paths.ensure_home(str(home)),
            )
        ]
    store = observe.see_store(home)
    spool = observe.see_spool(home, store.cursors)
    return [
        _home(home),
        _space(home),
        _spool_writable(home),
        *_hooks(home),
        _second_name(),
        _firing(store, spool),
        _hook_failure(home),
        _settings(home),
        _worker(home),
        _store(store),
        _undrained(home, spool),
        _damage(home, spool),
        _mended(home),
        _erasing(home),
        _keys(home, store),
        _index(home, store),
        _briefs(home, store),
        _tables(home, store),
        _snapshots(home),
        _summaries(home, store),
        _secrets(home, store),
        _log(home),
    ]


def _home(home: Path) -> Check:
    loose = [path for path in _private(home) if _is_loose(path)]
    if loose:
        return Check(
            "home",
            "problem",
            f"{len(loose)} files or folders can be read by others, first {loose[0]}",
            f"chmod -R go-rwx {home}",
            lambda: _tighten(loose),
        )
    return Check("home", "ok", f"{home}, private")


def _tighten(loose: list[Path]) -> None:
    for path in loose:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)


def _private(home: Path) -> Iterator[Path]:
    yield home
    for path in home.iterdir():
        if not path.is_symlink():
            yield path
    for path in (home / "spool").glob("*.jsonl"):
        yield path


def _is_loose(path: Path) -> bool:
    if os.name == "nt":
        return False
    try:
        found = path.stat()
    except OSError:
        return False
    return bool(found.st_mode & 0o077) and found.st_uid == os.getuid()


def _space(home: Path) -> Check:
    free = shutil.disk_usage(home).free
    if free < _LITTLE_SPACE:
        return Check(
            "disk",
            "problem",
            f"{free // 1024 // 1024} MiB free, so turns may soon not be kept",
            "Free some space; nothing captured so far is lost.",
        )
    return Check("disk", "ok", f"{free // 1024 // 1024} MiB free")


def _spool_writable(home: Path) -> Check:
    probe = home / "spool" / f".doctor.{os.getpid()}"
    try:
        paths.ensure_home(str(home))
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        return Check(
            "spool",
            "problem",
            f"nothing can be written to {home / 'spool'}: {error.strerror}",
            "Make the folder writable for yourself, or free space; until then no turn is kept.",
        )
    return Check("spool", "ok", "can be written")


def _hooks(home: Path) -> Iterator[Check]:
    from hypatia_mem import install

    for found in install.installed_state():
        yield Check(found.check, "ok" if found.ok else "problem", found.message, found.remedy)
    yield _interpreter(home)
    off = [path for path in _client_settings() if observe.read_json(path).get("disableAllHooks")]
    if off:
        yield Check(
            "client",
            "problem",
            f'"disableAllHooks" is set in {off[0]}, so Claude Code runs no hook at all',
            "Take that line out, or nothing is captured.",
        )


def _second_name() -> Check:
    from hypatia_mem.install import command

    folder = command.command_directory()
    found = None if folder is None else command.second_names(folder)
    if found is None or not (found.ours or found.others):
        return Check("hypatia", "ok", "no program of that name is on the PATH")
    if found.remark:
        return Check("hypatia", "note", found.remark, "hypatia-mem is this program in any case.")
    return Check("hypatia", "ok", f"{found.ours[0]} starts this program")


def _client_settings() -> Iterator[Path]:
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    config = Path(folder) if folder else Path.home() / ".claude"
    here = Path(paths.find_root(str(Path.cwd())).path) / ".claude"
    for base in (config, here):
        yield base / "settings.json"
        yield base / "settings.local.json"


def _interpreter(home: Path) -> Check:
    try:
        lines = (home / "hook.conf").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    python = dict(line.split("=", 1) for line in lines if "=" in line).get("python", "")
    if not python:
        return Check(
            "worker python",
            "problem",
            "hook.conf names no interpreter, so hooks keep turns but start no worker",
            "Run: hypatia-mem install",
            lambda: _render_hook_conf(home, sys.executable),
        )
    if not os.access(python, os.X_OK):
        return Check(
            "worker python",
            "problem",
            f"the worker's interpreter is gone: {python}",
            "Run: hypatia-mem upgrade",
            lambda: _render_hook_conf(home, sys.executable),
        )
    return Check("worker python", "ok", python)


def _render_hook_conf(home: Path, python: str) -> None:
    from hypatia_mem.config import read_settings, write_hook_conf

    write_hook_conf(home, read_settings(home, {}).settings, python=os.path.realpath(python))


def _firing(store: observe.StoreView, spool: observe.SpoolView) -> Check:
    newest = spool.newest
    if newest is not None:
        age = ago(time.time() - newest.at)
        which = ", ".join(part for part in (newest.event, newest.client) if part)
        return Check("firing", "ok", f"last hook {age} ago ({which})")
    if store.counts.get("messages"):
        return Check("firing", "ok", "hooks have fired; their records are all drained and gone")
    return Check(
        "firing",
        "note",
        "no hook has fired yet",
        "Start a new session in Claude Code and type a prompt; a running one has to be restarted.",
    )


def _hook_failure(home: Path) -> Check:
    failure = observe.hook_failure(home)
    if not failure:
        return Check("hook failures", "ok", "no hook has failed")
    return Check(
        "hook failures",
        "problem",
        failure,
        "Cure the cause named here; the turns since are read from the client's transcript.",
    )


def _settings(home: Path) -> Check:
    from hypatia_mem.config import read_settings

    loaded = read_settings(home)
    if loaded.problems:
        return Check(
            "settings", "problem", loaded.problems[0], "Correct it with: hypatia-mem config set"
        )
    if not loaded.settings.capture:
        return Check(
            "settings",
            "note",
            "capture is off, so no turn is kept",
            "Run: hypatia-mem config set capture on",
        )
    return Check("settings", "ok", "in order")


def _worker(home: Path) -> Check:
    from hypatia_mem import worker

    found = worker.state(home)
    if found.stalled:
        return Check(
            "worker",
            "problem",
            f"{found.who} holds the lock and shows no sign of life",
            "Run: hypatia-mem worker stop; the next prompt starts another.",
        )
    return Check("worker", "ok", "running" if found.running else "idle (the hook starts it)")


def _store(store: observe.StoreView) -> Check:
    error = store.error
    if error is None:
        messages = store.counts.get("messages", 0)
        if not store.counts:
            return Check("store", "ok", "none yet: the first turn makes one")
        noun = "message" if messages == 1 else "messages"
        return Check("store", "ok", f"opens, {messages} {noun}")
    remedies: dict[type[Exception], str] = {
        StoreBusy: "Close the program that has it open (a DuckDB shell?), then look again.",
        StoreCorrupt: "Run: hypatia-mem worker run; it sets the file aside and restores.",
        StoreTooNew: "Upgrade hypatia-mem to the version that wrote it, or newer.",
    }
    return Check("store", "problem", error.message, remedies.get(type(error), error.hint))


def _undrained(home: Path, spool: observe.SpoolView) -> Check:
    if not spool.waiting or spool.oldest is None:
        return Check("drain", "ok", "every record is in the store")
    age = time.time() - spool.oldest
    says = f"{spool.waiting} records wait, the oldest for {ago(age)}"
    if spool.waiting == 1:
        says = f"1 record has waited for {ago(age)}"
    if age < _WAITING_TOO_LONG:
        return Check("drain", "ok", says)
    return Check("drain", "problem", says, "Run: hypatia-mem worker drain", lambda: _drain(home))


def _drain(home: Path) -> None:
    from hypatia_mem import worker

    worker.run(home, once=True)


def _damage(home: Path, spool: observe.SpoolView) -> Check:
    kept = _count(home / "spool" / "quarantine") + _count(home / "quarantine")
    if spool.damaged:
        return Check(
            "damage",
            "note",
            f"{spool.damaged} damaged stretches in the spool, not read past yet",
            "Run: hypatia-mem worker drain; the bytes go to quarantine, the rest is kept.",
            lambda: _drain(home),
        )
    if kept:
        return Check(
            "damage",
            "note",
            f"{kept} damaged pieces were set aside in quarantine",
            f"Nothing to do; look at or delete them under {home}.",
        )
    return Check("damage", "ok", "nothing in the spool is damaged")


def _mended(home: Path) -> Check:
    """Tell what the worker has found and mended by itself."""
    from hypatia_mem.memory import health

    found = health.findings(home, seconds=_MENDED)
    if not found:
        return Check("mended", "ok", "nothing had to be mended these two weeks")
    last = found[0]
    kept = f" (kept in {last.kept})" if last.kept else ""
    newer = last.what == "newer"
    remedy = (
        "Upgrade hypatia-mem." if newer else "Nothing to do; look at what is kept, if you like."
    )
    return Check("mended", "note", f"{len(found)}, the last: {last.says}{kept}", remedy)


def _erasing(home: Path) -> Check:
    from hypatia_mem.memory import erase

    try:
        job = erase.pending(home)
    except HypatiaError as error:
        return Check("erasing", "problem", error.message, error.hint)
    if job is None:
        return Check("erasing", "ok", "no erasing is unfinished")
    done = ", ".join(job.done) or "nothing"
    return Check(
        "erasing",
        "problem",
        f"one is not finished (done so far: {done})",
        "Run: hypatia-mem erase --resume",
    )


def _keys(home: Path, store: observe.StoreView) -> Check:
    """Tell whether everything that was forgotten can still be asked."""
    from hypatia_mem.memory import tombstones
    from hypatia_mem.store.connection import open_store

    if store.error is not None or not store.counts.get("tombstones"):
        return Check("keys", "ok", "nothing stands under a key that is lost")
    try:
        with open_store(home, write=False) as opened:
            known = tombstones.key_list(opened)
    except HypatiaError as error:
        return Check("keys", "problem", error.message, error.hint)
    lost = [one.id for one in known if one.lost]
    if not lost:
        return Check("keys", "ok", "everything that was forgotten can be asked")
    count = sum(one.tombstones for one in known if one.lost)
    says = (
        f"the key {', '.join(lost)} is lost, under which {count} digests of what was forgotten"
        " stand: nobody can ask them, so whatever an agent brings waits in the review"
    )
    there = tombstones.kept_in_backups(home, lost)
    if set(there) == set(lost):
        return Check(
            "keys",
            "problem",
            says,
            "A backup holds it.",
            lambda: tombstones.bring_back_keys(home, lost),
        )
    remedy = (
        "Put the file into the folder keys again, from a copy of this memory; or give those up:"
        " hypatia-mem tombstone lift --lost --all-projects"
    )
    return Check("keys", "problem", says, remedy)


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0


def _index(home: Path, store: observe.StoreView) -> Check:
    if store.error is not None:
        return Check("index", "note", "not compared, because the store cannot be asked")
    seq = observe.index_seq(home)
    if seq is None and not store.ledger_seq:
        return Check("index", "ok", "nothing to index yet")
    if seq is None or seq < store.ledger_seq:
        behind = "missing" if seq is None else f"{store.ledger_seq - seq} changes behind"
        return Check(
            "index", "problem", behind, "Run: hypatia-mem doctor --fix", lambda: _refresh(home)
        )
    return Check("index", "ok", f"up to change {seq}")


def _briefs(home: Path, store: observe.StoreView) -> Check:
    if store.error is not None or not store.counts.get("messages"):
        return Check(
            "briefs",
            "ok" if store.error is None else "note",
            "nothing to brief yet"
            if store.error is None
            else "not checked, because the store cannot be asked",
        )
    if any((home / "briefs").glob("*.json")):
        return Check("briefs", "ok", f"{_count(home / 'briefs')} files")
    return Check(
        "briefs", "problem", "missing", "Run: hypatia-mem doctor --fix", lambda: _refresh(home)
    )


def _tables(home: Path, store: observe.StoreView) -> Check:
    """Tell whether prompts can call up what has keys."""
    from hypatia_mem.memory import activation
    from hypatia_mem.store.connection import open_store

    if store.error is not None:
        return Check("called up", "note", "not checked, because the store cannot be asked")
    if not store.counts:
        return Check("called up", "ok", "nothing is kept yet that a prompt could call up")
    try:
        with open_store(home, write=False) as opened:
            count = activation.missing(opened, home)
    except HypatiaError as error:
        return Check("called up", "problem", error.message, error.hint)
    if not count:
        return Check("called up", "ok", "all that has keys can be told with a prompt")
    says = f"{count} files are missing from which a prompt is told what it calls up"
    return Check(
        "called up", "problem", says, "Run: hypatia-mem doctor --fix", lambda: _refresh(home)
    )


def _refresh(home: Path) -> None:
    from hypatia_mem.memory import curate

    curate.refresh(home)


def _snapshots(home: Path) -> Check:
    from hypatia_mem.store import snapshot

    try:
        newest = snapshot.newest_verified(home)
    except (HypatiaError, OSError) as error:
        return Check("snapshots", "problem", f"cannot be read: {type(error).__name__}")
    if newest is None:
        if not (home / "memory.duckdb").exists():
            return Check("snapshots", "ok", "nothing to copy yet")
        return Check("snapshots", "note", "none yet", "The worker makes one when it is idle.")
    path = newest.path
    age = time.time() - path.stat().st_mtime
    if age > _OLD_SNAPSHOT and (home / "memory.duckdb").stat().st_mtime > path.stat().st_mtime:
        return Check(
            "snapshots", "note", f"the newest is {ago(age)} old", "The worker makes one when idle."
        )
    return Check("snapshots", "ok", f"newest verified {ago(age)} ago")


def _summaries(home: Path, store: observe.StoreView) -> Check:
    """Tell whether whoever condenses can do so, and what was given up."""
    found = see_models(home, usable=bool(store.counts))
    by = f"made by {found['summary_by']}"
    if found["paused"]:
        pause = found["paused"]
        says = f"{by}: {pause['why']}; tried again at {pause['until']}"
        return Check("summaries", "note", says, pause["hint"] or "See: hypatia-mem jobs list")
    dead = found["work"].get("dead", 0)
    if dead:
        says = f"{by}, which has given up on {dead} batches"
        return Check("summaries", "note", says, "Try again: hypatia-mem jobs retry")
    return Check("summaries", "ok", by)


def _secrets(home: Path, store: observe.StoreView) -> Check:
    """Say what an older version, or another program, has let in past the hook's redactor."""
    from hypatia_mem.cli import context
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory import conduct

    if store.error is not None or not store.counts:
        return Check("secrets", "ok", "nothing is stored")
    try:
        settings = load_settings(home)
        found = conduct.leaks(home, settings, now=context.now(), seconds=_LOOKING_FOR_SECRETS)
    except HypatiaError as error:
        return Check("secrets", "note", f"nobody could look for any: {error.message}")
    rest = "" if found.whole else " (that is not all: hypatia-mem rules check looks at the rest)"
    if not found.held:
        return Check("secrets", "ok", f"none in {found.looked} texts{rest}")
    count = len(found.held)
    return Check(
        "secrets",
        "note",
        f"{count} of {found.looked} texts hold{'s' if count == 1 else ''} what looks like a secret,"
        f" first {found.held[0]}; no command prints it{rest}",
        "hypatia-mem erase --id NAME takes one out down to its bytes; hypatia-mem rules check names"
        " them",
    )


def _log(home: Path) -> Check:
    errors = observe.recent_errors(home)
    if errors:
        return Check(
            "log",
            "note",
            f"{len(errors)} errors in the last day, the last: {errors[-1]}",
            "See: hypatia-mem log --program",
        )
    return Check("log", "ok", "no errors in the last day")
