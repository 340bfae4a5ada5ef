"""``rubric``: let the program show, on a copy of this memory, that its mechanisms hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hypatia_mem.cli import context
from hypatia_mem.cli.options import AsJson
from hypatia_mem.cli.output import print_json, say, warn

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from hypatia_mem.rubric.probe import Probe, Result
    from hypatia_mem.rubric.world import World

__all__ = ["rubric"]


def rubric(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME...]",
            help="Only these: ids, beginnings of ids, or marks, portable, editing, sequence.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Say what there is to probe; run nothing.")
    ] = False,
    empty: Annotated[
        bool, typer.Option("--empty", help="Probe an empty memory instead of a copy of this one.")
    ] = False,
    model_runs: Annotated[
        int,
        typer.Option(
            "--model-runs",
            min=0,
            max=100,
            help="Ask the claude command so often whether it obeys a memory; it is paid for.",
        ),
    ] = 0,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Print the contradiction matrix only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run live probes of every mechanism on a scratch copy of this memory.

    Seven marks, twenty portable tests, seven tests of an editing surface and a deletion in thirteen
    steps: each with the place of its mechanism, its test and its positive control. Nothing of this
    memory is changed. Exit code 1 when one of them is a dash, that is, could not be shown.

    \b
    Example:
      hypatia-mem rubric marks
    """
    from hypatia_mem.rubric import catalogue

    probes = catalogue.chosen(names or [])
    if list_:
        _say_list(probes, as_json)
        return
    with _world(empty=empty) as world:
        world.model_runs = model_runs
        if matrix:
            _say_matrix(world, as_json)
            return
        results = _told(catalogue.run(world, probes), len(probes), as_json)
    if as_json:
        print_json(_machine(results))
    else:
        _say_sum(results)
    if any(result.is_dash for result in results):
        raise typer.Exit(1)


def _world(*, empty: bool) -> AbstractContextManager[World]:
    from hypatia_mem.cli.app import COMMANDS, run
    from hypatia_mem.rubric import world
    from hypatia_mem.store.connection import FILE

    home: Path = context.home()
    source = None if empty or not (home / FILE).exists() else home
    if source is None and not empty:
        warn("There is no memory here yet: an empty one is probed.")
    return world.scratch(run, frozenset(COMMANDS), source=source)


def _told(results: Iterable[Result], count: int, as_json: bool) -> list[Result]:
    """Print each outcome when it is there, under the heading of its group."""
    from hypatia_mem.rubric.catalogue import GROUPS

    kept: list[Result] = []
    for result in results:
        if as_json:
            kept.append(result)
            continue
        if not kept or kept[-1].probe.group != result.probe.group:
            say(("\n" if kept else "") + GROUPS[result.probe.group])
        kept.append(result)
        _say_result(result)
    return kept


def _say_result(result: Result) -> None:
    mark = {"held": "held", "dash": "-", "counted": "count"}[result.state]
    say(f"  {mark:<6}{result.probe.id}")
    say(f"        {result.where}")
    say(f"        test: {result.probe.test}")
    say(f"        control: {result.probe.control}")
    for note in result.notes:
        say(f"        note: {note}")
    for reason in result.reasons:
        say(f"        not shown: {reason}")


def _say_sum(results: list[Result]) -> None:
    states = [result.state for result in results]
    counted = states.count("counted")
    more = f", {counted} only counted" if counted else ""
    say(f"\n{states.count('held')} of {len(states)} held, {states.count('dash')} dashes{more}.")


def _machine(results: list[Result]) -> dict[str, Any]:
    states = [result.state for result in results]
    return {
        "held": states.count("held"),
        "dashes": states.count("dash"),
        "counted": states.count("counted"),
        "probes": [result.row() for result in results],
    }


def _say_list(probes: list[Probe], as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "id": probe.id,
                    "group": probe.group,
                    "proves": probe.proves,
                    "control": probe.control,
                    "not_proven": probe.not_proven,
                    "test": probe.test,
                }
                for probe in probes
            ]
        )
        return
    for probe in probes:
        say(f"{probe.id}\n  {probe.proves}")
        if probe.not_proven:
            say(f"  It does not show: {probe.not_proven}")


def _say_matrix(world: World, as_json: bool) -> None:
    from hypatia_mem.rubric import contradictions

    found = contradictions.matrix(world)
    if as_json:
        print_json(found)
    else:
        say(contradictions.table(found))
    if any(why for row in found.values() for why in row.values()):
        raise typer.Exit(1)
