"""Any tree of branches reads as if each had been copied, and hides exactly all the rest."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from hypatia_mem.store.forest import Branch, Forest, gaps_of, gaps_text

NOW = datetime(2026, 11, 30, 12)
MOST = 6  # turns of each session


class Copied:
    """What branches would read if every one of them were a copy: names by place."""

    def __init__(self):
        self.branches = {}
        self.read = {}

    def add(self, parent, at, gaps, turns):
        name = f"s-{len(self.branches)}"
        if parent is None:
            self.read[name], base, gaps = {}, 0, set()
        else:
            places = sorted(self.read[parent])
            base = places[at % len(places)] if places else 0
            # What was wound back is behind the point at which the parent itself branched off, or
            # before it: the client repeats what it shows, wherever that was said.
            gaps = {place for place in gaps if place < base and place in self.read[parent]}
            self.read[name] = {
                place: said
                for place, said in self.read[parent].items()
                if place <= base and place not in gaps
            }
        self.read[name] |= {base + turn: (name, turn) for turn in range(1, turns + 1)}
        self.branches[name] = Branch(
            name, forked_from=parent or "", forked_at=base, gaps=frozenset(gaps), turns=turns
        )


@st.composite
def families(draw):
    """Return a family of branches with the copies that it stands for."""
    made = Copied()
    made.add(None, 0, set(), draw(st.integers(1, MOST)))
    for _ in range(draw(st.integers(0, 7))):
        parent = draw(st.sampled_from(sorted(made.branches)))
        made.add(
            parent,
            draw(st.integers(0, 50)),
            draw(st.sets(st.integers(1, 12), max_size=3)),
            draw(st.integers(0, MOST)),
        )
    return made


def told(spans, turns):
    """Return the names that spans read, by place."""
    return {
        span.base + turn: (span.session, turn)
        for span in spans
        for turn in range(1, turns[span.session] + 1)
        if (span.last is None or turn <= span.last) and span.base + turn not in span.gaps
    }


def unfolded(some, turns):
    return {
        (one.session, turn)
        for one in some
        for turn in range(one.first, (one.last or turns[one.session]) + 1)
    }


@given(families())
@settings(max_examples=150, deadline=None)
def test_a_branch_reads_what_a_copy_would_and_nothing_of_its_siblings(made):
    there = Forest(made.branches.values(), {})
    turns = {name: one.turns for name, one in made.branches.items()}
    everything = {(name, turn) for name, count in turns.items() for turn in range(1, count + 1)}
    for name, copy in made.read.items():
        assert told(there.spans(name), turns) == copy
        assert unfolded(there.hidden(name), turns) == everything - set(copy.values())
    assert [one.id for _, one in there.family("s-0")] != []
    assert {one.id for _, one in there.family("s-0")} == set(made.branches)
    assert there.set_aside() == []


@given(families(), st.data())
@settings(max_examples=150, deadline=None)
def test_whoever_is_no_branch_sees_the_head_and_what_is_gone_on_with(made, data):
    names = sorted(made.branches)
    head = data.draw(st.sampled_from(names))
    on = data.draw(st.sets(st.sampled_from(names)))
    made.branches[head] = replace(made.branches[head], headed_at=NOW)
    at = {name: NOW + timedelta(hours=1 if name in on else -1) for name in names}
    there = Forest(made.branches.values(), at)
    turns = {name: one.turns for name, one in made.branches.items()}
    seen = there.in_sight("s-0")
    assert head in seen
    assert set(seen) <= on | {head}
    visible = {said for name in seen for said in made.read[name].values()}
    everything = {(name, turn) for name, count in turns.items() for turn in range(1, count + 1)}
    assert unfolded(there.set_aside(), turns) == everything - visible


@given(st.sets(st.integers(1, 60)))
def test_ranges_say_the_places_they_were_made_of(places):
    assert gaps_of(gaps_text(places)) == places
