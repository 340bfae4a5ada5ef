"""What matters in a part of the graph, and what belongs together in it.

Statements count as edges between names; several between the same two weigh more. Names become
numbers before an algorithm sees them, so that an answer does not depend on how Python hashes text.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypatia_mem.memory.graph.selecting import Subgraph
from hypatia_mem.store.edges import Edge, Node

__all__ = ["Community", "Ranked", "central", "communities", "pagerank"]

_DAMPING = 0.85
_TOLERANCE = 1e-10  # sum of changes of a round; ranks sum to 1
_ROUNDS = 200
_SEED = 0
_WORD = re.compile(r"[^\W\d_]{2,}")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_WEIGHTS = (("name", 3.0), ("tags", 2.0), ("synonyms", 2.0), ("content", 1.0))
_CONTENT_CHARS = 2_000
# What every second entry says, in the language most entries are in, and our own vocabulary.
_COMMON = frozenset(
    {
        "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "because",
        "been", "before", "but", "by", "can", "context", "could", "did", "do", "does", "for",
        "from", "had", "has", "have", "how", "if", "in", "instead", "into", "is", "it", "its",
        "key", "detail", "lesson", "memory", "more", "msg", "must", "never", "no", "not", "of",
        "on", "only", "or", "our", "out", "rule", "session", "should", "so", "solution", "some",
        "summary", "taboo", "than", "that", "the", "their", "then", "there", "these", "they",
        "this", "those", "to", "unit", "up", "use", "used", "uses", "was", "we", "were", "what",
        "when", "where", "which", "who", "why", "will", "with", "work", "wu", "would", "you",
        "your", "always", "md", "http", "https", "www",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ranked:
    """A name with its rank (all ranks of a subgraph sum to 1) and its statements."""

    node: Node
    rank: float
    out_edges: int
    in_edges: int


@dataclass(frozen=True, slots=True)
class Community:
    """Names that hang together more than with the rest; ``terms`` tell it from the others."""

    terms: tuple[str, ...]
    members: tuple[Node, ...]  # the most central first
    edges: int  # statements inside

    @property
    def title(self) -> str:
        """Return the terms as a title; the most central name when there is no telling term."""
        return ", ".join(self.terms) or self.members[0].name


def pagerank(
    count: int, edges: Iterable[tuple[int, int]], *, damping: float = _DAMPING
) -> list[float]:
    """Return the PageRank of nodes ``0 .. count - 1``; parallel edges weigh as many.

    Power iteration as in L. Page, S. Brin, R. Motwani, T. Winograd, "The PageRank Citation
    Ranking: Bringing Order to the Web" (Stanford InfoLab 1999-66): a node's rank is
    ``(1 - d) / n`` plus ``d`` times what its sources pass on; what a node without out-edges holds
    is passed to all alike. networkx's own function would need scipy.
    """
    if count == 0:
        return []
    weights = Counter(edges)
    out = [0] * count
    for (source, _), weight in weights.items():
        out[source] += weight
    links = [(source, target, weight / out[source]) for (source, target), weight in weights.items()]
    dangling = [node for node in range(count) if not out[node]]
    ranks = [1.0 / count] * count
    for _ in range(_ROUNDS):
        lost = math.fsum(ranks[node] for node in dangling)
        after = [(1.0 - damping + damping * lost) / count] * count
        for source, target, share in links:
            after[target] += damping * ranks[source] * share
        change = math.fsum(abs(a - b) for a, b in zip(after, ranks, strict=True))
        ranks = after
        if change < _TOLERANCE:
            break
    return ranks


def central(subgraph: Subgraph) -> list[Ranked]:
    """Return every name of the subgraph, the most central (by PageRank) first.

    A statement about a name and itself is no vote for it.
    """
    ranks = _ranks(subgraph)
    out = Counter(edge.subject for edge in subgraph.edges)
    in_ = Counter(edge.object for edge in subgraph.edges)
    ranked = [
        Ranked(node, ranks[name], out[name], in_[name]) for name, node in subgraph.nodes.items()
    ]
    return sorted(ranked, key=lambda one: (-one.rank, one.node.name))


def communities(subgraph: Subgraph) -> list[Community]:
    """Return the communities of the subgraph (Louvain, directions ignored), the largest first.

    Names without any statement belong to none.
    """
    groups = _partition(subgraph)
    ranks = _ranks(subgraph)
    titles = _telling_terms(
        [
            [(subgraph.nodes[name], _voice(ranks[name] * len(ranks))) for name in group]
            for group in groups
        ]
    )
    member_of = {name: number for number, group in enumerate(groups) for name in group}
    inside = Counter(
        member_of[edge.subject]
        for edge in subgraph.edges
        if member_of[edge.subject] == member_of[edge.object]
    )
    found = [
        Community(
            titles[number],
            tuple(
                subgraph.nodes[name] for name in sorted(group, key=lambda one: (-ranks[one], one))
            ),
            inside[number],
        )
        for number, group in enumerate(groups)
    ]
    return sorted(found, key=lambda one: (-len(one.members), one.members[0].name))


# ----------------------------------------------------------------------------------------------


def _ranks(subgraph: Subgraph) -> dict[str, float]:
    number = {name: place for place, name in enumerate(subgraph.nodes)}
    pairs = (
        (number[edge.subject], number[edge.object])
        for edge in subgraph.edges
        if edge.subject != edge.object
    )
    return dict(zip(subgraph.nodes, pagerank(len(number), pairs), strict=True))


def _partition(subgraph: Subgraph) -> list[list[str]]:
    import networkx as nx

    names = list(subgraph.nodes)
    number = {name: place for place, name in enumerate(names)}
    graph: Any = nx.Graph()
    for (one, other), weight in _pairs(subgraph.edges, number).items():
        graph.add_edge(one, other, weight=weight)
    if not graph:
        return []
    found = nx.community.louvain_communities(graph, weight="weight", seed=_SEED)
    return [[names[place] for place in sorted(group)] for group in found]


def _pairs(edges: Sequence[Edge], number: Mapping[str, int]) -> Counter[tuple[int, int]]:
    ends = (sorted((number[edge.subject], number[edge.object])) for edge in edges)
    return Counter((low, high) for low, high in ends)


def _voice(share: float) -> float:
    """Return how much a name has to say in its community's title; ``share`` 1 is the average."""
    return min(4.0, max(0.5, share))


def _telling_terms(
    groups: Sequence[Sequence[tuple[Node, float]]],
) -> list[tuple[str, ...]]:
    """Return for each group the terms that are frequent in it and rare in the others."""
    counts = [_terms_of(group) for group in groups]
    spread = Counter(term for group in counts for term in group)
    chosen: list[tuple[str, ...]] = []
    for group in counts:
        total = sum(group.values()) or 1.0

        def score(term: str, group: Mapping[str, float] = group, total: float = total) -> float:
            return group[term] / total * math.log(1 + len(counts) / spread[term])

        best = sorted(group, key=lambda term: (-score(term), term))
        chosen.append(tuple(best[:3]))
    return chosen


def _terms_of(group: Iterable[tuple[Node, float]]) -> dict[str, float]:
    """Weigh the words of a group; a word counts once for each part of an entry it stands in."""
    counts: defaultdict[str, float] = defaultdict(float)
    for node, voice in group:
        for part, weight in _WEIGHTS:
            value = getattr(node, part)
            text = value[:_CONTENT_CHARS] if isinstance(value, str) else " ".join(value)
            for term in set(_words(text)):
                counts[term] += weight * voice
    return counts


def _words(text: str) -> Iterable[str]:
    for run in _CJK.findall(text):
        yield from ([run] if len(run) <= 4 else (run[i : i + 2] for i in range(len(run) - 1)))
    for piece in _WORD.findall(_CJK.sub(" ", text)):
        word = piece.casefold()
        if len(word) > 2 and word not in _COMMON:
            yield word
