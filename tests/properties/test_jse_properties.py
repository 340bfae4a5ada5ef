"""For any expression: rows by SQL are the matcher's rows, and pages are a partition of them.

Two writings of one meaning. Anything but rows or an error of ours fails, and what is an error for
one is the same error for the other.
"""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hypatia_mem.errors import HypatiaError
from hypatia_mem.jse.parser import parse_value
from hypatia_mem.store.connection import open_store
from tests.conformance.worlds import by_matcher, by_sql
from tests.properties import jse_worlds
from tests.properties.jse_worlds import SCOPES, make_expression, make_index, make_states, rows_of

CAMPAIGN = 20_000
PAGE = 7


class Both:
    """A store and its rows in Python, asked the same."""

    def __init__(self, home, seed):
        states = make_states(random.Random(seed))
        jse_worlds.write_states(home, states)
        self.rows = rows_of(states)
        self.how = {"search": make_index(states, 7.5), "similar": make_index(states, 0.25)}
        self._opened = open_store(home, write=False)
        self.store = self._opened.__enter__()

    def close(self):
        self._opened.__exit__(None, None, None)

    def agree(self, rng):
        """Ask one expression both ways; return "rows", "nothing" or "error"."""
        expression = make_expression(rng)
        scopes = rng.choice((None, None, ["app", ""], [rng.choice(SCOPES)]))
        deep = rng.random() < 0.5
        shown = json.dumps([expression, scopes], ensure_ascii=False)

        def ask(by, where, **more):
            try:
                return by(where, parse_value(expression), scopes=scopes, **self.how, **more)
            except HypatiaError as error:
                return str(error)

        one, other = ask(by_sql, self.store, deep=deep), ask(by_matcher, self.rows)
        assert one == other, shown
        if isinstance(one, str):
            return "error"
        if rng.random() < 0.1:
            self.pages(expression, scopes)
        return "rows" if one else "nothing"

    def pages(self, expression, scopes):
        """Read page by page what is read at once: each row exactly once, in order."""
        whole = expression if isinstance(expression, dict) else {expression[0]: expression[1:]}
        if whole.get("count") or "fields" in whole:
            return

        def ask(**options):
            query = parse_value({**whole, **options})
            return by_sql(self.store, query, scopes=scopes, **self.how)

        everything = ask(limit=-1, offset=0)
        read = []
        for offset in range(0, len(everything) + 1, PAGE):
            read += ask(limit=PAGE, offset=offset)
        assert read == everything, json.dumps(whole, ensure_ascii=False)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    made = Both(tmp_path_factory.mktemp("both"), seed=3)
    yield made
    made.close()


@pytest.mark.deep
@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.randoms(use_true_random=False))
def test_sql_and_matcher_agree(both, rng):
    """However nested, ranked, ordered, paged, walked and set back in time."""
    both.agree(rng)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(4))
def test_sql_and_matcher_agree_on_twenty_thousand(tmp_path, part):
    """Five thousand expressions on each of four memories."""
    both = Both(tmp_path, seed=100 + part)
    found = {"rows": 0, "nothing": 0, "error": 0}
    try:
        for number in range(CAMPAIGN // 4):
            found[both.agree(random.Random(f"{part}-{number}"))] += 1
    finally:
        both.close()
    assert min(found.values()) > CAMPAIGN // 4 // 20, found
