"""``$k-hop`` against networkx: every statement, its hop, the order, and an end in sight."""

from __future__ import annotations

import json
import random
import time

import duckdb
import networkx
import pytest

from hypatia_mem.jse.matcher import Rows
from hypatia_mem.jse.parser import parse_value
from hypatia_mem.store import migrations
from tests.conformance.worlds import by_matcher, by_sql, statement_row

SECONDS = 30  # far more than it takes, far less than to walk every path


class InMemory:
    """As much of a store as a query needs; a file would take longer to fill than to walk."""

    def __init__(self, connection):
        self.execute = connection.execute

    def run(self, sql, params):
        cursor = self.execute(sql, params)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def graph(pairs):
    """Return a store in memory that says ``a to b`` for each pair."""
    connection = duckdb.connect(config={"threads": 2})
    migrations.migrate(connection)
    triples = [f"{a},to,{b}" for a, b in pairs]
    connection.execute(
        """
        INSERT INTO statement BY NAME
        SELECT unnest(from_json($1, '["VARCHAR"]')) AS triple,
          unnest(from_json($2, '["VARCHAR"]')) AS subject, 'to' AS predicate,
          unnest(from_json($3, '["VARCHAR"]')) AS "object", '' AS content, ['app'] AS scopes, 'asserted' AS trust,
          TIMESTAMP '2026-01-01' AS recorded_at, '' AS session_id, '' AS channel,
          TIMESTAMP '2026-01-01' AS created_at, 1 AS seq
        """,
        [json.dumps(names) for names in (triples, [a for a, _ in pairs], [b for _, b in pairs])],
    )
    return InMemory(connection)


def oracle(pairs, start, depth, direction):
    """Return (triple, hop) as networkx has it, nearest first, then by triple."""
    directed = networkx.DiGraph(pairs)
    walked = {
        "forward": directed,
        "backward": directed.reverse(),
        "both": directed.to_undirected(),
    }[direction]
    if start not in walked:
        return []
    dist = networkx.single_source_shortest_path_length(walked, start, cutoff=depth - 1)
    near = {"forward": (0,), "backward": (1,), "both": (0, 1)}[direction]
    hops = [
        (min(reached) + 1, f"{pair[0]},to,{pair[1]}")
        for pair in pairs
        if (reached := [dist[pair[end]] for end in near if pair[end] in dist])
    ]
    return [(triple, hop) for hop, triple in sorted(hops)]


def walk(ask, where, *operands, **how):
    query = parse_value({"$statement": [["$k-hop", *operands]], "limit": -1})
    return [(row["triple"], row["hop"]) for row in ask(where, query, **how)]


@pytest.mark.deep
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("seed", range(4))
def test_a_walk_is_what_networkx_finds(seed, direction):
    """Random graphs with cycles, loops and parts that do not hang together; any depth."""
    rng = random.Random(seed)
    nodes = [f"n{number}" for number in range(40)]
    pairs = sorted({(rng.choice(nodes), rng.choice(nodes)) for _ in range(30 + 20 * seed)})
    store = graph(pairs)
    rows = Rows(
        statements=[statement_row({"subject": a, "predicate": "to", "object": b}) for a, b in pairs]
    )
    for depth in (1, 2, 3, 7, 9, 1000):
        start = rng.choice(nodes)
        expected = oracle(pairs, start, depth, direction)

        assert walk(by_sql, store, start, "$*", depth, direction) == expected
        assert walk(by_sql, store, start, "to", depth, direction, deep=True) == expected
        assert walk(by_matcher, rows, start, "$*", depth, direction) == expected


@pytest.mark.parametrize("depth", [6, 1_000_000])
def test_a_complete_graph_ends(depth):
    """Thirty names, each tied to all others: 10^8 paths of six steps, and 870 statements."""
    names = [f"k{number}" for number in range(30)]
    pairs = [(a, b) for a in names for b in names if a != b]
    store = graph(pairs)
    began = time.monotonic()

    for how in ({}, {"deep": True}):
        found = walk(by_sql, store, "k0", "to", depth, **how)
        assert found == oracle(pairs, "k0", depth, "forward")

    assert time.monotonic() - began < SECONDS


@pytest.mark.deep
@pytest.mark.parametrize(("start", "direction"), [("n0", "forward"), ("n5000", "both")])
def test_a_chain_of_ten_thousand_ends(start, direction):
    """As deep as it is long, in hop order."""
    pairs = [(f"n{number}", f"n{number + 1}") for number in range(10_000)]
    store = graph(pairs)
    began = time.monotonic()

    found = walk(by_sql, store, start, "to", 10_000, direction, deep=True)

    assert time.monotonic() - began < SECONDS
    assert found == oracle(pairs, start, 10_000, direction)


def test_a_walk_is_paged_in_its_order():
    """Each statement once, however small the pages."""
    pairs = [(f"n{number // 3}", f"n{number}") for number in range(1, 40)]
    store = graph(pairs)
    pages = []
    for offset in range(0, 42, 4):
        query = {"$statement": [["$k-hop", "n0", "to", 99]], "limit": 4, "offset": offset}
        pages += [(row["triple"], row["hop"]) for row in by_sql(store, parse_value(query))]

    assert pages == oracle(pairs, "n0", 99, "forward")
