"""The search index: derived from the store, readable by anyone without DuckDB and without a lease.

A tantivy index (BM25). It carries the ledger sequence it is built to (``index/seq``) and follows
from there (``indexing``). What is withdrawn leaves it before the store commits the withdrawal.

Texts are cut into terms by ``terms``, documents and queries alike; words are stemmed (English). A
query asks for any of its words, without those that are everywhere, and never fails over its text.
Its filters apply before anything is ranked or cut off. Hits have a total order: the score, then
the newest, then the place in the session; so pages neither repeat a hit nor leave one out.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypatia_mem.errors import IndexUnavailable
from hypatia_mem.store.ledger import load_key
from hypatia_mem.store.terms import STOP, Exact, character_runs, is_character, terms

__all__ = ["Document", "Filters", "Hit", "IndexBusy", "SearchIndex"]

FORMAT = "4"  # of terms and fields: another number means the index is built anew
HEAP_BYTES = 15_000_000
MAX_TERMS = 64  # of a query; what stands behind the first 64 words does not change an answer
MAX_QUERY = 20_000  # characters
LONG_RUN = 4  # CJK characters: from here on a run may be several words, asked for in pairs too
PREFIX = 3  # characters of the last word, from which on it is completed
COMPLETIONS = 30
TIES = 2_000  # hits of one score that are put in order; more stay in the engine's own
SNIPPET_CHARS = 600
_LOCK_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Document:
    """What the index holds of an entry or a statement; ``name`` is its key (a triple's CSV)."""

    name: str
    catalog: str  # knowledge | statement
    kind: str
    scopes: tuple[str, ...]
    text: str
    session: str = ""
    turn: int | None = None
    role: str = ""  # of a message: user | assistant
    tags: tuple[str, ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit has to be, besides matching; None lets everything pass.

    ``scopes`` match by element (``""`` is the global scope), as ``tags`` do. One of the ``kinds``,
    ``roles`` and ``sessions`` has to be a hit's own; of ``tags`` and ``exact`` it needs every one.
    ``since`` (included) and ``until`` (excluded) are naive UTC.
    """

    scopes: Sequence[str] | None = None
    catalog: str | None = None
    kinds: Sequence[str] | None = None
    roles: Sequence[str] | None = None
    sessions: Sequence[str] | None = None
    tags: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    exact: Sequence[str] = ()  # words that stand in the text as they are typed
    threshold: float | None = None  # the least score


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


class IndexBusy(IndexUnavailable):
    """Another process is writing the index; there is nothing wrong with it."""


class SearchIndex:
    """The index of a memory's home. Nothing is opened before it is used."""

    def __init__(self, home: Path) -> None:
        """Bind to ``<home>/index``."""
        self._folder = home / "index"

    def seq(self) -> int:
        """Return the ledger sequence the index is built to. Raises IndexUnavailable."""
        try:
            version, _, number = (self._folder / "seq").read_text("ascii").partition(" ")
            if version == FORMAT:
                return int(number)
        except (OSError, ValueError):
            pass
        raise IndexUnavailable(
            "there is no search index yet",
            hint="The worker builds it; at once: hypatia-mem worker drain",
        )

    def search(
        self,
        text: str,
        *,
        scopes: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        catalog: str | None = None,
        filters: Filters | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> list[Hit]:
        """Return the best matches of any word of ``text``, best first.

        ``filters`` says what a hit has to be; ``scopes``, ``kinds`` and ``catalog`` stand for it
        where they are enough. No text makes this fail; an empty one finds nothing.
        Raises IndexUnavailable when there is no index.
        """
        if filters is None:
            filters = Filters(scopes=scopes, kinds=kinds, catalog=catalog)
        self.seq()
        offset = max(0, offset)
        if limit < 1:
            return []
        with _readable():
            index, schema, analyzer = self._open()
            looking = _Looking(index.searcher(), schema, analyzer, text, filters)
            found = looking.first(offset + limit)[offset:]
            return [looking.hit(score, address) for score, address in found]

    def update(
        self,
        documents: Iterable[Document],
        removed: Iterable[str],
        seq: int | None,
        *,
        gone: Iterable[str] = (),
    ) -> None:
        """Put documents in (replacing those of their names) and take ``removed`` out: one commit.

        ``gone`` takes out by document id (``ledger.Key.document_id``) what has no name any more.
        ``seq`` None leaves the recorded sequence. Raises IndexUnavailable when another process
        writes the index for longer than a few seconds.
        """
        key = load_key(self._folder.parent)
        with _readable():
            index = self._open(create=True)[0]
            with self._writer(index) as writer:
                for name in removed:
                    writer.delete_documents_by_term("name", _key(name))
                for one in gone:
                    writer.delete_documents_by_term("id", one)
                for document in documents:
                    writer.delete_documents_by_term("name", _key(document.name))
                    made = _tantivy_document(document)
                    made.add_text("id", key.document_id(document.catalog, document.name))
                    writer.add_document(made)
                writer.commit()
        if seq is not None:
            self._write_seq(seq)

    def remove(self, names: Iterable[str]) -> None:
        """Take names out at once; without an index there is nothing to do."""
        if (self._folder / "meta.json").exists():
            self.update((), names, None)

    def clear(self) -> None:
        """Throw the index away; it is built anew from the store."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    # -- inside

    def _open(self, *, create: bool = False) -> tuple[Any, Any, Any]:
        import tantivy

        schema = _schema(tantivy)
        umask = os.umask(0o077)
        try:
            if create:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                index = tantivy.Index(schema, path=str(self._folder), reuse=True)
            else:
                index = tantivy.Index.open(str(self._folder))
        finally:
            os.umask(umask)
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        index.register_tokenizer("words", words.build())
        stems = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        analyzer = stems.filter(tantivy.Filter.stemmer("english")).build()
        index.register_tokenizer("stems", analyzer)
        return index, schema, analyzer

    @contextlib.contextmanager
    def _writer(self, index: Any) -> Any:
        until = time.monotonic() + _LOCK_WAIT_SECONDS
        umask = os.umask(0o077)
        try:
            while True:
                try:
                    writer = index.writer(heap_size=HEAP_BYTES, num_threads=1)
                    break
                except ValueError as error:  # another writer has the index
                    if time.monotonic() > until:
                        raise IndexBusy(
                            "another process is writing the search index",
                            hint="It follows the store by itself; try again in a moment.",
                        ) from error
                    time.sleep(0.05)
            try:
                yield writer
            finally:
                with contextlib.suppress(ValueError):
                    writer.wait_merging_threads()
        finally:
            os.umask(umask)

    def _write_seq(self, seq: int) -> None:
        path = self._folder / "seq"
        temporary = path.with_name(f".seq-{os.getpid()}")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="ascii") as out:
            out.write(f"{FORMAT} {seq}")
        temporary.replace(path)


class _Looking:
    """One query on one state of the index."""

    def __init__(
        self, searcher: Any, schema: Any, analyzer: Any, text: str, filters: Filters
    ) -> None:
        self._searcher = searcher
        self._schema = schema
        self._analyzer = analyzer
        self._filters = filters
        self._exact = [Exact(words) for words in filters.exact]
        self._read: dict[Any, Any] = {}
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

    def hit(self, score: float, address: Any) -> Hit:
        """Return a hit as it is handed out."""
        document = self._document(address)
        at = document.get_first("at")
        return Hit(
            name=document.get_first("name")[1:],
            catalog=document.get_first("catalog"),
            score=float(score),
            kind=document.get_first("kind"),
            scopes=tuple(scope[1:] for scope in document.get_all("scope")),
            snippet_text=_snippet(_body(document), self._shown),
            at=None if at is None else datetime.fromtimestamp(at / 1e6, UTC).replace(tzinfo=None),
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
            return self._term("word", _word_key(run[0]))
        return tantivy.Query.phrase_query(self._schema, "word", [_word_key(one) for one in run])

    def _completions(self, telling: Sequence[str], known: set[str]) -> list[str]:
        """Return the stems of the most frequent words that begin as the last word does."""
        if not telling or len(telling[-1]) < PREFIX:
            return []
        start = _word_key(telling[-1])
        found = self._searcher.terms_with_prefix("word", start, limit=200)
        words = " ".join(word.lstrip(_COMPOUND) for word, _ in found)
        stems = dict.fromkeys(self._analyzer.analyze(words))
        return [stem for stem in stems if stem not in known][:COMPLETIONS]

    def _conditions(self) -> Iterator[Any]:
        import tantivy

        wanted = self._filters
        one_of = {
            "scope": None if wanted.scopes is None else [_key(scope) for scope in wanted.scopes],
            "catalog": None if wanted.catalog is None else [wanted.catalog],
            "kind": wanted.kinds,
            "role": wanted.roles,
            "session": wanted.sessions,
        }
        for field, values in one_of.items():
            if values is not None:
                yield self._one_of(field, list(values))
        for tag in wanted.tags:
            yield self._term("tag", _key(tag))
        if wanted.since is not None or wanted.until is not None:
            yield tantivy.Query.range_query(
                self._schema,
                "at",
                tantivy.FieldType.Integer,
                None if wanted.since is None else _micros(wanted.since),
                None if wanted.until is None else _micros(wanted.until),
                include_upper=wanted.until is None,
            )
        for words in self._exact:
            for word in dict.fromkeys(words.words()):
                yield self._term("word", word)

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

    def _document(self, address: Any) -> Any:
        key = (address.segment_ord, address.doc)
        if key not in self._read:
            self._read[key] = self._searcher.doc(address)
        return self._read[key]

    def _holds(self, address: Any) -> bool:
        even = Exact.even(_body(self._document(address)))
        return all(words.within(even) for words in self._exact)


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Turn what the engine says of files it cannot use into a sentence with a remedy."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise _unreadable(error) from error
    except BaseException as error:
        # A damaged segment can end in a panic of the engine, which is no Exception.
        if type(error).__name__ == "PanicException":
            raise _unreadable(error) from None
        raise


def _unreadable(error: BaseException) -> IndexUnavailable:
    return IndexUnavailable(
        f"the search index cannot be read or written ({type(error).__name__})",
        hint="It is made again from the store: hypatia-mem worker drain",
    )


def _telling(text: str) -> list[str]:
    """Return a query's terms without those that are everywhere, unless it has no others."""
    words = [term for term in dict.fromkeys(terms(text)) if not is_character(term)][:MAX_TERMS]
    return [word for word in words if word not in STOP] or words


def _snippet(text: str, wanted: Sequence[str]) -> str:
    if len(text) <= SNIPPET_CHARS:
        return text
    lowered = text.lower()
    places = [place for word in wanted if word and (place := lowered.find(word.lower())) >= 0]
    start = max(0, min(places, default=0) - SNIPPET_CHARS // 4)
    end = start + SNIPPET_CHARS
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def _schema(tantivy: Any) -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", tokenizer_name="raw", index_option="basic")
    for name in ("name", "catalog", "kind", "scope"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("session", "role", "tag"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("text", tokenizer_name="stems", index_option="freq")
    builder.add_text_field("word", tokenizer_name="words", index_option="position")
    builder.add_bytes_field("body", stored=True)
    builder.add_integer_field("at", stored=True, fast=True)
    builder.add_integer_field("turn", fast=True)
    builder.add_integer_field("key", fast=True)
    return builder.build()


def _tantivy_document(document: Document) -> Any:
    import tantivy

    cut = terms(document.text)
    made = tantivy.Document()
    made.add_text("name", _key(document.name))
    made.add_text("catalog", document.catalog)
    made.add_text("kind", document.kind)
    for scope in document.scopes:
        made.add_text("scope", _key(scope))
    made.add_text("session", document.session)
    made.add_text("role", document.role)
    for tag in document.tags:
        made.add_text("tag", _key(tag))
    made.add_text("text", " ".join(cut))
    made.add_text("word", " ".join(map(_word_key, cut)))
    made.add_bytes("body", document.text.encode("utf-8", "replace"))
    made.add_integer("key", _number(f"{document.catalog}\n{document.name}"))
    made.add_integer("turn", document.turn or 0)
    if document.at is not None:
        made.add_integer("at", _micros(document.at))
    return made


def _body(document: Any) -> str:
    return bytes(document.get_first("body") or b"").decode("utf-8")


def _micros(at: datetime) -> int:
    return int(at.replace(tzinfo=UTC).timestamp() * 1e6)


def _number(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


_COMPOUND = "\x01"


def _word_key(term: str) -> str:
    """Return the term of an unstemmed word; compounds stand apart, so that a walk over the words
    with a beginning does not meet every path and every call that has it.
    """
    return term if term.isalnum() else _COMPOUND + term


def _key(text: str) -> str:
    """Return a term for a name or a scope; the empty (global) scope needs one too."""
    return "=" + text.encode("utf-8", "replace")[:60_000].decode("utf-8", "ignore")
