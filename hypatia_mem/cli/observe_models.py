"""What ``status`` says of summaries and models: what waits, and what was spent day by day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypatia_mem.errors import HypatiaError

__all__ = ["rows", "see_models"]


def see_models(home: Path, *, usable: bool) -> dict[str, Any]:
    """Return the summariser in force, its work by state, and calls, tokens and money by day.

    ``queue`` is how much of the work is still to be done, in all projects, as ``jobs list`` counts
    it; None when the store cannot be asked. ``usable``: the store can be read. What cannot be said
    is said in words.
    """
    from hypatia_mem.cli import context
    from hypatia_mem.config import load_settings

    settings = load_settings(home)
    found: dict[str, Any] = {
        "summary_by": settings.summary_by, "work": {}, "queue": None, "paused": None, "failed": ""
    }  # fmt: skip
    if not usable:
        return found
    from hypatia_mem.memory import jobs, spend
    from hypatia_mem.memory.summarise import choosing
    from hypatia_mem.store.connection import open_store

    now = context.now()
    found["model"] = choosing.model_of(settings)
    try:
        with open_store(home, write=False, deadline=3.0) as store:
            work, pause = jobs.listed_in(store, home, settings, now=now, scopes=None)
            found["spent"] = spend.spent_in(store, settings, now)
    except HypatiaError as error:
        found["error"] = error.message
        return found
    found["work"], found["queue"] = jobs.tallies(work), jobs.depth(work)
    failed = [one for one in work if one.attempts and one.message]
    if failed:
        found["failed"] = max(failed, key=lambda one: one.attempts).message
    if pause is not None:
        until = f"{pause.again:%Y-%m-%dT%H:%MZ}"
        found["paused"] = {"until": until, "why": pause.message, "hint": pause.hint}
    return found


def rows(found: dict[str, Any]) -> dict[str, str]:
    """Return the lines for a person; only what there is something to say about."""
    work = ", ".join(f"{count} {state}" for state, count in found["work"].items())
    model = f" ({found['model']})" if found.get("model") else ""
    lines = {"summaries": f"by {found['summary_by']}{model}; {work or 'nothing has failed'}"}
    if found["failed"]:
        lines["failed"] = f"{found['failed']} (hypatia-mem jobs list)"
    if found["paused"]:
        lines["waiting"] = f"{found['paused']['why']}; until {found['paused']['until']}"
    if "error" in found:
        lines["models"] = found["error"]
    spent = found.get("spent") or {"days": []}
    days: dict[str, list[float]] = {}
    for one in spent["days"]:
        sums = days.setdefault(one["day"], [0, 0, 0.0])
        sums[0] += one["calls"]
        sums[1] += one["input_tokens"] + one["output_tokens"]
        sums[2] += one["dollars"]
    for day, (calls, tokens, dollars) in days.items():
        lines[day] = f"{calls:.0f} calls, {tokens:.0f} tokens, ${dollars:.4f}"
    if days:
        today = spent["today"]
        lines["limits"] = f"{today['most_calls']} calls and ${today['most_dollars']:.2f} a day"
    return lines
