"""What calls of models cost: estimated before, held below the user's caps, recorded afterwards.

A call is reserved with the most it can cost before it is made, and settled when its answer is here;
one that was killed in between stays counted as spent. So neither two processes nor a kill can go
over the caps. What would go over waits until the next day (UTC), and nothing is lost.

Prices are US dollars per million tokens. ``config.toml`` may say others, or more:

    [model_prices]
    "my-model" = "0.80 4"

A model that no row fits counts as dear as the dearest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.config import read_table
from hypatia_mem.errors import ConfigError
from hypatia_mem.memory.summarise.prompted import MAX_TOKENS, Backend, Question, Reply, Usage
from hypatia_mem.memory.summarise.protocol import FailureKind, SummaryFailed
from hypatia_mem.memory.summarise.windows import tokens_of
from hypatia_mem.model import Author, Channel

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.jobs import Call
    from hypatia_mem.store.opened import Store

__all__ = ["TABLE", "Meter", "Price", "dollars", "patient", "price_of", "spending", "spent_in"]

TABLE = "model_prices"
KEEP_DAYS = 400
SHOWN_DAYS = 7
_MICRO = 1_000_000
BATCH_SHARE = 0.5  # of the price, when the answer may take a day
_CACHE_READ, _CACHE_WRITE = 0.1, 1.25  # of the price of input
_SAFETY = 1.15  # our count of tokens is an estimate
_TICK_SECONDS = 0.1
_GRACE_SECONDS = 10.0  # beyond what the other side has for an answer
_LOOK_SECONDS = 1.0  # whether a call is back
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens; ``long`` are those of a prompt beyond ``LONG_PROMPT`` tokens."""

    input: float
    output: float
    long: tuple[float, float] | None = None

    def micro(self, usage: Usage, share: float = 1.0) -> int:
        """Return what a call cost, in millionths of a dollar, rounded up."""
        if usage.dollars is not None:
            return round(usage.dollars * _MICRO)
        read = usage.input_tokens + usage.cache_read + usage.cache_write
        into, out = self.of(read)
        tokens = (
            usage.input_tokens + usage.cache_read * _CACHE_READ + usage.cache_write * _CACHE_WRITE
        )
        return -int(-(tokens * into + usage.output_tokens * out) * share // 1)

    def of(self, tokens: int) -> tuple[float, float]:
        """Return the prices of input and output for a prompt of so many tokens."""
        return self.long if self.long and tokens > LONG_PROMPT else (self.input, self.output)


LONG_PROMPT = 100_000
DEAREST = Price(10.0, 50.0)
# As published in November 2026. A name stands for every model whose name begins with it.
PRICES: Mapping[str, Price] = {
    "claude-fable": Price(10.0, 50.0),
    "claude-mythos": Price(10.0, 50.0),
    "claude-opus": Price(5.0, 25.0),
    "claude-opus-5-5": Price(4.0, 20.0),
    "claude-sonnet": Price(3.0, 15.0),
    "claude-sonnet-5": Price(2.0, 10.0),
    "claude-haiku": Price(1.0, 5.0),
    "claude-haiku-5-5": Price(0.1, 0.5, (0.5, 2.5)),
    # the client's short names
    "opus": Price(5.0, 25.0),
    "sonnet": Price(3.0, 15.0),
    "haiku": Price(1.0, 5.0),
}


def price_of(home: Path, model: str) -> Price:
    """Return a model's price; the user's own rows come first, the longest name that fits decides.

    Raises ConfigError when a row of theirs is no price.
    """
    name = model.lower()
    own = {key.lower(): value for key, value in read_table(home, TABLE).items()}
    fitting = [key for key in own if key and name.startswith(key)]
    if fitting:
        return _parsed(max(fitting, key=len), own)
    built_in = [key for key in PRICES if name.startswith(key)]
    return PRICES[max(built_in, key=len)] if built_in else DEAREST


def _parsed(key: str, rows: Mapping[str, str]) -> Price:
    try:
        into, out = (float(part) for part in rows[key].split())
        if not (0 <= into < 10_000 and 0 <= out < 10_000):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"[{TABLE}] in config.toml: {key[:60]!a} has no price that can be read",
            hint='Two numbers, dollars per million tokens in and out: "0.80 4"',
        ) from None
    return Price(into, out)


def dollars(micro: int) -> str:
    """Return an amount as a person reads it.

    >>> dollars(1_234_567), dollars(800), dollars(0)
    ('$1.23', '$0.0008', '$0.00')
    """
    return f"${micro / _MICRO:.2f}" if not micro or micro >= 10_000 else f"${micro / _MICRO:.4f}"


class Meter:
    """Stands between the cascade and a model: rate, caps, record. Opens the store only briefly.

    ``tick`` is called while an answer is waited for, with the store let go of; ``stop`` is asked
    whether to give up.
    """

    def __init__(
        self,
        home: Path,
        settings: Settings,
        backend: Backend,
        *,
        tick: Callable[[], None] = lambda: None,
        stop: Callable[[], bool] = lambda: False,
        clock: Callable[[], datetime] | None = None,
        author: Author | None = None,
    ) -> None:
        """Bind to a memory and a model.

        Raises ConfigError when its price cannot be read, or more calls are allowed at once than in
        a minute.
        """
        if settings.model_calls_at_once > settings.model_calls_per_minute:
            raise ConfigError(
                f"model_calls_at_once is {settings.model_calls_at_once}, but"
                f" model_calls_per_minute allows {settings.model_calls_per_minute}",
                hint="Raise the one or lower the other: hypatia-mem config set KEY NUMBER",
            )
        self.home = home
        self.settings = settings
        self.backend = backend
        self.price = price_of(home, backend.model)
        self._tick = tick
        self._stop = stop
        self._clock = clock or (lambda: datetime.now(UTC).replace(tzinfo=None))
        self._author = author or Author(Channel.WORKER)

    def ask(self, question: Question) -> Reply:
        """Ask the model, once there is room under rate and caps; raises SummaryFailed."""
        call = self.reserve(self.estimate(question, self.left()))
        try:
            reply = patient(
                lambda: self.backend.ask(question),
                cancel=self.backend.cancel,
                seconds=self._longest_call().total_seconds(),
                tick=self._tick,
                stop=self._stop,
            )
        except SummaryFailed as error:
            # Nobody knows whether an answer that did not come in time was made, and is billed.
            unknown = error.failure in (FailureKind.TIMEOUT, FailureKind.CANCELLED)
            self.settle(replace(call, state="failed"), None if unknown else Usage())
            raise
        self.settle(replace(call, state="done"), reply.usage)
        return reply

    def estimate(self, question: Question, left: int | None = None) -> Usage:
        """Return the most a question can take; asks the other side where that comes near a cap.

        ``left`` is what is left of the day, in millionths of a dollar.
        """
        tokens = int(tokens_of(question.system + question.text) * _SAFETY) + 200
        most = Usage(tokens, question.max_tokens)
        cap = self.settings.model_call_cents * 10_000
        near = cap if left is None else min(cap, left)
        if 2 * self.price.micro(most) > near:
            exact = self.backend.count(question)
            if exact:
                # Rules that are kept for the next question cost a quarter more this once.
                kept = int(tokens_of(question.system) * (_CACHE_WRITE - 1)) + 1
                most = replace(most, input_tokens=exact + kept)
        return most

    def left(self) -> int:
        """Return what is left of the day, in millionths of a dollar; 0 when it is used up."""
        from hypatia_mem.store import jobs
        from hypatia_mem.store.connection import open_store

        with open_store(self.home, write=False) as store:
            today = jobs.calls_since(store, _midnight(self._clock()))
        spent = sum(one.micro for one in today)
        return max(0, self.settings.model_day_cents * 10_000 - spent)

    def room(self) -> int:
        """Return how many tokens of sources one call may have under ``model_call_cents``."""
        most = self.settings.model_call_cents * 10_000

        def under(prices: tuple[float, float]) -> int:
            left = most - MAX_TOKENS * prices[1]
            return max(0, int(left / max(prices[0], 1e-9) / _SAFETY) - 1_000)

        long = under(self.price.of(LONG_PROMPT + 1))
        return long if long > LONG_PROMPT else min(LONG_PROMPT, under(self.price.of(0)))

    def reserve(self, most: Usage, calls: int = 1, share: float = 1.0) -> Call:
        """Write a call (or a parcel of them) down before it is made; raises SummaryFailed."""
        from hypatia_mem.store import jobs
        from hypatia_mem.store.connection import open_store
        from hypatia_mem.store.writing import new_op_id

        micro = self.price.micro(most, share)
        if micro > calls * self.settings.model_call_cents * 10_000:
            raise SummaryFailed(
                FailureKind.CAPPED,
                f"one call could cost {dollars(micro // calls)}, more than model_call_cents allows",
                hint="Raise it (hypatia-mem config set model_call_cents N), or take another model.",
            )
        while True:
            now = self._clock()
            with open_store(self.home, write=True) as store:
                # A minute may begin yesterday, and so may a call.
                since = min(_midnight(now), now - max(_MINUTE, self._longest_call()))
                recent = jobs.calls_since(store, since)
                today = [one for one in recent if one.at >= _midnight(now)]
                self._refuse_over(today, micro, calls, now)
                wait = self._seconds_to_wait(recent, now) if calls == 1 else 0.0
                if not wait:
                    call = jobs.Call(
                        new_op_id(now),
                        now,
                        self.backend.name,
                        self.backend.model,
                        "open",
                        calls,
                        most.input_tokens,
                        most.output_tokens,
                        micro,
                    )
                    with store.transaction(self._author, now=now) as txn:
                        jobs.put_call(txn, call)
                        jobs.drop_old_calls(txn, now - timedelta(days=KEEP_DAYS))
                    return call
            if self.settings.model_fail_fast:
                raise SummaryFailed(
                    FailureKind.RATE,
                    "your limit for a minute or at once is reached"
                    " (model_calls_per_minute, model_calls_at_once)",
                    retry_after=wait,
                )
            self._pause(wait)

    def settle(self, call: Call, usage: Usage | None, share: float = 1.0) -> None:
        """Write down what a call took; None leaves it at the most it can have been."""
        from hypatia_mem.store import jobs
        from hypatia_mem.store.connection import open_store

        if usage is not None:
            read = usage.input_tokens + usage.cache_read + usage.cache_write
            call = replace(
                call,
                input_tokens=read,
                output_tokens=usage.output_tokens,
                micro=self.price.micro(usage, share),
            )
        with (
            open_store(self.home, write=True) as store,
            store.transaction(self._author, now=self._clock()) as txn,
        ):
            jobs.put_call(txn, call)

    def _pause(self, seconds: float) -> None:
        patient(None, cancel=None, seconds=seconds, tick=self._tick, stop=self._stop)

    def _refuse_over(self, today: list[Call], micro: int, calls: int, now: datetime) -> None:
        settings = self.settings
        spent = sum(one.micro for one in today)
        made = sum(one.calls for one in today)
        over = ""
        if made + calls > settings.model_day_calls:
            over = f"{made} of {settings.model_day_calls} calls (model_day_calls)"
        elif spent + micro > settings.model_day_cents * 10_000:
            over = f"{dollars(spent)} of {dollars(settings.model_day_cents * 10_000)} "
            over += "(model_day_cents)"
        if over:
            tomorrow = _midnight(now) + timedelta(days=1)
            raise SummaryFailed(
                FailureKind.CAPPED,
                f"your limit for a day is reached: {over}; the rest waits until midnight UTC",
                retry_after=(tomorrow - now).total_seconds() + 1.0,
            )

    def _seconds_to_wait(self, calls: list[Call], now: datetime) -> float:
        single = [one for one in calls if one.calls == 1 and one.at <= now]
        return max(
            self._until_the_minute_has_room(single, now), self._until_one_is_back(single, now)
        )

    def _until_the_minute_has_room(self, single: list[Call], now: datetime) -> float:
        since = now - _MINUTE
        recent = [one.at for one in single if since < one.at]
        most = self.settings.model_calls_per_minute
        if len(recent) < most:
            return 0.0
        return max(0.05, (recent[-most] - since).total_seconds())

    def _until_one_is_back(self, single: list[Call], now: datetime) -> float:
        """Return after how long to look again; whoever was killed is not waited for longer."""
        most = self.settings.model_calls_at_once
        since = now - self._longest_call()
        out = [one for one in single if one.state == "open" and since < one.at]
        return _LOOK_SECONDS if most and len(out) >= most else 0.0

    def _longest_call(self) -> timedelta:
        return timedelta(seconds=self.settings.model_timeout_seconds + _GRACE_SECONDS)


def patient(
    work: Callable[[], Reply] | None,
    *,
    cancel: Callable[[], None] | None,
    seconds: float,
    tick: Callable[[], None],
    stop: Callable[[], bool],
) -> Reply:
    """Do ``work`` beside, at most so many seconds; ``tick`` and ``stop`` are called meanwhile.

    Without work this only waits. A thread that is given up dies with the process; ``cancel`` ends
    what it waits for. Raises SummaryFailed, and what ``work`` raises.
    """
    done = threading.Event()
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work() if work is not None else None)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            found.append(error)
        done.set()

    if work is not None:
        threading.Thread(target=run, name="hypatia-mem-model", daemon=True).start()
    ended = False
    try:
        waited = 0.0
        while not (ended := done.wait(_TICK_SECONDS)):
            waited += _TICK_SECONDS
            tick()
            if stop():
                raise SummaryFailed(FailureKind.CANCELLED, "it was asked to stop")
            if waited >= seconds:
                if work is None:
                    return Reply("")
                raise SummaryFailed(
                    FailureKind.TIMEOUT, f"there was no answer within {seconds:g} seconds"
                )
    finally:
        if not ended and cancel is not None:
            cancel()
    if isinstance(found[0], BaseException):
        raise found[0]
    answer: Reply = found[0]
    return answer


def spending(home: Path, settings: Settings, now: datetime) -> dict[str, Any]:
    """Return what calls came to on each of the last days, and how much is left of today."""
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        return spent_in(store, settings, now)


def spent_in(store: Store, settings: Settings, now: datetime) -> dict[str, Any]:
    """Return the same from a store that is open."""
    from hypatia_mem.store import jobs

    days = jobs.days_of_calls(store, _midnight(now) - timedelta(days=SHOWN_DAYS - 1))
    today = [one for one in days if one.day == f"{now:%Y-%m-%d}"]
    return {
        "today": {
            "calls": sum(one.calls for one in today),
            "tokens": sum(one.input_tokens + one.output_tokens for one in today),
            "dollars": sum(one.micro for one in today) / _MICRO,
            "most_calls": settings.model_day_calls,
            "most_dollars": settings.model_day_cents / 100,
        },
        "days": [
            {
                "day": one.day,
                "by": one.by,
                "model": one.model,
                "calls": one.calls,
                "failed": one.failed,
                "input_tokens": one.input_tokens,
                "output_tokens": one.output_tokens,
                "dollars": one.micro / _MICRO,
            }
            for one in days
        ],
    }


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
