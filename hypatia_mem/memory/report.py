"""Canned reports: when there was work, where, with which models and tools, and what it cost.

A report is a table with remarks; what it says about time is in the zone it is given. Costs are an
estimate from prices that the user has written down: there are none in the program, for it could not
know whether they still hold.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

from hypatia_mem.errors import ConfigError
from hypatia_mem.store import reporting
from hypatia_mem.store.reporting import Span

__all__ = ["KINDS", "PRICES_EXAMPLE", "Report", "Span", "read_prices", "report"]

Row = dict[str, Any]
_BAR = 30
_DATED = re.compile(r"-\d{8}$")
_PRICED = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "cache_write_1h": "cache_write_1h_tokens",
}
PRICES_EXAMPLE = """\
[prices]
currency = "USD"

[prices."name-of-the-model"]  # per million tokens, as your provider's price list says
input = 0.0
output = 0.0
cache_read = 0.0
cache_write = 0.0"""


@dataclass(frozen=True, slots=True)
class Report:
    """A table: ``rows`` all have ``columns``, ``notes`` say what it leaves out."""

    kind: str
    columns: tuple[str, ...]
    rows: list[Row]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Prices:
    currency: str
    models: Mapping[str, Mapping[str, float]]


def report(
    home: Path, kind: str, span: Span, *, zone: tzinfo | None = None, by: str = "day"
) -> Report:
    """Make a report of one of ``KINDS``.

    ``zone`` is where days and hours begin (None: this machine's), ``by`` is ``day`` or ``hour`` for
    activity. Raises ConfigError when the prices cannot be read, and what reading the store raises.
    """
    if kind == "activity":
        return _activity(home, span, zone, by)
    return _KINDS[kind](home, span)


# ---- what they say ------------------------------------------------------------------------------


def _activity(home: Path, span: Span, zone: tzinfo | None, by: str) -> Report:
    """Count by day, or over all days by the hour of the day."""
    found: dict[str, tuple[set[str], list[int]]] = {}
    hours = {f"{hour:02}:00" for hour in range(24)} if by == "hour" else set()
    for name in sorted(hours):
        found[name] = (set(), [0, 0])
    for row in reporting.activity(home, span):
        at = datetime.fromisoformat(row["quarter"]).astimezone(zone)
        name = f"{at:%H}:00" if by == "hour" else f"{at:%Y-%m-%d}"
        sessions, counts = found.setdefault(name, (set(), [0, 0]))
        sessions.add(row["session_id"])
        counts[0] += row["prompts"]
        counts[1] += row["answers"]
    if not any(counts[0] or counts[1] for _, counts in found.values()):
        return Report("activity", (by, "sessions", "prompts", "answers"), [])
    rows: list[Row] = [
        {by: name, "sessions": len(sessions), "prompts": counts[0], "answers": counts[1]}
        for name, (sessions, counts) in sorted(found.items())
    ]
    return Report("activity", (by, "sessions", "prompts", "answers"), rows)


def bars(numbers: Sequence[int], width: int = _BAR) -> list[str]:
    """Return a bar for each number, the greatest being ``width`` long, none empty above 0.

    >>> bars([0, 1, 100], 4)
    ['', '#', '####']
    """
    most = max(numbers, default=0)
    return ["#" * math.ceil(number * width / most) if most else "" for number in numbers]


def _projects(home: Path, span: Span) -> Report:
    columns = ("project", "sessions", "prompts", "answers", "first_active", "last_active")
    notes = [] if span.scopes is None else ["Only this scope was read; --all-projects reads all."]
    return Report("projects", columns, reporting.projects(home, span), notes)


def _models(home: Path, span: Span) -> Report:
    columns = ("model", "messages", "responses", *_PRICED.values())
    return Report("models", columns, reporting.models(home, span), _missing(home, span))


def _tools(home: Path, span: Span) -> Report:
    columns = ("tool", "calls", "failures", "without_result", "failure_rate", "last_used")
    rows: list[Row] = []
    for found in reporting.tools(home, span):
        known = found["calls"] - found["without_result"]
        found["failure_rate"] = round(found["failures"] / known, 4) if known else None
        rows.append({name: found[name] for name in columns})
    return Report("tools", columns, rows)


def _cost(home: Path, span: Span) -> Report:
    prices = read_prices(home)
    rows: list[Row] = []
    notes = _missing(home, span)
    unpriced: list[str] = []
    for found in reporting.models(home, span):
        price = _price_of(found["model"], prices)
        row = {name: found[name] for name in ("model", *_PRICED.values())}
        row["cost"] = None if price is None else _estimate(found, price)
        rows.append(row)
        if price is None:
            unpriced.append(found["model"])
        elif gaps := [
            name
            for name in ("cache_read", "cache_write")
            if name not in price and found[_PRICED[name]]
        ]:
            notes.append(f"{found['model']}: no price for {' and '.join(gaps)}; not in its cost.")
    priced = [row["cost"] for row in rows if row["cost"] is not None]
    if priced:
        total = f"{sum(priced):.2f} {prices.currency}".strip()
        notes.insert(0, f"Estimate, from the prices in config.toml: {total} in all.")
    if unpriced:
        notes.append(
            f"No price for {', '.join(unpriced)}. Write one into config.toml:\n{PRICES_EXAMPLE}"
        )
    return Report("cost", ("model", *_PRICED.values(), "cost"), rows, notes)


def _missing(home: Path, span: Span) -> list[str]:
    notes = []
    silent = reporting.silent_answers(home, span)
    if silent:
        notes.append(
            f"{silent} answer{'s say' if silent > 1 else ' says'} neither model nor tokens: only a"
            " hook saw them, or they were stored before that was kept."
        )
    notes.append("Subagents are not in it: their responses are not captured.")
    return notes


_KINDS: Mapping[str, Callable[[Path, Span], Report]] = {
    "projects": _projects,
    "models": _models,
    "tools": _tools,
    "cost": _cost,
}
KINDS = ("activity", *_KINDS)


# ---- prices -------------------------------------------------------------------------------------


def read_prices(home: Path) -> _Prices:
    """Return the table ``[prices]`` of ``config.toml``; none where there is no such table.

    Raises ConfigError when the file is not TOML or a price is not a number from 0 up.
    """
    file = home / "config.toml"
    try:
        written = tomllib.loads(file.read_text("utf-8-sig")).get("prices", {})
    except FileNotFoundError:
        written = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"config.toml cannot be read ({type(error).__name__}), so there are no prices",
            hint=f"Correct it by hand: {file}",
        ) from None
    if not isinstance(written, dict):
        raise _wrong("[prices] is not a table")
    currency = written.get("currency", "")
    models = {name: price for name, price in written.items() if name != "currency"}
    return _Prices(str(currency), {name: _checked(name, price) for name, price in models.items()})


def _checked(model: str, price: object) -> dict[str, float]:
    if not isinstance(price, dict):
        raise _wrong(f"the price of {model!a} is not a table")
    unknown = set(price) - set(_PRICED)
    if unknown:
        raise _wrong(f"the price of {model!a} has no part {min(unknown)!a}")
    for part, value in price.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < 0:
            raise _wrong(f"the price of {model!a} for {part} is not a number from 0 up")
    missing = {"input", "output"} - set(price)
    if missing:
        raise _wrong(f"the price of {model!a} lacks {min(missing)}")
    return {part: float(value) for part, value in price.items()}


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"config.toml: {what}", hint=f"It should look like this:\n{PRICES_EXAMPLE}")


def _price_of(model: str, prices: _Prices) -> Mapping[str, float] | None:
    """Return a model's price; one without a date stands for all the dated names of the model."""
    return prices.models.get(model) or prices.models.get(_DATED.sub("", model))


def _estimate(found: Mapping[str, int], price: Mapping[str, float]) -> float:
    long_lived = found["cache_write_1h_tokens"]
    short_lived = price.get("cache_write", 0.0)
    parts = (
        found["input_tokens"] * price["input"],
        found["output_tokens"] * price["output"],
        found["cache_read_tokens"] * price.get("cache_read", 0.0),
        (found["cache_write_tokens"] - long_lived) * short_lived,
        long_lived * price.get("cache_write_1h", short_lived),
    )
    return round(sum(parts) / 1_000_000, 6)
