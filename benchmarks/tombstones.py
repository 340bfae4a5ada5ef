"""How often forgotten things are known again in other words, and what asking costs a write.

    python benchmarks/tombstones.py [--runs 200] [--graves 0,100,1000,10000] [--out F]

Quality: the sets below ``tests/store/likeness``. Each value is forgotten by itself. *Wordings* say
the same in other words and should wait for a person; *twins* share words with the value and say
something else, *unrelated* are all texts about the other values: neither should. *Disguises* of the
value itself (other scripts, digits for letters, marks between letters ...) should be refused.
``tuning`` is what the rules were made with; ``held out`` was written by the same hand after they
were fixed and has changed nothing in them, so it is the one to believe, and kinder than strangers.
``coding`` is ten decisions of a project with twenty rewordings each; what it showed at first is
told in ``tests/store/likeness/kit.py``.

Cost: entries of some 200 characters brought by an agent into a memory in which so many things are
forgotten, a transaction each and a hundred in one; and the turns that the worker stores, which are
evidence and are not asked. CPU milliseconds of this process. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from hook import machine, quantile  # noqa: E402 - beside this file
from query import sentences  # noqa: E402

from hypatia_mem.capture import paths  # noqa: E402 - the clone, not an installed version
from hypatia_mem.model import Author, Channel, Entry, Message, Session  # noqa: E402
from hypatia_mem.store import graves, keys  # noqa: E402
from hypatia_mem.store.connection import Store, open_store  # noqa: E402
from hypatia_mem.store.likeness import Index, sketch  # noqa: E402
from hypatia_mem.store.lookalikes import canonical, glyphs  # noqa: E402
from tests.store.likeness.kit import DISGUISES, Case, cases, unrelated  # noqa: E402

NOW = datetime(2026, 11, 30, 12)  # noqa: DTZ001 - naive UTC
PERSON, AGENT, WORKER = (
    Author(channel) for channel in (Channel.CLI_PERSON, Channel.CLI_AGENT, Channel.HOOK)
)
KEY = keys.key_of(b"benchmark".ljust(32))


def quality(name: str) -> dict[str, Any]:
    """Count what is caught of a set, whole and by language."""
    found = cases(name)
    indexes = {case.value: Index(KEY, {"it": sketch(KEY, case.value)}) for case in found}

    def near(case: Case, text: str) -> bool:
        return bool(indexes[case.value].near(text))

    latin = [case for case in found if case.value.isascii() or case.language in ("de", "fr", "es")]
    alike = [
        same_look(case.value, disguise(case.value))
        for case in latin
        for disguise in DISGUISES.values()
    ]
    languages: dict[str, Counter[str]] = {}
    for case in found:
        count = languages.setdefault(case.language, Counter())
        for kind, texts in (("wordings", case.same), ("twins", case.other)):
            count[kind] += len(texts)
            count[f"{kind} caught"] += sum(near(case, text) for text in texts)
    strangers = [near(case, text) for case, text in unrelated(found)]
    total: Counter[str] = sum(languages.values(), Counter())
    return {
        "set": name,
        "values": len(found),
        "wordings": [total["wordings caught"], total["wordings"]],
        "twins": [total["twins caught"], total["twins"]],
        "unrelated": [sum(strangers), len(strangers)],
        "disguises": [sum(alike), len(alike)],
        "by_language": {
            language: {
                kind: [count[f"{kind} caught"], count[kind]] for kind in ("wordings", "twins")
            }
            for language, count in sorted(languages.items())
        },
    }


def same_look(value: str, text: str) -> bool:
    """Tell whether a text would be refused for its look."""
    return glyphs(text) == glyphs(value) or canonical(text) == canonical(value)


# ---------------------------------------------------------------------------------------------


def prose(seed: int) -> Iterator[str]:
    """Yield made-up texts of two sentences, other ones for another seed."""
    chance = random.Random(seed)
    known = sentences()
    while True:
        yield " ".join(chance.choices(known, k=2))


def bury(home: Path, count: int) -> None:
    """Forget so many things."""
    words = prose(7)
    key = keys.load_key(home)
    rows = []
    for number in range(count):
        text = next(words)
        row = {
            "key_id": key.id, "scope": "app", "reason": "forget", "actor": "cli-person",
            "at": NOW, "op_id": f"op-{number}", "target": key.target(f"rule:{number}"),
        }  # fmt: skip
        for part, value, words_of in (
            ("value", canonical(text), sketch(key, text)),
            ("look", "look:" + glyphs(text), ""),
        ):
            digest = key.digest("tombstone", value)
            rows.append({**row, "digest": digest, "part": part, "sketch": words_of})
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn._bulk("tombstone", rows)
        txn._keep_buried()


def timed(runs: int, act: Callable[[int], object]) -> list[float]:
    """Return the CPU milliseconds of each of ``runs`` calls, after one to warm up."""
    act(-1)
    found = []
    for number in range(runs):
        started = time.process_time()
        act(number)
        found.append((time.process_time() - started) * 1000)
    return found


def cost(count: int, runs: int) -> dict[str, Any]:
    """Measure writes into a memory in which ``count`` things are forgotten."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        paths.ensure_home(str(home))
        if count:
            bury(home, count)
        words = prose(11)
        with open_store(home, write=True) as store:
            one = timed(runs, lambda n: put(store, f"one-{n}", words, 1))
            many = timed(max(3, runs // 20), lambda n: put(store, f"many-{n}", words, 100))
            turns = timed(runs, lambda n: drain(store, f"s-{n}", words))
            asked = timed(runs, lambda n: ask(store, words))
        size = (home / "forgotten").stat().st_size if count else 0
    result: dict[str, Any] = {"graves": count, "bytes_beside": size}
    for name, values, each in (
        ("entry", one, 1),
        ("entry_of_100", many, 100),
        ("turn_of_2", turns, 1),
        ("asked", asked, 1),
    ):
        result[f"{name}_ms_p50"] = round(statistics.median(values) / each, 3)
        result[f"{name}_ms_p95"] = round(quantile(values, 0.95) / each, 3)
    return result


def put(store: Store, name: str, words: Iterator[str], count: int) -> None:
    """Store entries as an agent does."""
    with store.transaction(AGENT, now=NOW) as txn:
        for number in range(count):
            txn.put_entry(Entry(f"{name}-{number}", next(words), scopes=("app",)))


def drain(store: Store, session: str, words: Iterator[str]) -> None:
    """Store a turn as the worker does."""
    with store.transaction(WORKER, now=NOW) as txn:
        txn.put_session(Session(session, project="app", started_at=NOW))
        said = (Message(session, f"{session}-{n}", role, next(words), NOW) for n, role in ROLES)
        txn.put_messages(session, list(said), "app")


ROLES = ((1, "user"), (2, "assistant"))


def ask(store: Store, words: Iterator[str]) -> None:
    """Ask whether a text is like something forgotten: what an entry pays beside its write."""
    texts = [next(words)]
    graves.near_to(store, graves.keys_of(store), texts).near(texts, ["app"])


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="writes of each kind")
    parser.add_argument("--graves", default="0,100,1000,10000", help="how much is forgotten")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    options = parser.parse_args()
    found = [quality(name) for name in ("tuning", "held_out", "coding")]
    print(f"{'':10} {'wordings':>12} {'twins':>10} {'unrelated':>14} {'disguises':>14}")
    for one in found:
        cells = (f"{one[kind][0]}/{one[kind][1]}" for kind in KINDS)
        print("{:10} {:>12} {:>10} {:>14} {:>14}".format(one["set"], *cells))
    costs = [cost(int(count), options.runs) for count in options.graves.split(",")]
    print(f"{'forgotten':>10} {'entry':>8} {'of 100':>8} {'turn':>8} {'asked':>8}  CPU ms, p50")
    for row in costs:
        values = (row[f"{name}_ms_p50"] for name in ("entry", "entry_of_100", "turn_of_2", "asked"))
        print("{:10} {:8.2f} {:8.2f} {:8.2f} {:8.2f}".format(row["graves"], *values))
    if options.out:
        result = {
            "benchmark": "tombstones",
            "machine": machine(sys.executable),
            "quality": found,
            "cost": costs,
        }
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


KINDS = ("wordings", "twins", "unrelated", "disguises")


if __name__ == "__main__":
    main()
