"""The search index: derived from the store, readable by anyone without DuckDB and without a lease.

A tantivy index (BM25). It carries the ledger sequence it is built to (``index/seq``) and follows
from there. What is withdrawn leaves it before the store commits the withdrawal.

Text is cut into terms here, the same way for documents and queries: accents folded, case folded,
every CJK character a term of its own (a run of them is searched as a phrase, a long one by its
pairs too, for nothing shows where its words end), and everything a programmer types both whole and
in parts: ``foo_bar.baz()`` is found as typed, and by ``bar``; ``fetchUserName`` by ``user``;
``C++`` and ``--flag`` as they are. Words are stemmed (English). A query asks for any of its words,
without those that are everywhere, and never fails over its text.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import IndexUnavailable
from hypatia_mem.store.ledger import load_key

if TYPE_CHECKING:
    from hypatia_mem.store.connection import Store

__all__ = ["Document", "Hit", "IndexBusy", "SearchIndex", "sync_index", "terms"]

FORMAT = "3"  # of terms and fields: another number means the index is built anew
HEAP_BYTES = 15_000_000
MAX_TERMS = 64  # of a query; what stands behind the first 64 words does not change an answer
MAX_TERM = 128
LONG_RUN = 4  # CJK characters: from here on a run may be several words, asked for in pairs too
SNIPPET_CHARS = 600
BATCH = 5_000
_LOCK_WAIT_SECONDS = 5.0

_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_PIECE = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")
# Triples that only say what an entry is: whoever searches finds the entry itself.
_JOINTS = {("is_a", kind) for kind in ("rule", "taboo", "memory", "work-unit")}
_ACCENTS = re.compile("[\u0300-\u036f]+")
_IS_CJK = re.compile(rf"[{_CJK}]")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_EDGES_FRONT = "\"'`([{<*_«“‘"
_EDGES_BACK = "\"'`)]}>*.,;:!?…»”’"
_STOP = frozenset(
    {
        "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
        "been", "but", "by", "can", "could", "did", "do", "does", "for", "from", "had", "has",
        "have", "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
        "just", "me", "my", "no", "not", "of", "on", "or", "our", "out", "she", "should", "so",
        "some", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
        "those", "to", "too", "up", "us", "was", "we", "were", "what", "when", "where", "which",
        "who", "why", "will", "with", "would", "you", "your",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Document:
    """What the index holds of an entry or a statement; ``name`` is its key (a triple's CSV)."""

    name: str
    catalog: str  # knowledge | statement
    kind: str
    scopes: tuple[str, ...]
    text: str
    session: str = ""
    at: datetime | None = None


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
        limit: int = 20,
        offset: int = 0,
    ) -> list[Hit]:
        """Return the best matches of any word of ``text``, best first.

        ``scopes`` (by element, ``""`` is the global scope; None: all), ``kinds`` and ``catalog``
        filter before anything is ranked. No text makes this fail; an empty one finds nothing.
        Raises IndexUnavailable when there is no index.
        """
        self.seq()
        with _readable():
            index, schema, analyzer = self._open()
            wanted, phrases, prefix = _query_terms(text, analyzer)
            searcher = index.searcher()
            offset = max(0, offset)
            # The engine makes room for as many as are asked for before it looks.
            limit = min(limit, int(searcher.num_docs) - offset)
            if (not wanted and not phrases) or limit < 1:
                return []
            query = _query(schema, wanted, phrases, prefix, scopes, kinds, catalog)
            found = searcher.search(query, limit=limit, offset=offset)
            shown = [*wanted, *("".join(run[at : at + 2]) for run in phrases for at in (0, 2, 4))]
            return [_hit(searcher.doc(address), score, shown) for score, address in found.hits]

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
        analyzer = _analyzer(tantivy)
        index.register_tokenizer("hypatia", analyzer)
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


def sync_index(store: Store, index: SearchIndex) -> int:
    """Bring the index to the store's ledger sequence; returns how many names it looked at.

    Raises IndexUnavailable when another process is writing it: that one brings it up to date.
    """
    target = store.ledger_seq()
    try:
        seq = index.seq()
        if seq > target:  # the store was restored from before: begin again
            raise IndexUnavailable("the search index knows more than the store")
        return _follow(store, index, seq, target)
    except IndexBusy:
        raise
    except IndexUnavailable:  # missing, unreadable or of another format: all of it, from nothing
        index.clear()
        return _follow(store, index, 0, target)


def _follow(store: Store, index: SearchIndex, seq: int, target: int) -> int:
    looked = 0
    while seq < target or (not looked and not _has_seq(index)):
        changed = store.changed_since(seq, BATCH)
        last = changed[-1][0] if len(changed) == BATCH else target
        documents, removed = collect(store, changed)
        index.update(
            documents, removed, last, gone=[name for _, name, kind in changed if kind == "gone"]
        )
        looked += len(changed)
        seq = last
    return looked


def collect(
    store: Store, changed: Sequence[tuple[int, str, str]]
) -> tuple[list[Document], list[str]]:
    """Return the documents of changed names that are live, and the names to take out."""
    entries = {name for _, name, kind in changed if kind == "knowledge"}
    triples = {name for _, name, kind in changed if kind == "statement"}
    documents = [
        Document(
            name=entry.name,
            catalog="knowledge",
            kind=entry.kind,
            scopes=entry.scopes,
            text=_entry_text(entry.name, entry.content, entry.kind, entry.synonyms),
            session=entry.session_id,
            at=entry.created_at,
        )
        for entry in store.live_entries(entries)
    ]
    documents += [
        Document(
            name=key,
            catalog="statement",
            kind="statement",
            scopes=statement.scopes,
            text=f"{statement.subject} {statement.predicate} {statement.object}\n"
            f"{statement.content}",
            at=statement.created_at,
        )
        for key, statement in store.live_statements(triples)
        if (statement.predicate, statement.object) not in _JOINTS
        and statement.predicate not in ("belongTo", "derivedFrom")
    ]
    live = {document.name for document in documents}
    return documents, sorted((entries | triples) - live)


def terms(text: str) -> list[str]:
    """Cut a text into terms, in order, unstemmed; lower case, without accents.

    >>> terms("fetchUserName() C++ 知识")
    ['fetchusername', 'fetch', 'user', 'name', 'c++', 'c', '知', '识']
    """
    found: list[str] = []
    for piece in _PIECE.findall(_folded(text)):
        if _IS_CJK.match(piece):
            found.append(piece)
            continue
        whole = piece.strip("\x00").lstrip(_EDGES_FRONT).rstrip(_EDGES_BACK + "(")
        parts = _PARTS.findall(whole)
        if not parts and not whole:
            continue
        if parts != [whole]:
            found.append(whole.casefold()[:MAX_TERM])
        found.extend(part.casefold()[:MAX_TERM] for part in parts[:64])
    return [term for term in found if term]


# ----------------------------------------------------------------------------------------------


def _folded(text: str) -> str:
    if text.isascii():
        return text
    kept = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", kept.encode("utf-8", "replace").decode("utf-8"))


def _query_terms(text: str, analyzer: Any) -> tuple[list[str], list[list[str]], str]:
    """Return single terms (stemmed), runs of CJK characters, and the word to complete."""
    raw = list(dict.fromkeys(terms(text[:20_000])))[:MAX_TERMS]
    words = [term for term in raw if not _IS_CJK.match(term)]
    telling = [word for word in words if word not in _STOP] or words
    runs = [list(run) for run in re.findall(rf"[{_CJK}]+", _folded(text[:20_000]))][:MAX_TERMS]
    stemmed: list[str] = []
    for word in telling:
        stemmed.extend(analyzer.analyze(word))
    last = telling[-1] if telling and telling[-1].isalnum() and len(telling[-1]) >= 3 else ""
    return list(dict.fromkeys(stemmed)), runs, last


def _query(
    schema: Any,
    wanted: Sequence[str],
    phrases: Sequence[list[str]],
    prefix: str,
    scopes: Sequence[str] | None,
    kinds: Sequence[str] | None,
    catalog: str | None,
) -> Any:
    import tantivy

    query, occur = tantivy.Query, tantivy.Occur
    any_of = [(occur.Should, query.term_query(schema, "text", term)) for term in wanted]
    for run in phrases:
        one = _phrase(schema, run)
        if len(run) < LONG_RUN:
            any_of.append((occur.Should, one))
            continue
        any_of.append((occur.Should, query.boost_query(one, 2.0)))
        pairs = dict.fromkeys(itertools.pairwise(run))
        any_of += [(occur.Should, _phrase(schema, pair)) for pair in list(pairs)[:MAX_TERMS]]
    if prefix:
        started = query.regex_query(schema, "text", re.escape(prefix) + ".*")
        any_of.append((occur.Should, query.boost_query(started, 0.3)))
    clauses = [(occur.Must, query.boolean_query(any_of))]
    filters = {
        "scope": None if scopes is None else [_key(scope) for scope in scopes],
        "kind": None if kinds is None else list(kinds),
        "catalog": None if catalog is None else [catalog],
    }
    for name, values in filters.items():
        if values is not None:
            matching = query.term_set_query(schema, name, values)
            clauses.append((occur.Must, query.const_score_query(matching, 0.0)))
    return query.boolean_query(clauses)


def _phrase(schema: Any, run: Sequence[str]) -> Any:
    import tantivy

    if len(run) == 1:
        return tantivy.Query.term_query(schema, "text", run[0])
    return tantivy.Query.phrase_query(schema, "text", list(run))


def _hit(document: Any, score: float, wanted: Sequence[str]) -> Hit:
    at = document.get_first("at")
    return Hit(
        name=document.get_first("name")[1:],
        catalog=document.get_first("catalog"),
        score=float(score),
        kind=document.get_first("kind"),
        scopes=tuple(scope[1:] for scope in document.get_all("scope")),
        snippet_text=_snippet(bytes(document.get_first("body") or b"").decode("utf-8"), wanted),
        at=None if at is None else datetime.fromtimestamp(at / 1e6, UTC).replace(tzinfo=None),
    )


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
    builder.add_text_field("name", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("catalog", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("kind", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("scope", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("session", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("text", tokenizer_name="hypatia", index_option="position")
    builder.add_bytes_field("body", stored=True)
    builder.add_integer_field("at", stored=True, indexed=True)
    return builder.build()


def _analyzer(tantivy: Any) -> Any:
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    return words.filter(tantivy.Filter.stemmer("english")).build()


def _tantivy_document(document: Document) -> Any:
    import tantivy

    made = tantivy.Document()
    made.add_text("name", _key(document.name))
    made.add_text("catalog", document.catalog)
    made.add_text("kind", document.kind)
    for scope in document.scopes:
        made.add_text("scope", _key(scope))
    made.add_text("session", document.session)
    made.add_text("text", " ".join(terms(document.text)))
    made.add_bytes("body", document.text.encode("utf-8", "replace"))
    if document.at is not None:
        moment = document.at.replace(tzinfo=UTC).timestamp()
        made.add_integer("at", int(moment * 1e6))
    return made


def _key(text: str) -> str:
    """Return a term for a name or a scope; the empty (global) scope needs one too."""
    return "=" + text.encode("utf-8", "replace")[:60_000].decode("utf-8", "ignore")


def _entry_text(name: str, content: str, kind: str, synonyms: Sequence[str]) -> str:
    if kind == "message":
        return content.partition("\n## Content\n")[2] or content
    more = " ".join(synonyms)
    return f"{name}\n{content}\n{more}".strip()


def _has_seq(index: SearchIndex) -> bool:
    try:
        index.seq()
    except IndexUnavailable:
        return False
    return True
