"""Whether search finds the turn that answers: recall on data whose answers are known.

    python benchmarks/retrieval.py [--locomo F] [--precision FOLDER] [--sessions GIT] [--out F]

None of the data is ours to ship, so each part runs on a path of yours:

- ``--locomo``: ``locomo10.json`` of snap-research/locomo (CC BY-NC 4.0). A document is a turn, a
  question's answer the turns it names; searched in its own conversation, and in all of them.
- ``--precision``: the ``fixtures`` of tenurehq/precisionMemBench (MIT): preferences with their
  other names, and what must come up for a question.
- ``--sessions``: a clone of a repository that keeps its coding sessions as SpecStory markdown under
  ``.specstory/history`` (specstoryai/getspecstory, Apache-2.0). The subject of a commit is the
  question; right is a session that was going on when it was made and names a file of it. Noisy:
  read the differences, not the levels.

``search`` is the program's own index. The other rows are what was tried beside it, computed here on
the same terms: BM25 with other constants, and each turn's score spread to its neighbours in the
session (``back`` from earlier ones, ``on`` from later ones, among the best 300). Nothing here
passes or fails.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

REPOSITORY = Path(__file__).parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from hook import machine  # noqa: E402 - beside this file

from hypatia_mem.capture import paths  # noqa: E402 - the clone, not an installed version
from hypatia_mem.store.search import Document, SearchIndex  # noqa: E402
from hypatia_mem.store.terms import STOP, terms  # noqa: E402

CANDIDATES = 300
Scores: TypeAlias = dict[int, float]
Ranker: TypeAlias = Callable[["Corpus", str], Iterable[int]]


@dataclass
class Corpus:
    """Documents with where each stands (session, place), and questions with what is right."""

    name: str
    texts: list[str] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    questions: list[tuple[str, set[int]]] = field(default_factory=list)
    hidden: bool = False  # leave out documents that hold the question itself
    by_session: bool = False  # what is right are sessions, found by their first turn
    index: SearchIndex | None = None
    postings: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)

    def prepare(self, home: Path) -> None:
        """Build the program's index, and the postings that the other rows are computed from."""
        paths.ensure_home(str(home))
        self.index = SearchIndex(home)
        self.index.update(
            [
                Document(str(n), "knowledge", "message", (), text)
                for n, text in enumerate(self.texts)
            ],
            (),
            0,
        )
        postings = collections.defaultdict(list)
        for number, text in enumerate(self.texts):
            cut = stems(terms(text))
            self.lengths.append(len(cut))
            for term, count in collections.Counter(cut).items():
                postings[term].append((number, count))
        self.postings = dict(postings)

    def bm25(self, question: str, k1: float, b: float) -> Scores:
        """Return BM25 scores of the documents that hold any telling word of the question."""
        words = list(dict.fromkeys(terms(question)))
        asked = dict.fromkeys(stems([word for word in words if word not in STOP] or words))
        mean = sum(self.lengths) / len(self.lengths)
        found: Scores = collections.defaultdict(float)
        for term in asked:
            holding = self.postings.get(term, ())
            rare = math.log(1 + (len(self.texts) - len(holding) + 0.5) / (len(holding) + 0.5))
            for number, count in holding:
                length = 1 - b + b * self.lengths[number] / mean
                found[number] += rare * count * (k1 + 1) / (count + k1 * length)
        return found


def stems(words: Sequence[str]) -> list[str]:
    """Return the stems of words, as the index makes them."""
    import tantivy

    if not hasattr(stems, "analyzer"):
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        stems.analyzer = builder.filter(tantivy.Filter.stemmer("english")).build()  # type: ignore[attr-defined]
    found: list[str] = stems.analyzer.analyze(" ".join(words))  # type: ignore[attr-defined]
    return found


# ---------------------------------------------------------------------------------------- ranking


def engine(corpus: Corpus, question: str) -> Iterable[int]:
    """Rank as the program does."""
    assert corpus.index is not None
    return (int(name) for name, _ in corpus.index.keys(question, limit=len(corpus.texts)))


def computed(k1: float, b: float, back: float = 0.0, on: float = 0.0, reach: int = 4) -> Ranker:
    """Return a ranking by BM25, with each turn's score spread over its neighbours or not."""

    def rank(corpus: Corpus, question: str) -> Iterable[int]:
        scores = corpus.bm25(question, k1, b)
        order = sorted(scores, key=lambda number: (-scores[number], number))
        if not back:
            return order
        best, rest = order[:CANDIDATES], order[CANDIDATES:]
        at = {corpus.places[number]: scores[number] for number in best}
        spread = {
            number: scores[number]
            + sum(
                back**step * at.get((session, place - step), 0.0)
                + on**step * at.get((session, place + step), 0.0)
                for step in range(1, reach + 1)
            )
            for number in best
            for session, place in [corpus.places[number]]
        }
        return [*sorted(best, key=lambda number: (-spread[number], number)), *rest]

    return rank


RANKERS: dict[str, Ranker] = {
    "search": engine,
    "BM25 k1 1.2 b .75": computed(1.2, 0.75),
    "BM25 k1 1.2 b .4": computed(1.2, 0.4),
    "BM25 k1 .9 b .4": computed(0.9, 0.4),
    "spread .6 .4": computed(1.2, 0.75, 0.6, 0.4),
    "spread .6 .4, k1 .9 b .4": computed(0.9, 0.4, 0.6, 0.4),
    "spread .3 .2, 2 turns": computed(1.2, 0.75, 0.3, 0.2, 2),
}


def measure(corpus: Corpus, rank: Ranker) -> dict[str, float]:
    """Return recall at 1, 5, 10 and 20 and the mean reciprocal rank, each in percent."""
    cuts = (1, 5, 10, 20)
    sums = dict.fromkeys([f"r@{cut}" for cut in cuts] + ["mrr"], 0.0)
    lowered = [text.lower() for text in corpus.texts] if corpus.hidden else []
    for question, right in corpus.questions:
        order = list(rank(corpus, question))
        if corpus.hidden:
            order = [number for number in order if question.lower() not in lowered[number]]
        if corpus.by_session:
            order = list(dict.fromkeys(corpus.places[number][0] for number in order))
        for cut in cuts:
            sums[f"r@{cut}"] += len(right & set(order[:cut])) / len(right)
        sums["mrr"] += next((1 / at for at, one in enumerate(order, 1) if one in right), 0.0)
    return {name: round(100 * value / len(corpus.questions), 1) for name, value in sums.items()}


# ------------------------------------------------------------------------------------- their data


def locomo(file: Path) -> list[list[Corpus]]:
    """Return each conversation on its own, and all of them as one."""
    own, pooled = [], Corpus("all conversations")
    for sample in json.loads(file.read_text("utf-8")):
        talk = sample["conversation"]
        corpus = Corpus("own conversation")
        ids: dict[str, int] = {}
        numbers = sorted(int(k[8:]) for k in talk if re.fullmatch(r"session_\d+", k))
        for session in numbers:
            for place, turn in enumerate(talk[f"session_{session}"]):
                ids[turn["dia_id"]] = len(corpus.texts)
                picture = turn.get("blip_caption")
                more = f" [shares {picture}]" if picture else ""
                corpus.texts.append(f"{turn['speaker']}: {turn['text']}{more}")
                corpus.places.append((session, place))
        for asked in sample["qa"]:
            right = {ids[one] for one in asked["evidence"] if one in ids}
            if right:
                corpus.questions.append((asked["question"], right))
        start = len(pooled.texts)
        pooled.texts += corpus.texts
        pooled.places += [(1000 * start + one, place) for one, place in corpus.places]
        pooled.questions += [(q, {start + one for one in right}) for q, right in corpus.questions]
        own.append(corpus)
    return [own, [pooled]]


def precision(folder: Path) -> list[list[Corpus]]:
    """Return the preferences, with and without their names."""
    beliefs = json.loads((folder / "beliefs.seed.json").read_text("utf-8"))
    cases = json.loads((folder / "retrieval.cases.json").read_text("utf-8"))
    at = {belief["_id"]: number for number, belief in enumerate(beliefs)}
    questions = []
    for case in cases:
        wanted = {
            at[one]
            for part in case.get("expect", {}).values()
            for one in part.get("mustInclude", ())
            if one in at
        }
        if wanted and case.get("query"):
            questions.append((case["query"], wanted))
    bare, named = Corpus("preferences"), Corpus("preferences with names")
    for number, belief in enumerate(beliefs):
        names = [belief["canonical_name"], *belief["aliases"]]
        bare.texts.append(belief["content"])
        named.texts.append("\n".join([belief["content"], *names]))
        for corpus in (bare, named):
            corpus.places.append((number, 0))
            corpus.questions = questions
    return [[bare], [named]]


_SPEAKER = re.compile(r"^_\*\*(?:User|Agent)(?: \(([^)]*)\))?\*\*_$")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
_TOOLS = re.compile(r"<tool-use.*?</tool-use>|<details>.*?</details>", re.DOTALL)


def sessions(clone: Path) -> list[list[Corpus]]:
    """Return the turns of coding sessions, and commit subjects as questions."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", clone, *arguments], capture_output=True, check=True)
        return done.stdout.decode("utf-8", "replace")

    corpus = Corpus("coding sessions", hidden=True, by_session=True)
    spans: list[tuple[datetime, datetime, str]] = []
    seen: set[str] = set()
    for name in git("ls-tree", "-r", "--name-only", "HEAD").splitlines():
        if "/history/" not in name or not name.endswith(".md") or Path(name).name in seen:
            continue
        seen.add(Path(name).name)
        text = git("show", f"HEAD:{name}")
        turns, times = _turns(text)
        if turns and times:
            corpus.places += [(len(spans), place) for place in range(len(turns))]
            corpus.texts += turns
            spans.append((min(times), max(times), text))
    for commit in git("log", "--no-merges", "--format=%x01%ct%x02%s", "--name-only").split("\x01")[
        1:
    ]:
        head, _, changed = commit.partition("\n")
        stamp, _, subject = head.partition("\x02")
        at = datetime.fromtimestamp(int(stamp), UTC).replace(tzinfo=None)
        files = {os.path.basename(one) for one in changed.split("\n") if one.strip()}
        right = {
            number
            for number, (first, last, text) in enumerate(spans)
            if first <= at <= last + timedelta(hours=1) and any(one in text for one in files)
        }
        if right and len(subject.split()) >= 4:
            corpus.questions.append((subject, right))
    return [[corpus]]


def _turns(text: str) -> tuple[list[str], list[datetime]]:
    """Return what was said, without tools, and when."""
    turns, times, lines = [], [], []
    for line in [*text.split("\n"), "_**User**_"]:
        head = _SPEAKER.match(line)
        if head is None:
            lines.append(line)
            continue
        said = _TOOLS.sub("", "\n".join(lines)).strip().removesuffix("---").strip()
        if said and not said.startswith("<!--"):
            turns.append(said)
        lines = []
        moment = _TIME.search(head[1] or "")
        if moment:
            times.append(datetime.fromisoformat(moment[0]))
    return turns, times


def report(groups: Iterable[list[Corpus]], scratch: Path) -> list[dict[str, Any]]:
    """Measure every ranking on every group of corpora; print the table and return its rows."""
    rows = []
    for group in groups:
        for corpus in group:
            corpus.prepare(Path(tempfile.mkdtemp(dir=scratch)))
        asked = sum(len(corpus.questions) for corpus in group)
        size = sum(len(corpus.texts) for corpus in group)
        print(f"\n{group[0].name}: {size} documents, {asked} questions")
        print(f"{'':26} {'r@1':>6} {'r@5':>6} {'r@10':>6} {'r@20':>6} {'MRR':>6}")
        for name, rank in RANKERS.items():
            each = [(len(corpus.questions), measure(corpus, rank)) for corpus in group]
            found = {
                key: round(sum(n * one[key] for n, one in each) / asked, 1) for key in each[0][1]
            }
            print(f"{name:26} " + " ".join(f"{value:6.1f}" for value in found.values()), flush=True)
            about = {"data": group[0].name, "documents": size, "questions": asked}
            rows.append({**about, "ranking": name, **found})
    return rows


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--locomo", type=Path, help="locomo10.json, or a part of it")
    parser.add_argument("--precision", type=Path, help="the fixtures of precisionMemBench")
    parser.add_argument("--sessions", type=Path, help="a clone with sessions in it")
    parser.add_argument("--out", type=Path, help="write the results there as JSON")
    options = parser.parse_args()
    groups: list[list[Corpus]] = []
    for path, read in (
        (options.locomo, locomo), (options.precision, precision), (options.sessions, sessions),
    ):  # fmt: skip
        if path is not None:
            groups += read(path)
    if not groups:
        parser.error("name the data to measure with; --help says where it is found")
    with tempfile.TemporaryDirectory() as scratch:
        rows = report(groups, Path(scratch))
    if options.out:
        result = {"benchmark": "retrieval", "machine": machine(sys.executable), "results": rows}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
