"""All probes, in the order in which they are told, and how some of them are chosen and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hypatia_mem.errors import UsageError
from hypatia_mem.rubric import (
    corrections,
    editing,
    evidence,
    gateway,
    marks,
    prompts,
    scopes,
    sequence,
    tombstones,
)
from hypatia_mem.rubric.probe import Probe, Result, run_probe
from hypatia_mem.rubric.world import World

__all__ = ["GROUPS", "PROBES", "chosen", "run"]

GROUPS = {
    "marks": "The seven marks",
    "portable": "The twenty portable tests",
    "editing": "The seven tests of an editing surface",
    "sequence": "A deletion in thirteen steps",
}
PROBES: tuple[Probe, ...] = (
    *marks.PROBES,
    *scopes.PROBES,
    *evidence.PROBES,
    *gateway.PROBES,
    *tombstones.PROBES,
    *corrections.PROBES,
    *prompts.PROBES,
    *editing.PROBES,
    *sequence.PROBES,
)


def chosen(names: Sequence[str]) -> list[Probe]:
    """Return the probes of these ids, groups or beginnings of ids; all without any.

    Raises UsageError for a name that none begins with.
    """
    found: dict[str, Probe] = {}
    for name in names:
        hits = [p for p in PROBES if p.group == name or p.id == name or p.id.startswith(name)]
        if not hits:
            raise UsageError(
                f"there is no probe or group {name[:60]!r}",
                hint=f"Groups: {', '.join(GROUPS)}. Ids: hypatia-mem rubric --list",
            )
        found.update((probe.id, probe) for probe in hits)
    return [probe for probe in PROBES if probe.id in found] if names else list(PROBES)


def run(world: World, probes: Iterable[Probe]) -> Iterator[Result]:
    """Run probes one after the other in one world; each outcome comes as it is there."""
    for probe in probes:
        yield run_probe(probe, world)
