"""A made-up memory with three states, and expressions to ask of it: all by one random generator.

The vocabulary is small, so that conditions often hold, and full of traps: names that are parts of
each other, that look like operators, patterns, SQL or JSON; data of every JSON type; aliases that
point at each other; equal times and scores, so that only the key can break a tie.
"""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import datetime
from functools import cache

from hypatia_mem.jse.operators import OPERATORS, OPTIONS
from hypatia_mem.jse.rows import triple_text
from hypatia_mem.store.connection import open_store
from tests.conformance.worlds import PERSON, entry, fill, published, statement

TIMES = (datetime(2026, 1, 1), datetime(2026, 2, 1), datetime(2026, 3, 1, 12, 30))
NAMES = (
    "a",
    "b",
    "c",
    "d",
    "A",
    "é",
    "数据",
    "app",
    "my-app",
    "a,b",
    'q"q',
    "a b",
    "$x",
    "%",
    "_a",
    "x' OR '1'='1",
)
TAGS = ("rule", "overruled", "summary", "summary 1", "summary 10", "message", "", "$odd", "a")
SCOPES = ("app", "my-app", "", "App", "p%")
PREDICATES = ("to", "knows", "summary", "to%")
ASKED = (*PREDICATES, "Knows", "TO", " summary")  # spellings of what is stored
DAYS = (
    "2025-01-01",
    "2025-01-02",
    "2025-01-02 00:00:00.000001",
    "2025-02-03T04:05:06",
    "2025-03-01",
)
WHEN = (
    *DAYS,
    "2025-01-01T00:00:00Z",
    "2025-01-02T01:00:00+01:00",
    "2024-12-31T23:00",
    "2025-01-01T22:00:00Z",
    "2026-02-01",
    "2025-02-30",
    "x",
)
NUMBERS = (0, 1, -1, 9, 18, 18.0, 0.5, 1e300, 2**53, 2**53 + 1, 2**64, -(2**63), 10**30)
TEXTS = (
    "",
    "a",
    "A",
    "ab",
    "red",
    "reddish",
    "é",
    "数",
    "18",
    "true",
    "null",
    "a\nb",
    "100%",
    "_",
    "\\",
    "[1]",
)
DATA = (
    '{"a": 1}', '{"a": 18.0, "b": {"c": "x"}}', '{"a": "18"}', '{"a": null}', '{"a": true, "b": false}',
    '{"a": [1, "red", null, {"c": [1, 2]}], "b": {"c": [1], "d": "2025-01-01"}}',
    '{"a": "2025-01-02T00:00:00+02:00"}', '{"a": "2025-01-01"}', '{"a": "2025-02-30"}', '{"a": 1e400}',
    '{"a": 9007199254740993}', '{"a": 9007199254740992.0}', '{"a": 18446744073709551616}', '{"a": -0.0}',
    '{"a": 1, "a": 2}', '{"a": "\\u0041\\n"}', '{"a": "\\ud800"}', '{"a": NaN, "b": [Infinity]}', '{"a": [1,],}',
    '{"": 1, "a b": {"x/y": "~"}, "0": 3, "$x": 1}', "[1, [2, [3]]]", '["red", {"a": 1}]', "5", '"red"', "null", "true",
    '{"a": {"c": {"d": [["deep"]]}}}', " {}\n", "{'a': 1}", "{", '{"a": []}', '{"a": {}}', '{"a": "reddish"}',
)  # fmt: skip
# What some of the data holds, and what it only nearly holds.
LIKELY = (1, 18, "18", True, "red", "x", 2**53, 2**53 + 1, 2**64, "2025-01-01", "2025-01-01T22:00:00Z", 0)  # fmt: skip
WHOLE = (
    *(json.loads(text) for text in DATA[:6]),
    {"": 1, "a b": {"x/y": "~"}, "0": 3, "$x": 1}, {"a": {"c": {"d": [["deep"]]}}}, [1, [2, [3]]], ["red", {"a": 1}],
)  # fmt: skip
PATHS = (
    "a",
    "b",
    "b.c",
    "b.d",
    "a[0]",
    "a[1]",
    "a[9]",
    "a[3].c",
    "a.c.d",
    "data.a",
    "data.b.c",
    "data[0]",
    "data[1][1]",
    "0",
    "zz",
)


# --- the memory -----------------------------------------------------------------------------------


def make_states(rng, size=60):
    """Return the rows at each of TIMES, each state grown out of the one before."""
    given = {"entries": [], "statements": []}
    states = []
    for _ in TIMES:
        given = deepcopy(given)
        for row in rng.sample(given["entries"], len(given["entries"]) // 4):
            row |= fresh_fields(rng)
        for row in rng.sample(given["entries"], len(given["entries"]) // 6):
            remove(given, row["name"])
        for row in rng.sample(given["statements"], len(given["statements"]) // 6):
            given["statements"].remove(row)
        add(rng, given, size)
        states.append(given)
    return states


def add(rng, given, size):
    names = {row["name"] for row in given["entries"]}
    for number in range(size - len(names)):
        name = rng.choice(NAMES) if number % 3 == 0 else f"{rng.choice(NAMES)}{rng.randrange(99)}"
        if name not in names:
            names.add(name)
            turn = rng.choice((None, None, 1, 2))
            made = {"name": name, "turn": turn, "created_at": rng.choice(DAYS)}
            given["entries"].append(made | fresh_fields(rng))
    ends = [*NAMES, *rng.sample(sorted(names), min(8, len(names)))]
    known = {triple(row) for row in given["statements"]}
    for _ in range(size):
        row = {
            "subject": rng.choice(ends),
            "predicate": rng.choice(PREDICATES),
            "object": rng.choice(ends),
            "content": rng.choice(("", "said", *DATA[:6])),
            "scopes": some(rng, SCOPES, 2) or [""],
            "created_at": rng.choice(DAYS),
            "trust": rng.choice(("asserted",) * 9 + ("candidate",)),
            "synonyms": {
                part: some(rng, NAMES, 2)
                for part in ("subject", "predicate", "object")
                if rng.random() < 0.1
            }
            or None,
        } | validity(rng)
        if row["predicate"] == "summary":
            # No entry stands there: an entry that sums up another goes when the other changes.
            row["subject"] = rng.choice(("sum-1", "sum-2"))
        if triple(row) not in known:
            known.add(triple(row))
            given["statements"].append(row)


def triple(row):
    return row["subject"], row["predicate"], row["object"]


def remove(given, name):
    given["entries"] = [row for row in given["entries"] if row["name"] != name]
    given["statements"] = [
        row for row in given["statements"] if name not in (row["subject"], row["object"])
    ]


def fresh_fields(rng):
    json_data = rng.random() < 0.7
    return {
        "content": rng.choice(DATA if json_data else TEXTS),
        "format": "json" if json_data and rng.random() < 0.8 else "markdown",
        "tags": some(rng, TAGS, 3),
        "scopes": some(rng, SCOPES, 2) or [""],
        "synonyms": some(rng, NAMES, 2) if rng.random() < 0.2 else [],
        "figures": some(rng, ("archive://a.png", "archive://a"), 2),
        "trust": rng.choice(("asserted",) * 12 + ("candidate", "rejected")),
        "suppressed": rng.random() < 0.05,
    } | validity(rng)


def validity(rng):
    start, end = sorted(rng.sample(DAYS, 2), key=datetime.fromisoformat)
    return {
        "tr_start": start if rng.random() < 0.3 else None,
        "tr_end": end if rng.random() < 0.3 else None,
    }


def some(rng, words, most):
    return rng.sample(words, rng.randint(0, most))


def write_states(home, states):
    """Live through the states in a store, each at its time."""
    before = {"entries": [], "statements": []}
    for now, state in zip(TIMES, states, strict=True):
        if before["entries"]:
            change(home, before, state, now)
        else:
            fill(home, state, now)
        before = state


def birth(row):
    return row.get("created_at"), row.get("turn")


def change(home, before, after, now):
    was = {row["name"]: row for row in before["entries"]}
    becomes = {row["name"]: row for row in after["entries"]}
    with open_store(home, write=True) as store, store.transaction(PERSON, now=now) as txn:
        for name, row in was.items():
            if birth(becomes.get(name, {})) != birth(row):  # gone, or another of the same name
                txn.delete_entry(name)
        for row in before["statements"]:
            if row not in after["statements"] and store.statement(*triple(row)) is not None:
                txn.delete_statement(*triple(row))
        for name, row in becomes.items():
            made = entry(row)
            if birth(was.get(name, {})) != birth(row):
                txn.put_entry(made)
            elif row != was[name]:
                fields = ("content", "format", "tags", "scopes", "synonyms", "figures", "trust")
                more = ("suppressed", "valid_from", "valid_to")
                txn.update_entry(name, **{key: getattr(made, key) for key in (*fields, *more)})
        for row in after["statements"]:
            txn.put_statement(statement(row))


def rows_of(states):
    """Return today's Python rows; ``known_at`` returns those of an earlier state."""
    made = [published(state) for state in states]

    def known_at(moment):
        known = [rows for time, rows in zip(TIMES, made, strict=True) if time <= moment]
        return known[-1] if known else type(made[0])()

    return type(made[0])(made[-1].entries, made[-1].statements, known_at)


# --- expressions ----------------------------------------------------------------------------------


def make_expression(rng):
    """Return an expression that is usually right and sometimes damaged."""
    catalog = rng.choice(("knowledge", "knowledge", "statement"))
    top = f"${catalog}"
    operands = [
        condition(rng, catalog, rng.randint(0, 3)) for _ in range(rng.choice((0, 1, 1, 1, 2)))
    ]
    if catalog == "knowledge" and rng.random() < 0.15:
        top, operands = "$not-summaried", [rng.choice(TAGS), *operands]
    options = make_options(rng, catalog, json.dumps(operands))
    as_object = options or rng.random() < 0.3
    found = {top: operands, **options} if as_object else [top, *operands]
    return damaged(rng, found) if rng.random() < 0.1 else found


def make_options(rng, catalog, operands):
    found = {}
    if rng.random() < 0.15:
        found["count"] = True
        return found | times(rng)
    if rng.random() < 0.3:
        found["limit"] = rng.choice((-1, 0, 1, 3, 10))
    if rng.random() < 0.2:
        found["offset"] = rng.choice((0, 1, 5))
    if rng.random() < 0.3:
        found["order"] = [
            [sortable(rng, catalog, operands), rng.choice(("asc", "desc"))]
            for _ in range(rng.randint(1, 2))
        ]
    if rng.random() < 0.1:
        found["fields"] = [any_field(rng, catalog) for _ in range(rng.randint(1, 3))]
    return found | times(rng)


def times(rng):
    found = {}
    if rng.random() < 0.12:
        found["as_of"] = rng.choice(DAYS)
    if rng.random() < 0.15:
        found["as_known_at"] = rng.choice(
            (
                "2025-12-31",
                "2026-01-01",
                "2026-01-15",
                "2026-02-01",
                "2026-03-01T12:30:00Z",
                "2027-01-01",
            )
        )
    return found


def sortable(rng, catalog, operands):
    special = [
        name for name, mark in (("score", '"$search"'), ("hop", '"$k-hop"')) if mark in operands
    ]
    texts = ("name", "format") if catalog == "knowledge" else ("triple", "subject", "tail")
    return rng.choice((*texts, *special, "created_at", "tr_start", "data", "a", "b.c", "a[0]"))


def any_field(rng, catalog):
    own = {
        "knowledge": ("name", "name", "tags[0]"),
        "statement": ("triple", "subject", "predicate", "tail", "synonyms.head"),
    }
    lists = ("tags", "scopes", "synonyms", "figures")
    times = ("created_at", "tr_start", "tr_end")
    kind = rng.choice((own[catalog], lists, times, ("data", "format"), PATHS, ("a", "b.d"), ("a",)))
    return rng.choice(kind)


def condition(rng, catalog, depth):
    """Return one condition; the deeper it may go, the more often it is made of others."""
    if depth and rng.random() < 0.55:
        inner = [condition(rng, catalog, depth - 1) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
        kind = rng.choice(("$and", "$or", "$not", f"${catalog}"))
        if kind == "$not":
            return ["$not", condition(rng, catalog, depth - 1)]
        return [kind, *inner[:1]] if kind[1:] == catalog else [kind, *inner]
    makers = [compare, compare, contains, has, like, content, json_contains, search, scoped]
    if catalog == "statement":
        makers += [make_triple, make_triple, k_hop, k_hop]
    made = rng.choice(makers)(rng, catalog)
    return {made[0]: made[1:]} if rng.random() < 0.1 else made


def compare(rng, catalog):
    field = any_field(rng, catalog)
    sign = rng.choice(("$eq", "$eq", "$ne", "$gt", "$lt", "$gte", "$lte"))
    return [sign, field, value(rng, field)]


def value(rng, field):
    if rng.random() < 0.04:
        return rng.choice((None, True, 5, "x", ["a"], {"a": 1}))
    if field in ("created_at", "tr_start", "tr_end"):
        return rng.choice(WHEN[:-2])
    if field in PATHS and rng.random() < 0.5:
        return rng.choice(LIKELY)
    if field in PATHS:
        return rng.choice((*NUMBERS, *TEXTS, *WHEN, True, False, None))
    return escaped(rng.choice((*words_of(field), *TEXTS)))


def words_of(field):
    base = field.split("[")[0].split(".")[0]
    words = {"tags": TAGS, "scopes": SCOPES, "figures": ("archive://a",), "predicate": ASKED}
    return words.get(base, (*NAMES, *DATA[:3]))


def escaped(text):
    return f"${text}" if text.startswith("$") and len(text) % 2 else text


def contains(rng, catalog):
    field = any_field(rng, catalog)
    if field in ("created_at", "tr_start", "tr_end"):
        return ["$contains", field, rng.choice(("2025", "-01-", "00:00", ""))]
    return ["$contains", field, value(rng, field)]


def has(rng, catalog):
    field = any_field(rng, catalog)
    if rng.random() < 0.3:
        return ["$has", field, value(rng, field)]
    return ["$has", field, ["$quote", [value(rng, field) for _ in range(rng.randint(1, 3))]]]


def like(rng, catalog):
    pattern = rng.choice(
        (
            "%",
            "_",
            "a%",
            "%a%",
            "%e%d%",
            "_a%",
            "",
            "2025-01-%",
            "%\\%",
            "%%",
            "数%",
            "r%d",
            "100\\%",
        )
    )
    return ["$like", any_field(rng, catalog), pattern]


def content(rng, catalog):
    fields = [any_field(rng, catalog) for _ in range(rng.randint(0, 2))]
    return ["$content", {field: value(rng, field) for field in fields}]


def json_contains(rng, catalog):
    found = {}
    for _ in range(rng.randint(0, 2)):
        field = rng.choice(("tags", "scopes", "data", "a", "b", "format", "synonyms"))
        if field in ("tags", "scopes"):
            words = TAGS if field == "tags" else SCOPES
            found[field] = rng.choice((some(rng, words, 2), rng.choice(words), None))
        elif field == "synonyms":
            found[field] = (
                some(rng, NAMES, 1) if catalog == "knowledge" else {"head": some(rng, NAMES, 1)}
            )
        else:
            found[field] = "json" if field == "format" else pattern(rng, 3)
    if rng.random() < 0.4:
        found["data"] = part_of(rng, rng.choice(WHOLE))
    return ["$json-contains", ["$quote", found]]


def part_of(rng, value):
    """Return what is in a JSON value, or very nearly."""
    if isinstance(value, dict):
        return {key: part_of(rng, item) for key, item in value.items() if rng.random() < 0.7}
    if isinstance(value, list):
        return [part_of(rng, item) for item in reversed(value) if rng.random() < 0.7]
    return rng.choice(LIKELY) if rng.random() < 0.1 else value


def pattern(rng, depth):
    if depth and rng.random() < 0.5:
        if rng.random() < 0.5:
            return [pattern(rng, depth - 1) for _ in range(rng.randint(0, 2))]
        keys = ("a", "b", "c", "d", "", "a b", "x/y", "0", "$x")
        return {rng.choice(keys): pattern(rng, depth - 1) for _ in range(rng.randint(0, 2))}
    return rng.choice(
        (1, 2, 3, 18, "red", "x", "deep", "~", "18", True, None, "2025-01-01", 2**53 + 1)
    )


def search(rng, catalog):
    return [
        rng.choice(("$search", "$search", "$similar")),
        rng.choice(("a", "b", "red", "$x", "none")),
    ]


def scoped(rng, catalog):
    return rng.choice(
        (["$contains", "scopes", rng.choice(SCOPES)], ["$has", "scopes", list(SCOPES[:2])])
    )


def end(rng):
    return escaped(rng.choice(NAMES))


def make_triple(rng, catalog):
    parts = [end(rng), rng.choice(ASKED), end(rng)]
    return ["$triple", *(part if rng.random() < 0.5 else "$*" for part in parts)]


def k_hop(rng, catalog):
    made = ["$k-hop", end(rng), rng.choice(("$*", "$*", *ASKED)), rng.choice((1, 2, 3, 6, 50))]
    return [*made, rng.choice(("forward", "backward", "both"))] if rng.random() < 0.6 else made


JUNK = (
    None,
    True,
    5,
    -1,
    "",
    "x",
    "$x",
    "$*",
    "$$",
    [],
    {},
    ["$eq"],
    {"$eq": []},
    ["x"],
    {"a": 1},
    1e308,
    "$quote",
    *OPERATORS,
    *OPTIONS,
)


def damaged(rng, value):
    """Return an expression with one part of it replaced by something else."""
    if rng.random() < 0.25 or not isinstance(value, list | dict) or not value:
        return rng.choice(JUNK)
    if isinstance(value, list):
        at = rng.randrange(len(value))
        return [damaged(rng, item) if place == at else item for place, item in enumerate(value)]
    at = rng.choice(sorted(value))
    if rng.random() < 0.3:
        return {(str(rng.choice(JUNK)) if key == at else key): item for key, item in value.items()}
    return {key: damaged(rng, item) if key == at else item for key, item in value.items()}


def make_index(states, weight):
    """Return a stand-in for an index: what holds the word, with scores that are often equal."""

    @cache
    def ask(text, catalog):
        found = [("gone", weight)]
        for state in states:
            if catalog == "knowledge":
                named = [(row["name"], row) for row in state["entries"]]
            else:
                named = [(triple_text(triple(row)), row) for row in state["statements"]]
            found += [
                (name, weight * (1 + len(name) % 3))
                for name, row in named
                if text in name + row["content"]
            ]
        return sorted(found, key=lambda hit: -hit[1])

    return ask
