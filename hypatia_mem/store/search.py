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
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import IndexUnavailable
from hypatia_mem.store.lookup import Filters, Hit, Looking, micros, place, scope_key, word_key
from hypatia_mem.store.terms import terms

if TYPE_CHECKING:
    from hypatia_mem.store.keys import Key

__all__ = ["Document", "Filters", "Hit", "IndexBusy", "SearchIndex", "search_among"]

FORMAT = "5"  # of terms and fields: another number means the index is built anew
HEAP_BYTES = 15_000_000
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
    valid_from: datetime | None = None
    valid_to: datetime | None = None


_OPEN: dict[str, tuple[tuple[int, int, int], tuple[Any, Any, Any]]] = {}


class IndexBusy(IndexUnavailable):
    """Another process is writing the index; there is nothing wrong with it."""


class SearchIndex:
    """The index of a memory's home. Nothing is opened before it is used."""

    def __init__(self, home: Path) -> None:
        """Bind to ``<home>/index``."""
        self._folder = home / "index"

    @property
    def folder(self) -> Path:
        """Return where it lies."""
        return self._folder

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
            looking = Looking(*self._reader(), text, filters)
            found = looking.first(offset + limit)[offset:]
            looking.read(address for _, address in found)
            return [looking.hit(score, address) for score, address in found]

    def keys(
        self, text: str, filters: Filters | None = None, *, limit: int
    ) -> list[tuple[str, float]]:
        """Return name and score of what ``search`` finds, without reading it out."""
        self.seq()
        if limit < 1:
            return []
        with _readable():
            looking = Looking(*self._reader(), text, filters or Filters())
            found = looking.first(limit)
            names = looking.names(address for _, address in found)
            return [(names[place(address)], float(score)) for score, address in found]

    def ranking(self, text: str, filters: Filters, *, limit: int) -> list[tuple[str, float]]:
        """Return (document id, score) of what ``search`` finds: an order to come back to.

        A document's id is a keyed digest, which says nothing of what is withdrawn later.
        """
        self.seq()
        with _readable():
            looking = Looking(*self._reader(), text, filters)
            found = looking.first(limit)
            keys = looking.keys(address for _, address in found)
        made = self._key().document_id
        return [(made(*keys[place(address)]), float(score)) for score, address in found]

    def among(self, ids: Sequence[str], text: str, filters: Filters) -> dict[str, Hit]:
        """Return, by id, those of these documents that are still there and pass the filters.

        Their score is not looked at. Raises IndexUnavailable.
        """
        self.seq()
        if not ids:
            return {}
        with _readable():
            looking = Looking(*self._reader(), text, filters)
            hits = [looking.hit(0.0, address) for address in looking.among(ids)]
        made = self._key().document_id
        return {made(hit.catalog, hit.name): hit for hit in hits}

    def _key(self) -> Key:
        from hypatia_mem.store.keys import load_key

        return load_key(self._folder.parent)

    def update(
        self,
        documents: Iterable[Document],
        removed: Iterable[str],
        seq: int | None,
        *,
        gone: Iterable[str] = (),
        later: contextlib.ExitStack | None = None,
    ) -> None:
        """Put documents in (replacing those of their names) and take ``removed`` out: one commit.

        ``gone`` takes out by document id (``ledger.Key.document_id``) what has no name any more.
        ``seq`` None leaves the recorded sequence. ``later`` is where the engine's merging of files
        is waited for, with the index still locked, instead of here. Raises IndexUnavailable when
        another process writes the index for longer than a few seconds.
        """
        key = self._key()
        with contextlib.ExitStack() as now, _readable():
            index = self._open(create=True)[0]
            writer = (later or now).enter_context(self._writer(index))
            for name in removed:
                writer.delete_documents_by_term("name", scope_key(name))
            for one in gone:
                writer.delete_documents_by_term("id", one)
            for document in documents:
                writer.delete_documents_by_term("name", scope_key(document.name))
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
        _OPEN.pop(str(self._folder), None)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    # -- inside

    def _reader(self) -> tuple[Any, Any, Any]:
        """Return searcher, schema and analyzer of the last commit.

        Opening an index costs more than most queries, so a process that asks again keeps it; every
        commit puts another ``meta.json`` in place of the one before.
        """
        folder = str(self._folder)
        about = (self._folder / "meta.json").stat()
        stamp = (about.st_ino, about.st_mtime_ns, about.st_size)
        known = _OPEN.get(folder)
        if known is None or known[0] != stamp:
            index, schema, analyzer = self._open()
            known = _OPEN[folder] = (stamp, (index.searcher(), schema, analyzer))
        return known[1]

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
        return index, schema, _with_tokenizers(tantivy, index)

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


def search_among(
    documents: Iterable[Document],
    text: str,
    filters: Filters,
    *,
    key: Key | None = None,
    limit: int,
    offset: int = 0,
) -> list[Hit]:
    """Return the best matches among these documents alone, as ``SearchIndex.search`` ranks them.

    ``key`` is the memory's own; by it alone is known which document is hidden from whoever asks.

    For states that the index does not hold: an index of them is made in memory and thrown away.
    """
    import tantivy

    schema = _schema(tantivy)
    index = tantivy.Index(schema)
    analyzer = _with_tokenizers(tantivy, index)
    writer = index.writer(heap_size=HEAP_BYTES, num_threads=1)
    for document in documents:
        made = _tantivy_document(document)
        if key is not None:
            made.add_text("id", key.document_id(document.catalog, document.name))
        writer.add_document(made)
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    looking = Looking(index.searcher(), schema, analyzer, text, filters)
    found = looking.first(offset + limit)[offset:]
    looking.read(address for _, address in found)
    return [looking.hit(score, address) for score, address in found]


def _with_tokenizers(tantivy: Any, index: Any) -> Any:
    """Teach an index our way of cutting texts; return the analyzer that stems words."""
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    index.register_tokenizer("words", words.build())
    stems = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    analyzer = stems.filter(tantivy.Filter.stemmer("english")).build()
    index.register_tokenizer("stems", analyzer)
    return analyzer


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
    for name in ("at", "valid_from", "valid_to"):
        builder.add_integer_field(name, stored=True, fast=True)
    builder.add_integer_field("turn", fast=True)
    builder.add_integer_field("key", fast=True)
    return builder.build()


def _tantivy_document(document: Document) -> Any:
    import tantivy

    cut = terms(document.text)
    made = tantivy.Document()
    made.add_text("name", scope_key(document.name))
    made.add_text("catalog", document.catalog)
    made.add_text("kind", document.kind)
    for scope in document.scopes:
        made.add_text("scope", scope_key(scope))
    made.add_text("session", document.session)
    made.add_text("role", document.role)
    for tag in document.tags:
        made.add_text("tag", scope_key(tag))
    made.add_text("text", " ".join(cut))
    made.add_text("word", " ".join(map(word_key, cut)))
    made.add_bytes("body", document.text.encode("utf-8", "replace"))
    made.add_integer("key", _number(f"{document.catalog}\n{document.name}"))
    made.add_integer("turn", document.turn or 0)
    for name in ("at", "valid_from", "valid_to"):
        moment = getattr(document, name)
        if moment is not None:
            made.add_integer(name, micros(moment))
    return made


def _number(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
