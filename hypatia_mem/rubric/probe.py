"""One probe: what it shows, where the mechanism is, and how its outcome is judged.

A probe says two kinds of things. A *claim* is what has to hold: something is absent, refused or
bounded. A *control* is what has to be there for the claim to mean anything: a memory that always
answers with nothing would pass every claim. A probe holds only when it made at least one of each
and none of them failed; what cannot be shown is a dash, never a pass.
"""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hypatia_mem.errors import HypatiaError

if TYPE_CHECKING:
    from hypatia_mem.rubric.world import World

__all__ = ["Absent", "Check", "Probe", "Result", "place", "run_probe"]

HELD, DASH, COUNTED = "held", "dash", "counted"
_PACKAGE = "hypatia_mem."


class Absent(Exception):
    """A mechanism that a probe needs is not there; its sentence says which."""


class Check:
    """What one run of a probe has seen."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.controls = 0
        self.claims = 0
        self.failures: list[str] = []
        self.notes: list[str] = []
        self.counted = ""

    def control(self, what: str, ok: object) -> None:
        """Note something that has to be there; ``what`` is the sentence if it is not."""
        self.controls += 1
        if not ok:
            self.failures.append(f"control failed: {what}")

    def claim(self, what: str, ok: object) -> None:
        """Note something that has to hold; ``what`` is the sentence if it does not."""
        self.claims += 1
        if not ok:
            self.failures.append(what)

    def note(self, what: str) -> None:
        """Add a remark that is printed beside the outcome."""
        self.notes.append(what)

    def count(self, what: str) -> None:
        """Say that the outcome is a count and no verdict."""
        self.counted = what


Run: TypeAlias = "Callable[[World, Check], None]"


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe as it is listed.

    ``mechanism`` is ``module:name`` below ``hypatia_mem``; ``test`` the test that runs this probe
    and takes its mechanism away; ``control`` and ``not_proven`` are sentences for a reader.
    """

    id: str
    group: str  # marks | portable | editing | sequence
    proves: str
    mechanism: str
    control: str
    run: Run
    not_proven: str = ""

    @property
    def test(self) -> str:
        """Return the test that runs this probe."""
        return f"tests/contracts/test_{self.group}.py[{self.id}]"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a probe; ``state`` is ``held``, ``dash`` or ``counted``."""

    probe: Probe
    state: str
    where: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    controls: int = 0
    claims: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def is_dash(self) -> bool:
        """Tell whether this could not be shown."""
        return self.state == DASH

    def row(self) -> dict[str, Any]:
        """Return the outcome as JSON holds it."""
        return {
            "id": self.probe.id,
            "group": self.probe.group,
            "state": self.state,
            "proves": self.probe.proves,
            "where": self.where,
            "test": self.probe.test,
            "control": self.probe.control,
            "not_proven": self.probe.not_proven,
            "claims": self.claims,
            "controls": self.controls,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        }


def place(mechanism: str) -> str:
    """Return ``file:line symbol`` of a mechanism; Absent when the program has no such thing."""
    module, _, name = mechanism.partition(":")
    try:
        found: Any = importlib.import_module(_PACKAGE + module)
        file = Path(str(found.__file__))
        for part in name.split(".") if name else ():
            found = getattr(found, part)
    except (ImportError, AttributeError):
        raise Absent(f"there is no {mechanism} in this version") from None
    root = Path(importlib.import_module("hypatia_mem").__file__ or "").parent.parent
    try:
        line = inspect.getsourcelines(inspect.unwrap(found))[1] if name else 1
    except (OSError, TypeError):
        line = 1
    return f"{file.relative_to(root).as_posix()}:{max(1, line)} {name}".rstrip()


def run_probe(probe: Probe, world: World) -> Result:
    """Run a probe in a world and judge it. Never raises but for an interrupt.

    Whatever stops a probe makes it a dash with that as the reason: it has shown nothing.
    """
    began = time.perf_counter()
    check = Check()
    where = "-"
    try:
        where = place(probe.mechanism)
        probe.run(world, check)
    except Absent as error:
        check.failures.append(str(error))
    except HypatiaError as error:
        check.failures.append(f"it stopped: {error.kind}: {error.message}")
    except Exception as error:  # noqa: BLE001 - a probe that stops has shown nothing, and says so
        check.failures.append(f"it stopped: {type(error).__name__}: {_said(error)}")
    return Result(
        probe,
        _state(check),
        where,
        tuple(check.failures) or _vacuous(check),
        tuple([*check.notes, *([check.counted] if check.counted else [])]),
        check.controls,
        check.claims,
        time.perf_counter() - began,
    )


# ----------------------------------------------------------------------------------------------


def _state(check: Check) -> str:
    if check.failures:
        return DASH
    if check.counted:
        return COUNTED
    return DASH if _vacuous(check) else HELD


def _vacuous(check: Check) -> tuple[str, ...]:
    """Return why an outcome without a failure would prove nothing."""
    if check.counted:
        return ()
    if not check.claims:
        return ("it made no claim",)
    return () if check.controls else ("it had no positive control",)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or "no message"
