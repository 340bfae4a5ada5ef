"""Making vectors: all of them, once, whatever stops it; by one model at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from hypatia_mem import worker
from hypatia_mem.capture import spool
from hypatia_mem.errors import EmbeddingError, ModelUnavailable, UsageError
from hypatia_mem.memory.vectors import embedding, wordvectors
from hypatia_mem.memory.vectors.lexical import Lexical
from hypatia_mem.model import Author, Channel, Entry, Message, Session
from hypatia_mem.store import vectors
from hypatia_mem.store.connection import open_store

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 30, 12)
MODEL = Lexical(64)


def remember(home, *texts):
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn,
    ):
        for text in texts:
            txn.put_entry(Entry(text.replace(" ", "-")[:60], text, scopes=("app",)))


def converse(home, count):
    said = [Message("s-1", f"u-{n}", "user", f"sentence number {n}", NOW) for n in range(count)]
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.HOOK), now=NOW) as txn,
    ):
        txn.put_session(Session("s-1", project="app"))
        txn.put_messages("s-1", said, "app")


def kept(home):
    """Return how many vectors there are, and how many different digests they have."""
    with open_store(home, write=False) as store:
        (row,) = store.run("SELECT count(*) AS n, count(DISTINCT digest) AS d FROM embedding")
    return row["n"], row["d"]


def near(home, text, model=MODEL, **more):
    found, missing = embedding.similar(
        home, text, model, filters=lambda store, catalog: vectors.Filters(), **more
    )
    return [one.key for one in found], missing


def test_a_backfill_makes_what_is_missing_and_says_so(home):
    remember(home, "the first thing", "another thing", "???")
    told = []
    done = embedding.backfill(home, MODEL, progress=lambda *pair: told.append(pair))
    assert done.line == "Backfill complete: 2 vectors created, 1 skipped, 0 errors"
    assert told == [(0, 3), (3, 3)]
    again = embedding.backfill(home, MODEL)
    assert (again.created, again.remaining) == (0, 0)
    remember(home, "a third thing")
    assert embedding.backfill(home, MODEL).created == 1


def test_asking_makes_the_vectors_that_are_missing(home):
    remember(home, "the connection pool", "the weather")
    assert near(home, "pool of connections", limit=1) == (["the-connection-pool"], 0)
    remember(home, "pools of connections everywhere")
    found, _ = near(home, "pool of connections", limit=2)
    assert found == ["pools-of-connections-everywhere", "the-connection-pool"]


def test_a_stopped_backfill_goes_on_where_it_was(home, monkeypatch):
    monkeypatch.setattr(embedding, "WRITE", 4)
    converse(home, 20)
    stops = iter([False, False, True])
    first = embedding.backfill(home, MODEL, stop=lambda: next(stops))
    assert (first.created, first.remaining) == (12, 8)
    second = embedding.backfill(home, MODEL)
    assert (second.created, second.remaining) == (8, 0)
    assert kept(home) == (20, 20)


@pytest.mark.deep
def test_a_killed_backfill_is_gone_on_with(home):
    """kill -9 in the middle: what was written is whole, the rest comes, nothing comes twice."""
    converse(home, 120)
    code = (
        "import sys; from pathlib import Path; from hypatia_mem.memory.vectors import embedding;"
        "from hypatia_mem.memory.vectors.lexical import Lexical; embedding.WRITE = 2;"
        "embedding.backfill(Path(sys.argv[1]), Lexical(64),"
        " progress=lambda done, total: print(done, flush=True))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(home)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for line in child.stdout:
            if int(line) >= 4:
                break
        time.sleep(0.03)  # somewhere in a chunk
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    written, _ = kept(home)
    assert 4 <= written < 120
    assert embedding.backfill(home, MODEL).created == 120 - written
    assert kept(home) == (120, 120)


def test_what_was_written_down_on_purpose_gets_its_vector_first(home, monkeypatch):
    """A question that may not wait for all should at least see the rules."""
    monkeypatch.setattr(embedding, "WRITE", 2)
    converse(home, 6)
    remember(home, "zz a rule about databases")
    embedding.backfill(home, MODEL, stop=lambda: True)
    with open_store(home, write=False) as store:
        assert [near.key for near in vectors.rank(store, MODEL.query("rule"), "knowledge")] == [
            "zz-a-rule-about-databases"
        ]


def test_a_question_does_not_wait_for_everything(home, monkeypatch):
    """It ranks what there is and says how much was left out."""
    monkeypatch.setattr(embedding, "WRITE", 5)
    monkeypatch.setattr(embedding, "ASKING_SECONDS", 0.0)
    converse(home, 20)
    found, missing = near(home, "sentence number")
    assert (len(found), missing) == (5, 15)


def test_vectors_of_two_models_are_not_mixed(home, monkeypatch):
    """A ranking of half the entries would look like one of all."""
    converse(home, 20)
    embedding.backfill(home, MODEL)
    monkeypatch.setattr(embedding, "WRITE", 5)
    monkeypatch.setattr(embedding, "ASKING_SECONDS", 0.0)
    with pytest.raises(EmbeddingError, match=r"15 things .*lexical-1/64.*lexical-1/32.*together"):
        near(home, "sentence", Lexical(32))
    found, missing = near(home, "sentence", MODEL)
    assert (len(found), missing) == (20, 0)
    embedding.backfill(home, Lexical(32))
    found, missing = near(home, "sentence", Lexical(32))
    assert (len(found), missing) == (20, 0)
    with open_store(home, write=False) as store:
        assert vectors.counts(store) == {"lexical-1/32": 20, "lexical-1/64": 20}


def test_all_can_be_made_anew(home):
    remember(home, "a thing")
    embedding.backfill(home, MODEL)
    embedding.backfill(home, Lexical(32))
    embedding.reembed(home)
    assert kept(home) == (0, 0)
    assert embedding.backfill(home, MODEL).created == 1
    assert embedding.status(home, MODEL) == {
        "model": "lexical-1/64",
        "dimension": 64,
        "vectors": 1,
        "missing": 0,
        "other_models": {},
    }


class Fragile(Lexical):
    """Fails on one text, as a model of somebody else's may."""

    def documents(self, texts):
        if any("poison" in text for text in texts):
            raise ValueError("poison")
        return super().documents(texts)


def test_a_text_that_fails_spoils_no_other(home):
    remember(home, "one", "two", "poison", "three", "four")
    done = embedding.backfill(home, Fragile(64))
    assert (done.created, done.errors, done.remaining) == (4, 1, 0)


@pytest.mark.deep
def test_the_worker_makes_vectors_of_what_comes_in(home, monkeypatch):
    monkeypatch.chdir(home)  # a worker goes there
    prompt = {
        "session_id": "s-9",
        "hook_event_name": "UserPromptSubmit",
        "prompt": "mock databases",
    }
    prompt |= {"prompt_id": "p", "cwd": str(home.parent)}
    spool.append(str(home), "s-9", json.dumps(prompt).encode(), at_ns=time.time_ns() - 10**11)
    (home / "config.toml").write_text('embedding_model = "builtin"\n', "utf-8")
    assert worker.run(home, once=True) == 0
    with open_store(home, write=False) as store:
        assert vectors.counts(store) == {Lexical().model: 1}
        assert vectors.current(store, Lexical().model)


def test_no_store_is_made_for_vectors_of_nothing(bare_home):
    assert embedding.backfill(bare_home, MODEL) == embedding.Backfilled()
    assert near(bare_home, "anything") == ([], 0)
    assert not (bare_home / "memory.duckdb").exists()


def test_the_worker_makes_none_when_they_are_off(home):
    remember(home, "a thing")
    assert embedding.catch_up(home, "off", stop=lambda: False) == 0
    assert kept(home) == (0, 0)
    assert embedding.catch_up(home, "builtin", stop=lambda: False) == 1


# --- models ---------------------------------------------------------------------------------------


def test_without_the_extra_letters_are_compared(monkeypatch):
    monkeypatch.setattr(wordvectors, "find_spec", lambda name: None)
    assert embedding.load_model("auto").model.startswith("lexical-1/")


def test_the_missing_extra_says_how_to_get_it(home, monkeypatch):
    """And the worker, which nobody asked, only notes it."""
    monkeypatch.setattr(wordvectors, "find_spec", lambda name: None)
    embedding._loaded.cache_clear()
    with pytest.raises(ModelUnavailable) as caught:
        embedding.load_model("wordllama")
    assert caught.value.kind == "model unavailable"
    assert all(word in caught.value.hint for word in ("pip install", "pipx", "uv tool"))
    remember(home, "a thing")
    assert embedding.catch_up(home, "wordllama", stop=lambda: False) == 0


@pytest.mark.parametrize(
    ("name", "error"), [("off", EmbeddingError), ("gpt", UsageError), ("", UsageError)]
)
def test_what_is_no_model_is_refused(name, error):
    with pytest.raises(error):
        embedding.load_model(name)


extra = pytest.mark.skipif(not wordvectors.is_installed(), reason="hypatia-mem[embed] is missing")


@pytest.fixture(scope="module")
def words():
    return embedding.load_model("wordllama")


def nearness(model, asked, stored):
    from hypatia_mem.memory.vectors.lexical import cosine

    query = model.query(asked)
    return cosine(query.vector, model.documents([stored])[0]) / query.own


@extra
@pytest.mark.parametrize(
    ("asked", "near", "far"),
    [
        ("car", "vehicle", "banana"),
        ("the car is broken", "our vehicle needs a repair", "our weather needs a forecast"),
        ("delete a file", "remove the document", "paint the house"),
        ("speed up queries", "make the search faster", "make the coffee stronger"),
        ("databse", "the database is down", "the coffee is cold"),
        ("user name", "fetchUserName fails", "fetchOrderDate fails"),
    ],
)
def test_the_extra_knows_meanings_and_letters(words, asked, near, far):
    assert nearness(words, asked, near) >= words.threshold
    assert nearness(words, asked, near) > nearness(words, asked, far) + 0.1


@extra
def test_the_extra_says_which_model_made_a_vector(words):
    assert words.model.startswith("words-1+wordllama-")
    assert words.model.endswith("/512")
    (vector, nothing) = words.documents(["some words", "???"])
    assert len(vector) == words.dimension == 512
    assert nothing is None
    assert nearness(words, "some words", "some words") == pytest.approx(1.0, abs=0.01)


@extra
def test_the_extra_is_read_without_importing_its_package(home):
    """Importing it takes longer than all the rest; and nothing is fetched from anywhere."""
    code = (
        "import socket, sys; socket.socket.connect = None;"
        "from hypatia_mem.memory.vectors import embedding; m = embedding.load_model('wordllama');"
        "assert m.documents(['a text'])[0]; print([n for n in ('wordllama', 'pydantic', 'requests')"
        " if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_what_reads_everything_is_done_without_keeping_readers_out(home, monkeypatch):
    from hypatia_mem.store import vectors

    remember(home, "the connection pool", "the weather")
    writing: list[str] = []
    for name in ("missing", "stray", "pending"):
        real = getattr(vectors, name)

        def noted(store, *rest, real=real, name=name, **more):
            mode = store.run("SELECT readonly FROM duckdb_databases() WHERE database_name = 'kb'")
            writing.extend([] if mode[0]["readonly"] else [name])
            return real(store, *rest, **more)

        monkeypatch.setattr(vectors, name, noted)
    made = embedding.backfill(home, embedding.load_model("builtin"))
    assert (made.created > 0, made.remaining, writing) == (True, 0, [])
    with open_store(home, write=False) as store:
        assert vectors.current(store, embedding.load_model("builtin").model)
