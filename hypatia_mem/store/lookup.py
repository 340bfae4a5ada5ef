"""One query on one state of the search index: what is asked of the engine, and the hits' order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hypatia_mem.capture.cleaning import without_secrets
from hypatia_mem.store.hidden import NOTHING, Hidden, Turns
from hypatia_mem.store.terms import STOP, Exact, character_runs, is_character, terms

__all__ = ["Filters", "Hit", "Looking", "micros", "place", "scope_key", "word_key"]

MAX_TERMS = 64  # of a query; what stands behind the first 64 words does not change an answer
MAX_QUERY = 20_000  # characters
LONG_RUN = 4  # CJK characters: from here on a run may be several words, asked for in pairs too
PREFIX = 3  # characters of the last word, from which on it is completed
COMPLETIONS = 30
TIES = 2_000  # hits of one score that are put in order; more stay in the engine's own
SNIPPET_CHARS = 600
_AROUND = 200  # characters
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - naive UTC


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit has to be, besides matching; None lets everything pass.

    ``scopes`` match by element (``""`` is the global scope), as ``tags`` do. One of the ``kinds``,
    ``roles`` and ``sessions`` has to be a hit's own; of ``tags`` and ``exact`` it needs every one.
    ``since`` (included) and ``until`` (excluded) are naive UTC, as is ``as_of``: then only what was
    true at that time passes, and what nobody said an end of is true to this day. ``turns`` is as
    ``sessions``, but of each only these. ``hidden`` is what whoever asks is not told.
    """

    scopes: Sequence[str] | None = None
    catalog: str | None = None
    kinds: Sequence[str] | None = None
    roles: Sequence[str] | None = None
    sessions: Sequence[str] | None = None
    turns: Sequence[Turns] | None = None
    tags: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    exact: Sequence[str] = ()  # words that stand in the text as they are typed
    threshold: float | None = None  # the least score
    hidden: Hidden = NOTHING


@dataclass(frozen=True, slots=True)
class Hit:
    """One result; a higher ``score`` (BM25) is better."""

    name: str
    catalog: str
    score: float
    kind: str
    scopes: tuple[str, ...]
    snippet_text: str
    at: datetime | None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


class Looking:
    """One query on one state of the index."""

    def __init__(
        self, searcher: Any, schema: Any, analyzer: Any, text: str, filters: Filters
    ) -> None:
        """Take what ``SearchIndex`` has open, the words and the filters; nothing is looked up."""
        self._searcher = searcher
        self._schema = schema
        self._analyzer = analyzer
        self._filters = filters
        self._exact = [Exact(words) for words in filters.exact]
        self._read: dict[tuple[int, int], Any] = {}
        self._shown: list[str] = []  # what a snippet is cut around
        self._query = self._made(text[:MAX_QUERY])

    def first(self, count: int) -> list[tuple[float, Any]]:
        """Return the first ``count`` hits as (score, address), in their total order."""
        if self._query is None:
            return []
        if not self._exact:
            return self._above(self._ranked(count))[:count]
        size = max(4 * count, 100)
        while True:
            ranked = self._ranked(size)
            kept = [hit for hit in self._above(ranked) if self._holds(hit[1])]
            if len(kept) >= count or len(ranked) < size:
                return kept[:count]
            size *= 4

    def among(self, ids: Sequence[str]) -> list[Any]:
        """Return the addresses of those of these documents that pass the filters, in no order."""
        import tantivy

        query, occur = tantivy.Query, tantivy.Occur
        clauses = [(occur.Must, query.term_set_query(self._schema, "id", list(ids)))]
        clauses += [(occur.Must, one) for one in self._conditions()]
        clauses += [(occur.MustNot, one) for one in (*self._untrue(), *self._unsaid())]
        found = self._searcher.search(
            query.boolean_query(clauses), limit=max(1, len(ids)), count=False
        )
        addresses = [address for _, address in found.hits]
        return [one for one in addresses if not self._exact or self._holds(one)]

    def keys(self, addresses: Iterable[Any]) -> dict[tuple[int, int], tuple[str, str]]:
        """Return (catalog, name) of documents by their places; keeps nothing else of them."""
        found: dict[tuple[int, int], tuple[str, str]] = {}
        for address in sorted(addresses, key=place):
            document = self._searcher.doc(address)
            found[place(address)] = (
                document.get_first("catalog"),
                document.get_first("name")[1:],
            )
        return found

    def hit(self, score: float, address: Any) -> Hit:
        """Return a hit as it is handed out."""
        document = self._document(address)
        return Hit(
            name=document.get_first("name")[1:],
            catalog=document.get_first("catalog"),
            score=float(score),
            kind=document.get_first("kind"),
            scopes=tuple(scope[1:] for scope in document.get_all("scope")),
            snippet_text=_snippet(_body(document), self._shown),
            at=_moment(document.get_first("at")),
            valid_from=_moment(document.get_first("valid_from")),
            valid_to=_moment(document.get_first("valid_to")),
        )

    # -- the query

    def _made(self, text: str) -> Any:
        """Return the engine's query, or None when there is nothing to look for."""
        import tantivy

        query, occur = tantivy.Query, tantivy.Occur
        telling = _telling(text)
        stems = list(dict.fromkeys(self._analyzer.analyze(" ".join(telling))))
        any_of = [(occur.Should, self._term("text", stem)) for stem in stems]
        runs = character_runs(text)[:MAX_TERMS]
        any_of += [(occur.Should, one) for run in runs for one in self._run(run)]
        any_of += [
            (occur.Should, query.boost_query(self._term("text", stem), 0.3))
            for stem in self._completions(telling, set(stems))
        ]
        if not any_of:
            return None
        self._shown = [*telling, *("".join(run[at : at + 2]) for run in runs for at in (0, 2, 4))]
        clauses = [(occur.Must, query.boolean_query(any_of))]
        clauses += [(occur.Must, query.const_score_query(one, 0.0)) for one in self._conditions()]
        clauses += [(occur.MustNot, one) for one in (*self._untrue(), *self._unsaid())]
        return query.boolean_query(clauses)

    def _term(self, field: str, value: str) -> Any:
        import tantivy

        option = "freq" if field == "text" else "position" if field == "word" else "basic"
        return tantivy.Query.term_query(self._schema, field, value, index_option=option)

    def _run(self, run: list[str]) -> list[Any]:
        """Return what to ask for a run of characters: all of it, of a long one its pairs too."""
        import tantivy

        if len(run) < LONG_RUN:
            return [self._phrase(run)]
        pairs = list(dict.fromkeys(itertools.pairwise(run)))[:MAX_TERMS]
        whole = tantivy.Query.boost_query(self._phrase(run[:MAX_TERMS]), 2.0)
        return [whole, *(self._phrase(pair) for pair in pairs)]

    def _phrase(self, run: Sequence[str]) -> Any:
        import tantivy

        if len(run) == 1:
            return self._term("word", word_key(run[0]))
        return tantivy.Query.phrase_query(self._schema, "word", [word_key(one) for one in run])

    def _completions(self, telling: Sequence[str], known: set[str]) -> list[str]:
        """Return the stems of the most frequent words that begin as the last word does."""
        if not telling or len(telling[-1]) < PREFIX:
            return []
        start = word_key(telling[-1])
        found = self._searcher.terms_with_prefix("word", start, limit=200)
        words = " ".join(word.lstrip(_COMPOUND) for word, _ in found)
        stems = dict.fromkeys(self._analyzer.analyze(words))
        return [stem for stem in stems if stem not in known][:COMPLETIONS]

    def _conditions(self) -> Iterator[Any]:
        import tantivy

        wanted = self._filters
        one_of = {
            "scope": None
            if wanted.scopes is None
            else [scope_key(scope) for scope in wanted.scopes],
            "catalog": None if wanted.catalog is None else [wanted.catalog],
            "kind": wanted.kinds,
            "role": wanted.roles,
            "session": wanted.sessions,
        }
        for field, values in one_of.items():
            if values is not None:
                yield self._one_of(field, list(values))
        for tag in wanted.tags:
            yield self._term("tag", scope_key(tag))
        if wanted.since is not None or wanted.until is not None:
            yield tantivy.Query.range_query(
                self._schema,
                "at",
                tantivy.FieldType.Integer,
                None if wanted.since is None else micros(wanted.since),
                None if wanted.until is None else micros(wanted.until),
                include_upper=wanted.until is None,
            )
        if wanted.turns is not None:
            some = [(tantivy.Occur.Should, self._turns(one)) for one in wanted.turns]
            yield tantivy.Query.boolean_query(some)
        for words in self._exact:
            for word in dict.fromkeys(words.words()):
                yield self._term("word", word)

    def _turns(self, turns: Turns) -> Any:
        """Return what asks for these turns of a session; for all of them, for all of it."""
        import tantivy

        session = self._term("session", turns.session)
        if turns.first <= 1 and turns.last is None:
            return session
        number = tantivy.FieldType.Integer
        between = tantivy.Query.range_query(self._schema, "turn", number, turns.first, turns.last)
        must = tantivy.Occur.Must
        return tantivy.Query.boolean_query([(must, session), (must, between)])

    def _unsaid(self) -> Iterator[Any]:
        """Return what is hidden from whoever asks."""
        import tantivy

        must = tantivy.Occur.Must
        for turns in self._filters.hidden.turns:
            message = self._term("kind", "message")
            yield tantivy.Query.boolean_query([(must, self._turns(turns)), (must, message)])
        if self._filters.hidden.ids:
            yield tantivy.Query.term_set_query(self._schema, "id", list(self._filters.hidden.ids))

    def _untrue(self) -> Iterator[Any]:
        """Return what was not true yet, or no more; an unknown end is no value of the index."""
        import tantivy

        if self._filters.as_of is None:
            return
        at = micros(self._filters.as_of)
        number = tantivy.FieldType.Integer
        between = tantivy.Query.range_query
        yield between(self._schema, "valid_from", number, at, None, include_lower=False)
        yield between(self._schema, "valid_to", number, None, at)

    def _one_of(self, field: str, values: list[str]) -> Any:
        import tantivy

        if len(values) == 1:
            return self._term(field, values[0])
        return tantivy.Query.term_set_query(self._schema, field, values)

    # -- the order

    def _ranked(self, count: int) -> list[tuple[float, Any]]:
        """Return at least ``count`` hits, if there are as many, in their total order.

        Hits of one score are ordered among themselves, so those at the end are all looked at, but
        for a score that more than ``TIES`` share.
        """
        most = int(self._searcher.num_docs)  # the engine makes room for what is asked for first
        size = count + 1
        while True:
            hits = self._searcher.search(self._query, limit=max(1, min(size, most)), count=False)
            found: list[tuple[float, Any]] = hits.hits
            if len(found) < size or found[-1][0] < found[count - 1][0]:
                break
            tied = sum(1 for score, _ in found if score == found[-1][0])
            if tied > TIES:
                break
            size = min(size * 4, size - tied + TIES + 1)
        return self._untied(found)[:count]

    def _untied(self, hits: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
        groups = [list(group) for _, group in itertools.groupby(hits, key=lambda hit: hit[0])]
        several = [hit for group in groups if 1 < len(group) <= TIES for hit in group]
        addresses = [address for _, address in several]
        columns = [self._searcher.fast_field_values(f, addresses) for f in ("at", "turn", "key")]
        places = iter(list(zip(*columns, strict=True)))
        ordered: list[tuple[float, Any]] = []
        for group in groups:
            if 1 < len(group) <= TIES:
                keyed = [
                    (-(at or 0), -(turn or 0), key or 0)
                    for at, turn, key in itertools.islice(places, len(group))
                ]
                group = [group[i] for i in sorted(range(len(group)), key=keyed.__getitem__)]
            ordered += group
        return ordered

    def _above(self, hits: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
        least = self._filters.threshold
        if least is None:
            return hits
        return list(itertools.takewhile(lambda hit: hit[0] >= least, hits))

    # -- the documents

    def read(self, addresses: Iterable[Any]) -> None:
        """Read documents in the order they lie in, which unpacks each block once."""
        for address in sorted(addresses, key=place):
            self._document(address)

    def names(self, addresses: Iterable[Any]) -> dict[tuple[int, int], str]:
        """Return the names of documents by their places; keeps nothing else of them."""
        doc = self._searcher.doc
        return {
            place(address): doc(address).get_first("name")[1:]
            for address in sorted(addresses, key=place)
        }

    def _document(self, address: Any) -> Any:
        at = place(address)
        if at not in self._read:
            self._read[at] = self._searcher.doc(address)
        return self._read[at]

    def _holds(self, address: Any) -> bool:
        even = Exact.even(_body(self._document(address)))
        return all(words.within(even) for words in self._exact)


def place(address: Any) -> tuple[int, int]:
    """Return where a document lies: its segment, and its place there."""
    return address.segment_ord, address.doc


def _telling(text: str) -> list[str]:
    """Return a query's terms without those that are everywhere, unless it has no others."""
    words = [term for term in dict.fromkeys(terms(text)) if not is_character(term)]
    return ([word for word in words if word not in STOP] or words)[:MAX_TERMS]


def _snippet(text: str, wanted: Sequence[str]) -> str:
    if len(text) <= SNIPPET_CHARS:
        return text
    lowered = text.lower()
    places = [place for word in wanted if word and (place := lowered.find(word.lower())) >= 0]
    start = max(0, min(places, default=0) - SNIPPET_CHARS // 4)
    end = start + SNIPPET_CHARS
    # Looked at with what stands around it, which is not shown: a secret that is cut in two is not
    # known as one.
    first, end, last = max(0, start - _AROUND), min(len(text), end), min(len(text), end + _AROUND)
    clean = without_secrets(text[first:last])
    shown = clean[start - first : len(clean) - (last - end)]
    return ("…" if start else "") + shown.strip() + ("…" if end < len(text) else "")


def _moment(number: int | None) -> datetime | None:
    return None if number is None else _EPOCH + timedelta(microseconds=number)


def _body(document: Any) -> str:
    return bytes(document.get_first("body") or b"").decode("utf-8")


def micros(at: datetime) -> int:
    """Return a naive UTC time as microseconds since 1970."""
    return (at - _EPOCH) // timedelta(microseconds=1)


_COMPOUND = "\x01"


def word_key(term: str) -> str:
    """Return the term of an unstemmed word; compounds stand apart, so that a walk over the words
    with a beginning does not meet every path and every call that has it.
    """
    return term if term.isalnum() else _COMPOUND + term


def scope_key(text: str) -> str:
    """Return a term for a name or a scope; the empty (global) scope needs one too."""
    return "=" + text.encode("utf-8", "replace")[:60_000].decode("utf-8", "ignore")
