"""What questions cost as a memory grows: lookups, filters, graph steps and full-text search.

    python benchmarks/query.py [--size 10000,100000,1000000] [--runs 30] [--folder F] [--out FILE]

Fills one memory a size: messages of about 500 characters (a twenty-fifth of the entries are
knowledge), two statements an entry, and the search index through the program's own door.
``--folder`` keeps them for the next run. Then, per size:

- warm: each question asked again and again in one process, the store opened anew each time as the
  command line does (``open`` is that alone). Wall time, p50 and p95 in milliseconds.
- cold: whole processes, interleaved with ``python -c "import duckdb"``, their wall time and CPU as
  a ratio to it.

The last table says how much slower the largest memory is than the smallest. Nothing here passes or
fails; what is aimed at is printed beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from hook import Case, machine, quantile  # noqa: E402 - beside this file

from hypatia_mem.capture import paths  # noqa: E402 - the clone, not an installed version
from hypatia_mem.cli.graph import run_query  # noqa: E402
from hypatia_mem.cli.searching import find  # noqa: E402
from hypatia_mem.errors import IndexUnavailable  # noqa: E402
from hypatia_mem.model import Author, Channel, Entry, Statement  # noqa: E402
from hypatia_mem.store import engine, rows  # noqa: E402
from hypatia_mem.store.connection import Store, open_store  # noqa: E402
from hypatia_mem.store.indexing import collect  # noqa: E402
from hypatia_mem.store.search import SearchIndex  # noqa: E402

PROJECTS = 20
SESSION = 400  # messages of one session
SENTENCES = 20_000
VOCABULARY = 30_000
KNOWLEDGE = 25  # every so-manyth entry is knowledge and no message
TOPICS = 200
LINKS = 10  # every so-manyth statement links two things; the others tell where a message belongs
BATCH = 20_000
BEGIN = datetime(2026, 1, 1)  # noqa: DTZ001 - naive UTC
PROJECT = "app-7"
BASE = 'python -c "import duckdb"'
COMMON = """
    the of to and a in is that it was for on are as with they be at one have this from or had by
    not but what all were we when there can an your which their said if do will each about how
""".split()  # noqa: SIM905 - a list of them takes half a page


# ------------------------------------------------------------------------------- filling a memory


@functools.cache
def sentences() -> list[str]:
    """Return made-up prose whose words are as unevenly frequent as those of real text."""
    chance = random.Random(7)
    parts = ["ba", "co", "der", "fi", "gu", "lan", "mo", "ne", "pro", "qui", "rat", "sol", "tem"]
    words = dict.fromkeys(COMMON)
    while len(words) < VOCABULARY:
        words["".join(chance.choices(parts, k=chance.choice((2, 3, 3, 4, 5))))] = None
    listed = list(words)
    sums = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(listed))))
    drawn = (
        chance.choices(listed, cum_weights=sums, k=chance.randrange(10, 24))
        for _ in range(SENTENCES)
    )
    return [" ".join(words).capitalize() + "." for words in drawn]


def fill(home: Path, size: int) -> None:
    """Make a memory of ``size`` entries and twice as many statements."""
    paths.ensure_home(str(home))
    with open_store(home, write=True) as store:
        # A memory grows by small batches, and each block of rows is compressed so when it is full.
        store.connection.execute(engine._THOROUGH)
        store.execute(_PROSE, [SENTENCES, sentences()])
        store.execute(_NUMBERED, [size, SESSION, KNOWLEDGE, PROJECTS])
        _entries(store)
        _messages(store)
        _statements(store, size)
    (home / "filled").touch()
    with open_store(home, write=False) as store:
        build_index(store, SearchIndex(home))


def prepare(home: Path, size: int) -> None:
    """Make the memory, or its index, unless it is there from a run before."""
    started = time.perf_counter()
    try:
        SearchIndex(home).seq()
    except IndexUnavailable:
        if (home / "filled").exists():
            with open_store(home, write=False) as store:
                SearchIndex(home).clear()
                build_index(store, SearchIndex(home))
        else:
            fill(home, size)
        print(f"filled {size} in {time.perf_counter() - started:.0f} s", flush=True)
    with open_store(home, write=True):  # what a newer version changes in the store
        pass


_PROSE = "CREATE TEMP TABLE prose AS SELECT unnest(range(?)) AS id, unnest(?::VARCHAR[]) AS text"
_NUMBERED = """
    CREATE TEMP TABLE numbered AS
    SELECT i, i // $2 AS s, i % $2 + 1 AS turn, i % $3 = 0 AS known, (i // $2) % $4 AS project,
        TIMESTAMP '2026-01-01' + INTERVAL 10 SECOND * i AS made_at
    FROM range($1) AS t(i)
"""
_TEXT = f"""
    SELECT i, string_agg(prose.text, ' ') || ' See src/mod' || i % 997 || '/file' || i % 9973
        || '.py and ticket ' || substr(md5(i::VARCHAR), 1, 12) || '.' AS text
    FROM (SELECT i, unnest(range(4)) AS part FROM numbered) AS wanted
    JOIN prose ON prose.id = (hash(i * 4 + part) % {SENTENCES})::BIGINT
    GROUP BY i
"""  # noqa: S608 - a number of this module


def insert(store: Store, table: str, template: dict[str, Any], source: str, **own: str) -> None:
    """Insert rows shaped like ``template``; ``own`` are the columns that differ, as SQL."""
    names = list(template)
    columns = ", ".join(own.get(name, f"$t{at}") for at, name in enumerate(names))
    values = {f"t{at}": template[name] for at, name in enumerate(names) if name not in own}
    quoted = ", ".join(f'"{name}"' for name in names)
    store._connection.execute(
        f"INSERT INTO {table} ({quoted}) SELECT {columns} FROM {source}"  # noqa: S608
        " ON CONFLICT DO NOTHING",
        values,
    )


def _entries(store: Store) -> None:
    author = Author(Channel.TRANSCRIPT)
    message = rows.entry_row(
        Entry("m", "", tags=("message",), kind="message", created_at=BEGIN), author, BEGIN
    )
    insert(
        store,
        "entry",
        message,
        f"numbered JOIN ({_TEXT}) AS made USING (i) WHERE NOT known ORDER BY i",
        name="'msg-s' || s || '-' || turn",
        content="'## Role\n' || CASE turn % 2 WHEN 0 THEN 'assistant' ELSE 'user' END ||"
        " '\n\n## Timestamp\n' || made_at || '\n\n## Content\n' || text",
        content_digest="md5(text)",
        scopes="['app-' || project]",
        session_id="'s' || s",
        turn="turn",
        created_at="made_at",
    )
    known = rows.entry_row(Entry("k", "", created_at=BEGIN), author, BEGIN)
    insert(
        store,
        "entry",
        known,
        f"numbered JOIN ({_TEXT}) AS made USING (i) WHERE known ORDER BY i",
        name="'thing-' || i // " + str(KNOWLEDGE),
        content="text",
        content_digest="md5(text)",
        tags=f"['memory', 'work-unit', 'topic-' || i // {KNOWLEDGE} % {TOPICS}]",
        scopes=f"['app-' || i // {KNOWLEDGE} % {PROJECTS}]",
        created_at="made_at",
    )


def _messages(store: Store) -> None:
    store.execute(
        """
        INSERT INTO message BY NAME
        SELECT 's' || s AS session_id, turn, 'u-' || i AS uuid, '' AS parent_uuid,
            'p-' || i // 2 AS prompt_id, '' AS response_id,
            CASE turn % 2 WHEN 0 THEN 'assistant' ELSE 'user' END AS role, '' AS agent_id,
            '[]' AS parts, 120 AS tokens, []::VARCHAR[] AS flags, md5(i::VARCHAR) AS text_digest,
            made_at AS at
        FROM numbered WHERE NOT known ORDER BY i
        """
    )


def _statements(store: Store, size: int) -> None:
    author = Author(Channel.TRANSCRIPT)
    row = rows.statement_row(Statement("s", "p", "o", created_at=BEGIN), author, BEGIN)
    more = {"scopes": "['app-' || project]", "created_at": "made_at"}
    message = "'msg-s' || s || '-' || turn"
    insert(
        store, "statement", row, "numbered WHERE NOT known ORDER BY i", **more,
        triple=f"{message} || ',belongTo,session-s' || s",
        subject=message, predicate="'belongTo'", object="'session-s' || s",
    )  # fmt: skip
    last = size // SESSION - PROJECTS  # each project's latest session is not summed up yet
    insert(
        store, "statement", row, f"numbered WHERE NOT known AND s < {last} ORDER BY i", **more,
        triple=f"'sum-s' || s || '-1,summary,' || {message}",
        subject="'sum-s' || s || '-1'", predicate="'summary'", object=message,
    )  # fmt: skip
    things = max(2, size // KNOWLEDGE)
    one, other = f"'thing-' || i % {things}", f"'thing-' || hash(i) % {things}"
    insert(
        store, "statement", row, f"numbered WHERE i % {LINKS} = 0 ORDER BY i", **more,
        triple=f"{one} || ',uses,' || {other}",
        subject=one, predicate="'uses'", object=other,
    )  # fmt: skip


def build_index(store: Store, index: SearchIndex) -> None:
    """Index everything, in batches as the worker does."""
    for kind, sql in (
        ("knowledge", "SELECT name FROM entry ORDER BY created_at"),
        ("statement", "SELECT triple FROM statement WHERE predicate = 'uses' ORDER BY created_at"),
    ):
        names = [str(row[0]) for row in store.execute(sql).fetchall()]
        for start in range(0, len(names), BATCH):
            part = names[start : start + BATCH]
            documents, _ = collect(store, [(0, name, kind) for name in part])
            index.update(documents, (), store.ledger_seq())


# ------------------------------------------------------------------------------------- measuring


def questions(size: int) -> dict[str, str]:
    """Return the expressions to ask of a memory of this size."""
    thing = size // KNOWLEDGE // 2
    scope = ["$contains", "scopes", PROJECT]
    found: dict[str, Any] = {
        "name": ["$knowledge", ["$eq", "name", f"msg-s{size // SESSION // 2}-7"]],
        "triple": ["$statement", ["$triple", f"thing-{thing}", "$*", "$*"]],
        "tag and scope, common": _first(100, ["$contains", "tags", "message"], scope),
        "tag and scope, rare": _first(100, ["$contains", "tags", "topic-7"], scope),
        "not summaried": {"$not-summaried": ["message", scope], "limit": 100},
        "3 hops": {"$statement": [["$k-hop", f"thing-{thing}", "uses", 3]], "limit": 100},
        "$search": _first(20, ["$search", " ".join(sample(1)[0])]),
        "$search and scope": _first(20, ["$search", " ".join(sample(1)[0])], scope),
    }  # fmt: skip
    return {name: json.dumps(value) for name, value in found.items()}


def _first(limit: int, *conditions: object) -> dict[str, object]:
    return {"$knowledge": list(conditions), "limit": limit}


def sample(runs: int) -> list[list[str]]:
    """Return search texts: words of one sentence each, from two to eight, common ones included."""
    chance = random.Random(11)
    prose = sentences()
    found = []
    for number in range(runs):
        words = chance.choice(prose).rstrip(".").split()
        found.append(chance.sample(words, min(len(words), 2 + number % 7)))
    return found


def times(acts: Sequence[Callable[[], object]]) -> list[tuple[float, float]]:
    """Return wall and CPU time (of all threads) of each act in milliseconds, after a first one."""
    acts[0]()
    found = []
    for act in acts:
        engine._close_left_over()  # a command has none from before either
        started, used = time.perf_counter(), time.process_time()
        act()
        wall, cpu = time.perf_counter() - started, time.process_time() - used
        found.append((wall * 1000, cpu * 1000))
    return found


def warm(home: Path, size: int, runs: int) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Ask each question ``runs`` times in this process."""

    def opened() -> None:
        with open_store(home, write=False) as store:
            store.execute("SELECT 1")

    yield "open", times([opened] * runs)
    for name, expression in questions(size).items():
        try:
            ask = functools.partial(run_query, home, expression, all_projects=True)
            yield name, times([ask] * runs)
        except Exception as error:  # noqa: BLE001 - a table with a gap says more than none
            print(f"  {name}: {type(error).__name__}: {str(error)[:100]}")
    texts = [" ".join(words) for words in sample(max(runs, 100))]
    yield (
        "search",
        times([lambda t=text: find(home, t, scopes=[PROJECT, ""], limit=20) for text in texts]),  # type: ignore[misc]
    )
    yield (
        "search, all projects",
        times([lambda t=text: find(home, t, limit=20) for text in texts]),  # type: ignore[misc]
    )


def cold(home: Path, size: int, runs: int) -> list[Case]:
    """Run whole processes, one of each in turn."""
    environ = {
        "HYPATIA_MEM_HOME": str(home),
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    program = [sys.executable, "-m", "hypatia_mem"]
    asked = questions(size)
    cases = [
        Case(BASE, [sys.executable, "-c", "import duckdb"], environ=environ),
        Case("python -c pass", [sys.executable, "-c", "pass"], environ=environ),
        Case("search", [*program, "search", " ".join(sample(1)[0]), "--limit", "20"]),
        Case("query, name", [*program, "query", asked["name"]]),
        Case("query, tag and scope, common", [*program, "query", asked["tag and scope, common"]]),
    ]
    for case in cases:
        case.environ = environ
        case.run()
        case.cpu.clear()
        case.wall.clear()
    for _ in range(runs):
        for case in cases:
            case.run()
    return cases


def measure(home: Path, size: int, runs: int, project: Path) -> list[dict[str, object]]:
    """Measure one memory; print its tables and return their rows."""
    found: list[dict[str, object]] = []
    print(f"\n{size} entries\n{'warm, ms':32} {'p50':>9} {'p95':>9} {'CPU p50':>9}")
    key = paths.find_root(str(project)).key
    (home / paths.BRIEFS / f"{key}.scope").write_text(PROJECT)  # as the worker writes it down
    os.environ["HYPATIA_MEM_HOME"] = str(home.absolute())
    with contextlib.chdir(project):
        for name, values in warm(home, size, runs):
            walls = [wall for wall, _ in values]
            middle, high = statistics.median(walls), quantile(walls, 0.95)
            used = statistics.median(cpu for _, cpu in values)
            print(f"{name:32} {middle:9.2f} {high:9.2f} {used:9.2f}", flush=True)
            row = {
                "ms_p50": round(middle, 2),
                "ms_p95": round(high, 2),
                "cpu_ms_p50": round(used, 2),
            }
            found.append({"case": name, **row})
        cases = cold(home, size, max(5, runs // 3))
    base = cases[0]
    print(f"{'cold':32} {'wall ms':>9} {'ratio':>9} {'CPU':>9}")
    for case in cases:
        wall = statistics.median(case.wall)
        ratio = wall / statistics.median(base.wall)
        cpu = statistics.median(case.cpu) / statistics.median(base.cpu)
        print(f"{case.name:32} {wall:9.1f} {ratio:9.2f} {cpu:9.2f}", flush=True)
        found.append(
            {
                "case": f"cold: {case.name}",
                "wall_ms_p50": round(wall, 1),
                "wall_ratio": round(ratio, 2),
                "cpu_ratio": round(cpu, 2),
            }
        )
    return found


def growth(results: dict[int, list[dict[str, object]]]) -> dict[str, dict[str, float]]:
    """Return how many times slower the largest memory is than the smallest, by warm case."""
    small, large = results[min(results)], results[max(results)]
    before = {row["case"]: row for row in small if "ms_p50" in row}
    return {
        str(row["case"]): {
            kind: round(float(str(row[name])) / max(0.01, float(str(before[row["case"]][name]))), 2)
            for kind, name in (("wall", "ms_p50"), ("cpu", "cpu_ms_p50"))
        }
        for row in large
        if row["case"] in before
    }


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="10000,100000,1000000", help="entries, with commas")
    parser.add_argument("--runs", type=int, default=30, help="times each question is asked")
    parser.add_argument("--folder", type=Path, help="where the memories are kept and found again")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    options = parser.parse_args()
    sizes = sorted(int(size) for size in options.size.split(","))
    results: dict[int, list[dict[str, object]]] = {}
    made: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "app"
        project.mkdir()
        for size in sizes:
            home = (options.folder or Path(scratch)).absolute() / f"memory-{size}"
            prepare(home, size)
            made[str(size)] = {
                "store_mib": round((home / "memory.duckdb").stat().st_size / (1 << 20), 1),
                "index_mib": round(
                    sum(file.stat().st_size for file in (home / "index").iterdir()) / (1 << 20), 1
                ),
            }
            results[size] = measure(home, size, options.runs, project)
    slower = growth(results)
    print(f"\n{'times slower, largest to smallest':32} {'wall':>9} {'CPU':>9}")
    for name, both in slower.items():
        print(f"{name:32} {both['wall']:9.2f} {both['cpu']:9.2f}")
    print("aim: name, and tag and scope, at most 3")
    if options.out:
        result = {
            "benchmark": "query",
            "runs": options.runs,
            "machine": machine(sys.executable),
            "sizes": made,
            "results": {str(size): found for size, found in results.items()},
            "times_slower": slower,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
