"""A plan is a list of acts, each with the sentence that says what it does; then it is applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Act", "Plan"]


@dataclass(frozen=True, slots=True)
class Act:
    """One change to the machine; ``done`` reads as a report of it."""

    done: str
    run: Callable[[], None] = field(repr=False)


@dataclass(slots=True)
class Plan:
    """Acts in their order, and remarks that change nothing."""

    acts: list[Act] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, done: str, run: Callable[[], None]) -> None:
        """Append an act."""
        self.acts.append(Act(done, run))

    def say(self, remark: str) -> None:
        """Append a remark."""
        self.remarks.append(remark)

    def apply(self) -> None:
        """Do every act in order; the first that fails stops the rest with its own sentence."""
        for act in self.acts:
            act.run()
