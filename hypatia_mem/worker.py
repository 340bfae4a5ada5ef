"""The one elected process that does the cold work, and goes when there is none left.

``python -m hypatia_mem.worker --home HOME``: started by the hook, detached, niced. Guarantees:

- at most one works, and one that is stopped or wedged gets a successor (``election``);
- no lost wake-up: after letting go of the lock it looks at the spool once more;
- it is never waited for, and ``kill -9`` at any instant costs nothing but time (I2).

The store's lease is held for one batch at a time, never while waiting for anything.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hypatia_mem.capture import paths
from hypatia_mem.election import Lock, WorkerState, alone, elect, kick, state
from hypatia_mem.errors import HypatiaError, StoreBusy, StoreCorrupt, StoreTooNew
from hypatia_mem.memory import programlog

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.memory.intake.drain import Drain

__all__ = ["Lock", "WorkerState", "alone", "kick", "main", "run", "state"]

POLL_SECONDS = 0.2
BUSY_RETRIES = 30
MOST_RECOVERIES = 2

_LOG = logging.getLogger("hypatia_mem")


def run(home: Path, *, once: bool = False, takeover: bool = False) -> int:
    """Work until there is nothing left to do; the process's exit code.

    ``once`` does what is there now, without lingering, and waits for no grace period.
    Returns 0 when the work is done or another worker has it, 1 when the store could not be used.
    """
    os.umask(0o077)
    if not home.is_dir() and not once:
        return 0  # removed since the hook looked: a purge must not be undone by a latecomer
    paths.ensure_home(str(home))
    with contextlib.suppress(OSError):
        os.chdir(home)  # never keep a person's folder busy
    lock = Lock(home)
    if not elect(lock, home, takeover=takeover):
        return 0
    with programlog.keeping("worker", home, level=logging.INFO), _stop_on_signal() as stopped:
        try:
            return _work(home, lock, once=once, stopped=stopped)
        finally:
            lock.release()


def _work(home: Path, lock: Lock, *, once: bool, stopped: Callable[[], bool]) -> int:
    from hypatia_mem.config import load_settings
    from hypatia_mem.memory.intake.drain import Drain

    settings = load_settings(home)
    _look_around(home)
    _finish_erasing(home, settings, lock)
    drain = Drain(home, settings)
    last_work = time.monotonic()
    failures = recovered = 0
    condensed = False  # since something was stored last
    while not stopped():
        lock.beat()
        try:
            progress = drain.step(final=once)
            failures = 0
            condensed = not progress.worked and (
                condensed or _cold_work(home, drain, settings, lock, stopped)
            )
        except StoreTooNew as error:
            _LOG.error("%s", error.message)
            _note(home, "newer", error.message)
            return 1
        except StoreCorrupt as error:
            _recover(home, error)
            drain = Drain(home, settings)
            recovered += 1
            if recovered > MOST_RECOVERIES:
                return 1
            continue
        except (StoreBusy, HypatiaError, OSError) as error:
            failures += 1
            _LOG.warning("a batch failed (%s): %s", type(error).__name__, _sentence(error))
            if once or failures > BUSY_RETRIES or not isinstance(error, StoreBusy):
                return 1
            time.sleep(min(5.0, POLL_SECONDS * 2**failures))
            continue
        if progress.worked:
            last_work = time.monotonic()
            continue
        if once:
            break
        idle = time.monotonic() - last_work
        if idle >= settings.worker_idle_seconds and not progress.waiting:
            _upkeep(home, drain, settings, lock)
            if _leave(home, lock, drain):
                return 0
            last_work = time.monotonic()
        time.sleep(POLL_SECONDS)
    if once:
        _upkeep(home, drain, settings, lock)
    return 0


def _cold_work(
    home: Path, drain: Drain, settings: Settings, lock: Lock, stopped: Callable[[], bool]
) -> bool:
    """Do what follows from what was stored; True when it was all done or put off.

    Raises StoreCorrupt: damage that no batch has met is mended like any other.
    """
    return (
        _make_queued(home)
        and _press(home, settings)
        and _condense(home, drain, settings, lock, stopped)
        and _embed(home, drain, settings, lock, stopped)
        and _learn(home, drain, settings, lock, stopped)
        and _tell(home, drain, settings, lock, stopped)
    )


def _leave(home: Path, lock: Lock, drain: object) -> bool:
    """Let go of the lock; stay after all if something came in meanwhile."""
    lock.release()
    if not drain.has_work():  # type: ignore[attr-defined]
        return True
    return not lock.acquire()


def _upkeep(home: Path, drain: object, settings: Settings, lock: Lock) -> None:
    from hypatia_mem.memory import curate
    from hypatia_mem.memory.extract import tidying
    from hypatia_mem.memory.intake.house import keep_house

    try:
        keep_house(home, settings, now=_now(), beat=lock.beat)
        if tidying.is_due(home, settings.tidy_every_hours, _now()):
            ties = tidying.tidy(home, now=_now())
            if ties:
                _LOG.info("Tidied: %d ties to what was known before", len(ties))
                curate.refresh(home)
    except (HypatiaError, OSError) as error:
        _LOG.warning("upkeep put off (%s): %s", type(error).__name__, _sentence(error))


def _look_around(home: Path) -> None:
    """Mend what is safe to mend before the first batch; ``doctor`` tells of it afterwards."""
    from hypatia_mem.memory import health

    for found in health.check(home):
        _LOG.warning("%s%s", found.says, f" (kept in {found.kept})" if found.kept else "")


def _note(home: Path, what: str, says: str) -> None:
    from hypatia_mem.memory import health

    if not any(one.what == what and one.says == says for one in health.findings(home)):
        health.note(
            home, health.Finding(_now().isoformat(timespec="seconds") + "+00:00", what, says)
        )


def _finish_erasing(home: Path, settings: Settings, lock: Lock) -> None:
    """Go on with an erasing that was cut short: a person ordered it, and it is not done."""
    from hypatia_mem.memory import erase

    try:
        report = erase.resume(home, settings=settings, now=_now(), beat=lock.beat)
        if report is not None:
            _LOG.info("an erasing that was cut short is finished: %s", report.op_id)
    except (HypatiaError, OSError) as error:
        _LOG.error("an erasing is not finished (%s): %s", type(error).__name__, _sentence(error))


def _make_queued(home: Path) -> bool:
    """Make the changes that waited for a session to end; True, for the rest goes on either way."""
    from hypatia_mem.memory import queued

    try:
        made = queued.run(home, _now())
        if made:
            _LOG.info("%d queued changes made", made)
    except (HypatiaError, OSError) as error:
        _LOG.warning("queued changes put off (%s): %s", type(error).__name__, _sentence(error))
    return True


def _press(home: Path, settings: Settings) -> bool:
    """Do what is due for sessions whose context fills up; True, for the rest goes on either way."""
    from hypatia_mem.memory import pressure
    from hypatia_mem.model import Author, Channel

    try:
        pressure.apply(home, settings, author=Author(Channel.WORKER), now=_now())
    except StoreCorrupt:
        raise
    except (HypatiaError, OSError) as error:
        _LOG.warning("full contexts put off (%s): %s", type(error).__name__, _sentence(error))
    return True


def _condense(
    home: Path, drain: Drain, settings: Settings, lock: Lock, stopped: Callable[[], bool]
) -> bool:
    """Make the summaries that are due; True, for what failed is due again after the next drain.

    While a model is waited for, new turns are stored all the same.
    """
    from hypatia_mem.memory import curate, logged
    from hypatia_mem.memory.cascade import announcing
    from hypatia_mem.memory.cascade import running as cascade

    try:
        waiting = cascade.Waiting(_draining(drain, lock), stopped)
        late = _late_answers(home, settings)
        report = cascade.run(home, settings, now=_now(), beat=lock.beat, waiting=waiting)
        if report.made or report.dropped or late:
            curate.refresh(home)
        if report.dropped:
            _LOG.info("%d summaries taken out", report.dropped)
        logged.tell(home, settings, drain.logged(), report.made)
        if report.paused:
            _LOG.warning("summaries wait: %s", report.paused)
        announcing.announce(home, settings, now=_now())
    except StoreCorrupt:
        raise
    except (HypatiaError, OSError) as error:
        _LOG.warning("summaries put off (%s): %s", type(error).__name__, _sentence(error))
    return True


def _learn(
    home: Path, drain: Drain, settings: Settings, lock: Lock, stopped: Callable[[], bool]
) -> bool:
    """Keep the lessons of work that is finished; True, for news are looked for at each turn.

    While a model is waited for, new turns are stored all the same.
    """
    from hypatia_mem.memory import curate
    from hypatia_mem.memory.cascade.running import Waiting
    from hypatia_mem.memory.extract import running as extract

    if settings.extract_by == "off":
        return True
    try:
        waiting = Waiting(_draining(drain, lock), stopped)
        report = extract.run(home, settings=settings, now=_now(), beat=lock.beat, waiting=waiting)
        if report.kept or report.proposed:
            _LOG.info("%s", report.line)
            curate.refresh(home)
    except StoreCorrupt:
        raise
    except (HypatiaError, OSError) as error:
        _LOG.warning("extraction put off (%s): %s", type(error).__name__, _sentence(error))
    return True


def _tell(
    home: Path, drain: Drain, settings: Settings, lock: Lock, stopped: Callable[[], bool]
) -> bool:
    """Tell what sessions were about and left open; False when new turns come first."""
    from hypatia_mem.memory import curate
    from hypatia_mem.memory.cascade.running import Waiting
    from hypatia_mem.memory.episodes import running as episodes

    try:
        report = episodes.run(
            home,
            settings,
            now=_now(),
            beat=lock.beat,
            waiting=Waiting(_draining(drain, lock), stopped),
            stop=lambda: stopped() or drain.has_work(),
        )
        if report.worked:
            _LOG.info("%s", report.line)
            curate.refresh(home)
    except StoreCorrupt:
        raise
    except (HypatiaError, OSError) as error:
        _LOG.warning("episodes put off (%s): %s", type(error).__name__, _sentence(error))
        return True
    return not report.more


def _draining(drain: Drain, lock: Lock) -> Callable[[], None]:
    """Return what is called while a model is waited for: beats, and stores what came in."""
    looked = time.monotonic()

    def tick() -> None:
        nonlocal looked
        if time.monotonic() - looked < POLL_SECONDS:
            return
        looked = time.monotonic()
        lock.beat()
        if drain.has_work():
            # What goes wrong here goes wrong again in the loop, which knows what to do about it.
            with contextlib.suppress(HypatiaError, OSError):
                drain.step()

    return tick


def _late_answers(home: Path, settings: Settings) -> int:
    """Store what a parcel of batches has brought; how many summaries."""
    from hypatia_mem.memory.cascade import backfill
    from hypatia_mem.model import Author, Channel

    try:
        author = Author(Channel.WORKER)
        return len(backfill.collect(home, settings, now=_now(), author=author).made)
    except HypatiaError as error:
        _LOG.warning("a parcel's answers could not be fetched: %s", error.message)
        return 0


def _embed(
    home: Path, drain: Drain, settings: Settings, lock: Lock, stopped: Callable[[], bool]
) -> bool:
    """Give what came in its vectors; True, for new turns go first and what is left comes after."""
    from hypatia_mem.memory.vectors import embedding

    def stop() -> bool:
        lock.beat()
        return stopped() or drain.has_work()

    try:
        made = embedding.catch_up(home, settings.embedding_model, stop=stop)
        if made:
            _LOG.info("%d vectors made", made)
    except StoreCorrupt:
        raise
    except (HypatiaError, OSError) as error:
        _LOG.warning("vectors put off (%s): %s", type(error).__name__, _sentence(error))
    return True


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _recover(home: Path, error: StoreCorrupt) -> None:
    """Set the damaged store aside and put the best that can be had in its place."""
    from hypatia_mem.memory import health

    _LOG.error("the store is damaged: %s", error.message)
    found = health.recover(home)
    _LOG.warning("%s; the damaged store is kept in %s", found.says, found.kept)


@contextmanager
def _stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Finish the batch at hand on SIGTERM, SIGINT or SIGHUP instead of dying in it."""
    seen: list[int] = []

    def note(number: int, _frame: object) -> None:
        seen.append(number)

    names = ("SIGTERM", "SIGINT", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    try:
        before = {number: signal.signal(number, note) for number in numbers}
    except ValueError:  # not the main thread: the caller's own signals stay as they are
        before = {}
    try:
        yield lambda: bool(seen)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _sentence(error: Exception) -> str:
    if isinstance(error, HypatiaError):
        return error.message
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}: {error.filename or ''}"
    return type(error).__name__


def main(argv: list[str] | None = None) -> int:
    """Run as ``python -m hypatia_mem.worker``."""
    parser = argparse.ArgumentParser(prog="hypatia-mem worker", description=__doc__)
    parser.add_argument("--home", type=Path, default=Path(paths.home()))
    parser.add_argument("--once", action="store_true", help="do what is there now, then exit")
    parser.add_argument("--takeover", action="store_true", help="replace a worker that hangs")
    options = parser.parse_args(argv)
    os.environ["HYPATIA_MEM_INTERNAL"] = "1"  # nothing this process starts is captured (I6)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    return run(options.home, once=options.once, takeover=options.takeover)


if __name__ == "__main__":
    sys.exit(main())
