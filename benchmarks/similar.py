"""What ``similar`` finds and what it costs, with and without the extra.

    python benchmarks/similar.py [--locomo F] [--precision FOLDER] [--entries 10000] [--out F]

Quality needs data whose answers are known; ``retrieval.py`` says where it can be had. Every turn is
stored as a message and every preference as an entry, given its vector by ``backfill`` and ranked by
the store, as in the program. ``search`` stands beside it for comparison. Variants of the built-in
model are what was tried for it. A large part of the questions shares words with its answer, which
is what letters are good at; what a model of meanings adds is in the preferences.

Speed: vectors for so many messages of about 500 characters, the growth of the store's file, and
questions to it. CPU seconds are the process's own; wall times depend on what else runs. Nothing
here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

import retrieval  # noqa: E402 - beside this file
from hook import machine, quantile  # noqa: E402
from query import sentences  # noqa: E402

from hypatia_mem.capture import paths  # noqa: E402 - the clone, not an installed version
from hypatia_mem.memory.vectors import embedding, wordvectors  # noqa: E402
from hypatia_mem.memory.vectors.lexical import Lexical  # noqa: E402
from hypatia_mem.model import Author, Channel, Message, Session  # noqa: E402
from hypatia_mem.store import vectors  # noqa: E402
from hypatia_mem.store.connection import open_store  # noqa: E402

NOW = datetime(2026, 11, 30, 12)  # noqa: DTZ001 - naive UTC
AUTHOR = Author(Channel.HOOK)


class Words(Lexical):
    """Hashes whole words instead of runs of letters."""

    def runs(self, word: str) -> list[str]:
        return [word]


class Long(Lexical):
    """Does not put short texts further away."""

    brevity = 0.0


def models() -> dict[str, Any]:
    """Return what is compared, by a name for the table."""
    found: dict[str, Any] = {
        "letters, 512 (built in)": Lexical(),
        "letters, 256": Lexical(256),
        "letters, 1024": Lexical(1024),
        "letters, short texts as near": Long(),
        "whole words, 512": Words(),
    }
    for name, model in found.items():
        model.model = name  # they are kept apart in the store
    if wordvectors.is_installed():
        found["letters and meanings (extra)"] = embedding.load_model("wordllama")
    return found


def put(home: Path, session: str, texts: Iterable[str]) -> None:
    """Store texts as the messages of a session, in a scope of its own."""
    with open_store(home, write=True) as store, store.transaction(AUTHOR, now=NOW) as txn:
        txn.put_session(Session(session, project=session, started_at=NOW, updated_at=NOW))
        said = [
            Message(session, f"{session}-{number}", "user", one, NOW)
            for number, one in enumerate(texts)
        ]
        txn.put_messages(session, said, session)


def quality(groups: Iterable[list[retrieval.Corpus]], scratch: Path) -> list[dict[str, Any]]:
    """Measure every model on every group of corpora; print the table and return its rows."""
    rows = []
    for group in groups:
        home = Path(tempfile.mkdtemp(dir=scratch))
        paths.ensure_home(str(home))
        for number, corpus in enumerate(group):
            put(home, f"c{number}", corpus.texts)
            corpus.prepare(Path(tempfile.mkdtemp(dir=scratch)))
        asked = sum(len(corpus.questions) for corpus in group)
        size = sum(len(corpus.texts) for corpus in group)
        print(f"\n{group[0].name}: {size} documents, {asked} questions")
        print(f"{'':30} {'r@1':>6} {'r@5':>6} {'r@10':>6} {'r@20':>6} {'MRR':>6}")
        every = {"search": None, **models()}
        for name, model in every.items():
            each = []
            if model is not None:
                embedding.backfill(home, model)
            with open_store(home, write=False) as store:
                for number, corpus in enumerate(group):
                    rank = retrieval.engine if model is None else ranker(store, model, number)
                    each.append((len(corpus.questions), retrieval.measure(corpus, rank)))
            found = {
                key: round(sum(n * one[key] for n, one in each) / asked, 1) for key in each[0][1]
            }
            print(f"{name:30} " + " ".join(f"{value:6.1f}" for value in found.values()), flush=True)
            rows.append({"data": group[0].name, "model": name, **found})
    return rows


def ranker(store: Any, model: Any, number: int) -> retrieval.Ranker:
    """Return a ranking of one corpus of the store."""
    filters = vectors.Filters(scopes=[f"c{number}"])

    def rank(corpus: retrieval.Corpus, question: str) -> list[int]:
        asked = model.query(question)
        if asked is None:
            return []
        near = vectors.rank(store, asked, "knowledge", filters=filters, limit=len(corpus.texts))
        return [int(one.key.rsplit("-", 1)[1]) - 1 for one in near]

    return rank


def speed(entries: int, runs: int, scratch: Path) -> list[dict[str, Any]]:
    """Measure making vectors for so many messages, and asking; one row a model."""
    home = Path(tempfile.mkdtemp(dir=scratch))
    paths.ensure_home(str(home))
    rnd, prose = random.Random(1), sentences()
    for start in range(0, entries, 1000):
        many = [" ".join(rnd.choices(prose, k=6)) for _ in range(min(1000, entries - start))]
        put(home, f"s{start}", many)
    file = home / "memory.duckdb"
    bare = file.stat().st_size
    rows = []
    print(f"\n{entries} messages, {bare / 1e6:.1f} MB")
    print(f"{'':30} {'CPU us each':>12} {'wall s':>8} {'MB more':>8} {'ask ms p50':>11} {'p95':>8}")
    chosen = {"letters, 512 (built in)": embedding.load_model("builtin")}
    if wordvectors.is_installed():
        chosen["letters and meanings (extra)"] = embedding.load_model("wordllama")
    for name, model in chosen.items():
        embedding.reembed(home)
        wall, cpu = time.perf_counter(), time.process_time()
        done = embedding.backfill(home, model)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        times = []
        for number in range(runs):
            started = time.perf_counter()
            embedding.similar(
                home,
                prose[number],
                model,
                filters=lambda store, catalog: vectors.Filters(),
                limit=10,
            )
            times.append((time.perf_counter() - started) * 1000)
        row = {
            "model": name,
            "entries": entries,
            "cpu_us_each": round(cpu / max(1, done.created) * 1e6),
            "wall_s": round(wall, 1),
            "megabytes": round((file.stat().st_size - bare) / 1e6, 1),
            "ask_ms_p50": round(statistics.median(times), 1),
            "ask_ms_p95": round(quantile(times, 0.95), 1),
        }
        rows.append(row)
        print(
            f"{name:30} {row['cpu_us_each']:12} {row['wall_s']:8} {row['megabytes']:8} "
            f"{row['ask_ms_p50']:11} {row['ask_ms_p95']:8}",
            flush=True,
        )
    return rows


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--locomo", type=Path, help="locomo10.json, or a part of it")
    parser.add_argument("--precision", type=Path, help="the fixtures of precisionMemBench")
    parser.add_argument(
        "--entries", type=int, default=10_000, help="messages to measure speed with"
    )
    parser.add_argument("--runs", type=int, default=20, help="questions to measure speed with")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    options = parser.parse_args()
    groups: list[list[retrieval.Corpus]] = []
    if options.locomo:
        groups += retrieval.locomo(options.locomo)
    if options.precision:
        groups += retrieval.precision(options.precision)
    with tempfile.TemporaryDirectory() as scratch:
        found = {
            "quality": quality(groups, Path(scratch)),
            "speed": speed(options.entries, options.runs, Path(scratch)),
        }
    if options.out:
        result = {"benchmark": "similar", "machine": machine(sys.executable), **found}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
