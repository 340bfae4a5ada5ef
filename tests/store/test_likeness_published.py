"""The figures that are told of rewordings and strangers are those that a run counts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.store.likeness.kit import cases, unrelated
from tests.store.test_likeness import index_of

PUBLISHED = Path(__file__).parents[2] / "benchmarks" / "results" / "tombstones.json"


def test_the_published_figures_are_those_of_a_run():
    """``benchmarks/tombstones.py`` counts over the same sets."""
    [told] = [
        one for one in json.loads(PUBLISHED.read_text("utf-8"))["quality"] if one["set"] == "coding"
    ]
    found = cases("coding")
    indexes = {case.value: index_of(case) for case in found}
    caught = [bool(indexes[case.value].near(text)) for case in found for text in case.same]
    strangers = [bool(indexes[case.value].near(text)) for case, text in unrelated(found)]
    assert told["wordings"] == [sum(caught), len(caught)]
    assert told["unrelated"] == [sum(strangers), len(strangers)]
