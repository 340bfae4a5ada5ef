"""What summaries without a model are worth: the extractive summariser against three others.

    python benchmarks/summaries.py LOCOMO.json [--words N] [--runs 3] [--out FILE]

``LOCOMO.json`` is the LoCoMo data set (CC BY-NC, not in this repository): its sessions have a
reference summary each. Every method gets the same sentences and may use as many words as the
reference has (or ``--words``). ROUGE is the F1 of stems: Porter's where nltk is installed, else the
program's own (they differ by 0.3). CPU is process time per 100 turns: in the table that of choosing
sentences; below it that of the whole way from stored turns to the text and the links that are
stored (cleaning, choosing, redacting again, grounding, counting what was lost, naming), of which
the best of ``--runs`` passes counts. ``grounded`` says of how many sentences stored that way the
link leads to the very words. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from hook import machine  # noqa: E402 - beside this file

from hypatia_mem.memory.summarise import (  # noqa: E402 - the clone, not an installed version
    grounding,
    making,
    words,
)
from hypatia_mem.memory.summarise.extractive import Extractive, choose  # noqa: E402
from hypatia_mem.memory.summarise.protocol import Item  # noqa: E402
from hypatia_mem.memory.summarise.units import ALSO, Unit, units_of  # noqa: E402
from hypatia_mem.model import Entry  # noqa: E402

Method = Callable[[Sequence[Unit], int, Mapping[str, float]], list[Unit]]
_WORDS = re.compile(r"[a-z0-9]+")


def porter() -> Callable[[str], str]:
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError:
        return words.stem
    return PorterStemmer().stem


def rouge_terms(text: str, stem: Callable[[str], str]) -> list[str]:
    return [stem(word) if len(word) > 3 else word for word in _WORDS.findall(text.lower())]


def f1(hits: float, made: int, wanted: int) -> float:
    return 200 * hits / (made + wanted) if made and wanted else 0.0


def rouge_n(made: list[str], wanted: list[str], n: int) -> float:
    a, b = (Counter(zip(*(one[i:] for i in range(n)), strict=False)) for one in (made, wanted))
    return f1(sum((a & b).values()), sum(a.values()), sum(b.values()))


def rouge_l(made: list[str], wanted: list[str]) -> float:
    row = [0] * (len(wanted) + 1)
    for one in made:
        previous = 0
        for j, other in enumerate(wanted, 1):
            previous, row[j] = row[j], previous + 1 if one == other else max(row[j], row[j - 1])
    return f1(row[-1], len(made), len(wanted))


# --- the others -----------------------------------------------------------------------------------


def _fill(units: Sequence[Unit], order: Sequence[int], room: int) -> list[Unit]:
    """Take units in this order while there is room; return them in their own order."""
    taken: list[int] = []
    left = float(room)
    for n in order:
        length = words.cost(units[n].text) + 1
        if length <= left:
            taken.append(n)
            left -= length
    return [units[n] for n in sorted(taken)]


def lead(units: Sequence[Unit], room: int, _idf: Mapping[str, float]) -> list[Unit]:
    return _fill(units, range(len(units)), room)


def _vectors(units: Sequence[Unit], idf: Mapping[str, float]) -> list[dict[str, float]]:
    rarest = idf[""]
    found = []
    for unit in units:
        vector = {t: n * idf.get(t, rarest) for t, n in Counter(words.terms(unit.text)).items()}
        size = math.sqrt(sum(v * v for v in vector.values())) or 1.0
        found.append({t: v / size for t, v in vector.items()})
    return found


def _cosine(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    small, large = (a, b) if len(a) < len(b) else (b, a)
    return sum(v * large[t] for t, v in small.items() if t in large)


def textrank(units: Sequence[Unit], room: int, _idf: Mapping[str, float]) -> list[Unit]:
    """Mihalcea's: overlap of words over the logs of both lengths; rank by power iteration."""
    bags = [set(words.terms(unit.text)) for unit in units]
    links: list[list[tuple[int, float]]] = [[] for _ in units]
    for i, one in enumerate(bags):
        for j in range(i):
            size = math.log(len(one) or 1) + math.log(len(bags[j]) or 1)
            if size > 0 and (common := len(one & bags[j])):
                links[i].append((j, common / size))
                links[j].append((i, common / size))
    out = [sum(weight for _, weight in row) or 1.0 for row in links]
    rank = [1.0] * len(units)
    for _ in range(30):
        rank = [0.15 + 0.85 * sum(rank[j] * w / out[j] for j, w in row) for row in links]
    return _fill(units, sorted(range(len(units)), key=lambda n: -rank[n]), room)


def mmr(units: Sequence[Unit], room: int, idf: Mapping[str, float]) -> list[Unit]:
    """Nearness to the centre of the session less nearness to what is taken (lambda 0.7)."""
    vectors = _vectors(units, idf)
    centre: Counter[str] = Counter()
    for vector in vectors:
        centre.update(vector)  # type: ignore[arg-type]
    size = math.sqrt(sum(v * v for v in centre.values())) or 1.0
    middle = {t: v / size for t, v in centre.items()}
    near = [_cosine(vector, middle) for vector in vectors]
    most = [0.0] * len(units)
    order: list[int] = []
    left = set(range(len(units)))
    spent = 0.0
    while left and spent < room * 1.5:
        best = max(left, key=lambda n: (0.7 * near[n] - 0.3 * most[n], -n))
        left.remove(best)
        order.append(best)
        spent += words.cost(units[best].text) + 1
        for n in left:
            most[n] = max(most[n], _cosine(vectors[best], vectors[n]))
    return _fill(units, order, room)


METHODS: dict[str, Method] = {
    "lead": lead, "TextRank": textrank, "MMR": mmr, "greedy coverage (ours)": choose,
}  # fmt: skip


# --- the data -------------------------------------------------------------------------------------


def sessions(path: Path) -> list[tuple[tuple[Item, ...], str]]:
    """Return (turns, reference) of every session that has both."""
    found = []
    for conversation in json.loads(path.read_text("utf-8")):
        turns = conversation["conversation"]
        for key, reference in conversation["session_summary"].items():
            said = turns.get(key.removesuffix("_summary"))
            if not said or not reference:
                continue
            items = tuple(
                Item(turn["dia_id"], turn["text"], speaker=turn["speaker"]) for turn in said
            )
            found.append((items, reference))
    return found


def rendered(units: Sequence[Unit]) -> str:
    return "\n".join(f"{unit.speaker}: {unit.text}" for unit in units)


# --- the whole way --------------------------------------------------------------------------------


def stored(number: int, items: Sequence[Item]) -> list[Entry]:
    """Return a session's turns as the store has them; its first speaker is the user."""
    return [
        Entry(
            f"msg-{number}-{turn}",
            f"## Role\n{'user' if item.speaker == items[0].speaker else 'assistant'}\n\n"
            f"## Timestamp\n2026-11-30T12:00:00Z\n\n## Content\n{item.text}",
            tags=("message",),
            kind="message",
            session_id=str(number),
            created_at=datetime(2026, 11, 30, 12),  # noqa: DTZ001 - as the store has it
        )
        for turn, item in enumerate(items, 1)
    ]


def condensed(entries: Sequence[Entry], most: int, idf: Mapping[str, float]) -> making.Made:
    digests = {entry.name: "0" * 64 for entry in entries}
    return making.make(Extractive(), making.request_of(entries, 1, most, idf), digests, 30)


def grounded(entries: Sequence[Entry], made: making.Made) -> tuple[int, int]:
    """Return how many sentences there are, and how many are, word for word, where a link says."""
    texts = {entry.name: entry.content for entry in entries}
    lines = grounding.lines_of(made.content)
    said: dict[int, list[str]] = {}
    for name, data in made.data.items():
        link = grounding.parse_link(data)
        for number, start, end in link.spans if link else ():
            said.setdefault(number, []).append(" ".join(texts[name][start:end].split()))
    held = 0
    for number, line in enumerate(lines):
        found = said.get(number, [])
        if line.startswith(ALSO):
            held += bool(found) and all(f"`{word}`" in line for word in found)
        else:
            held += line.split(": ", 1)[1] in found
    return len(lines), held


def whole_way(
    data: Sequence[tuple[tuple[Item, ...], str]], idf: Mapping[str, float], runs: int
) -> dict[str, float]:
    batches = [
        (stored(number, items), len(reference.split()))
        for number, (items, reference) in enumerate(data)
    ]
    turns = sum(len(entries) for entries, _ in batches)
    spent = []
    for _ in range(runs):
        started = time.process_time()
        made = [condensed(entries, most, idf) for entries, most in batches]
        spent.append((time.process_time() - started) * 1e5 / turns)
    counts = [grounded(entries, one) for (entries, _), one in zip(batches, made, strict=True)]
    return {
        "cpu_ms_per_100_turns": round(min(spent), 1),
        "sentences": sum(total for total, _ in counts),
        "grounded": sum(held for _, held in counts),
    }


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="LoCoMo's JSON")
    parser.add_argument("--words", type=int, help="length instead of the reference's")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    options = parser.parse_args()
    data = sessions(options.data)
    idf = words.idf_of(item.text for items, _ in data for item in items)
    turns = sum(len(items) for items, _ in data)
    stem = porter()
    wanted = [rouge_terms(reference, stem) for _, reference in data]
    print(f"{len(data)} sessions, {turns} turns; mean of ROUGE F1; CPU ms per 100 turns")
    print(f"{'method':<24}{'R-1':>7}{'R-2':>7}{'R-L':>7}{'words':>7}{'cpu':>8}")
    results = {}
    for name, method in METHODS.items():
        spent = []
        for _ in range(options.runs):
            started = time.process_time()
            made = [
                method(
                    [unit for n, item in enumerate(items) for unit in units_of(n, item)],
                    options.words or len(reference.split()),
                    idf,
                )
                for items, reference in data
            ]
            spent.append((time.process_time() - started) * 1e5 / turns)
        texts = [rendered(units) for units in made]
        scores = [
            (rouge_n(a, b, 1), rouge_n(a, b, 2), rouge_l(a, b))
            for a, b in zip((rouge_terms(text, stem) for text in texts), wanted, strict=True)
        ]
        row = [statistics.mean(one) for one in zip(*scores, strict=True)]
        length = statistics.mean(len(text.split()) for text in texts)
        cpu = min(spent)
        print(f"{name:<24}{row[0]:>7.1f}{row[1]:>7.1f}{row[2]:>7.1f}{length:>7.0f}{cpu:>8.1f}")
        results[name] = {
            "rouge_1": round(row[0], 1), "rouge_2": round(row[1], 1), "rouge_l": round(row[2], 1),
            "words": round(length), "cpu_ms_per_100_turns": round(cpu, 1),
        }  # fmt: skip
    whole = whole_way(data, idf, max(options.runs, 1))
    print(
        f"the whole way, from stored turns to stored text: {whole['cpu_ms_per_100_turns']} ms CPU"
    )
    print(f"grounded: {whole['grounded']} of {whole['sentences']} sentences")
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    if options.out:
        told = {
            "benchmark": "summaries", "machine": machine(sys.executable), "load": load,
            "sessions": len(data), "turns": turns, "results": results, "whole_way": whole,
        }  # fmt: skip
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
