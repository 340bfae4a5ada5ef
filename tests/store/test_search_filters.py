"""Filters exclude their negative twins before anything is cut off; pages follow a total order."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta

import pytest

from hypatia_mem.model import Entry, Statement, Trust
from hypatia_mem.store import lookup
from hypatia_mem.store.indexing import sync_index
from hypatia_mem.store.search import Document, Filters, SearchIndex
from hypatia_mem.store.terms import Exact, split_quoted, terms

DAY = datetime(2026, 5, 1)


def document(name, text="a needle", **more):
    more = {"catalog": "knowledge", "kind": "knowledge", "scopes": ("app",), **more}
    return Document(name, text=text, **more)


def names(hits):
    return [hit.name for hit in hits]


# One of each, and what it is told apart from; ``plain`` has none of it.
TWINS = [
    document("plain"),
    document("asked", kind="message", role="user", session="s-1", turn=1, at=DAY),
    document(
        "said", kind="message", role="assistant", session="s-1", turn=2, at=DAY + timedelta(hours=1)
    ),
    document(
        "other", kind="message", role="user", session="s-11", turn=1, at=DAY + timedelta(days=1)
    ),
    document("tagged", tags=("db", "two words"), kind="memory"),
    document("longer", tags=("db2",), kind="rule"),
    document("triple", catalog="statement", kind="statement"),
    document("there", scopes=("my-app", "")),
]


@pytest.fixture
def twins(home):
    index = SearchIndex(home)
    index.update(TWINS, [], 1)
    return index


@pytest.mark.deep
@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, {one.name for one in TWINS}),
        ({"roles": ["user"]}, {"asked", "other"}),
        ({"roles": ["assistant"]}, {"said"}),
        ({"roles": ["user", "assistant"]}, {"asked", "said", "other"}),
        ({"roles": []}, set()),
        ({"sessions": ["s-1"]}, {"asked", "said"}),
        ({"sessions": ["s-1", "s-11"]}, {"asked", "said", "other"}),
        ({"sessions": ["s"]}, set()),
        ({"tags": ["db"]}, {"tagged"}),
        ({"tags": ["db2"]}, {"longer"}),
        ({"tags": ["db", "two words"]}, {"tagged"}),
        ({"tags": ["db", "db2"]}, set()),
        ({"tags": ["two"]}, set()),
        ({"kinds": ["rule", "memory"]}, {"longer", "tagged"}),
        ({"catalog": "statement"}, {"triple"}),
        ({"scopes": ["my-app"]}, {"there"}),
        ({"scopes": [""]}, {"there"}),
        ({"since": DAY}, {"asked", "said", "other"}),
        ({"since": DAY + timedelta(microseconds=1)}, {"said", "other"}),
        ({"until": DAY + timedelta(hours=1)}, {"asked"}),
        ({"since": DAY, "until": DAY + timedelta(days=1)}, {"asked", "said"}),
        ({"since": datetime.max}, set()),
        ({"until": datetime.min}, set()),
        ({"roles": ["user"], "sessions": ["s-1"]}, {"asked"}),
        ({"roles": ["user"], "kinds": ["rule"]}, set()),
    ],
)
def test_each_filter_leaves_its_twin_out(twins, filters, found):
    assert set(names(twins.search("needle", filters=Filters(**filters)))) == found
    keys = twins.keys("needle", Filters(**filters), limit=100)
    assert {name for name, _ in keys} == found


@pytest.mark.parametrize(
    ("quiet", "filters"),
    [
        ({"role": "user"}, {"roles": ["user"]}),
        ({"session": "s-1"}, {"sessions": ["s-1"]}),
        ({"tags": ("db",)}, {"tags": ["db"]}),
        ({"at": DAY}, {"since": DAY, "until": DAY + timedelta(seconds=1)}),
        ({"text": "hay " * 300 + "this needle_case"}, {"exact": ["needle_case"]}),
    ],
)
def test_filters_apply_before_the_cut(home, quiet, filters):
    index = SearchIndex(home)
    loud = {"role": "assistant", "session": "s-2", "tags": ("other",), "at": DAY - timedelta(1)}
    crowd = [document(f"loud-{n}", "needle case " * 20, **loud) for n in range(400)]
    one = {"text": "one needle in " + "hay " * 300, **quiet}
    index.update([*crowd, document("quiet", **one)], [], 1)
    assert names(index.search("needle", limit=1)) != ["quiet"]
    assert names(index.search("needle", filters=Filters(**filters), limit=1)) == ["quiet"]
    assert index.search("needle", filters=Filters(**filters), limit=5, offset=1) == []


TEXTS = {
    "word": "The pool is empty",
    "plural": "Both pools are empty",
    "snake": "call drain_pool() now",
    "camel": "call drainPool() now",
    "cpp": "written in C++17",
    "c": "written in C",
    "flag": "run --dry-run=1 now",
    "flags": "run --dry-runs now",
    "turkish": "İSTANBUL and IĞDIR",
    "accent": "Das CAFÉ über dem Fluß",
    "cjk": "我们用知识图谱来存储",
    "phrase": "a connection\n  pool timed out",
    "swapped": "the pool of a connection",
    "error": "failed: ERR_CONN_RESET (1.2.3)",
    "errors": "failed: ERR_CONN_RESETS (11.2.3)",
    "json": '{"error":{"code":"EPIPE"}}',
    "long": "x" * 300,
}


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("pool", {"word", "snake", "phrase", "swapped"}), ("POOL", {"word", "snake", "phrase", "swapped"}),
        ("pools", {"plural"}), ("poo", set()), ("drain_pool", {"snake"}), ("drainpool", {"camel"}),
        ("drain", {"snake"}), ("C++", {"cpp"}), ("c", {"cpp", "c"}), ("--dry-run", {"flag"}),
        ("dry-runs", {"flags"}), ("istanbul", {"turkish"}), ("ISTANBUL", {"turkish"}),
        ("ıstanbul", {"turkish"}), ("iğdır", {"turkish"}), ("igdir", {"turkish"}), ("cafe", {"accent"}),
        ("Cafe\u0301", {"accent"}), ("FLUSS", {"accent"}), ("图谱", {"cjk"}), ("谱图", set()),
        ("connection pool", {"phrase"}), ("pool connection", set()), ("ERR_CONN_RESET", {"error"}),
        ("err_conn", {"error", "errors"}), ("1.2.3", {"error"}), ("epipe", {"json"}),
        ("x" * 300, {"long"}), ("x" * 200, set()), ("()", {"snake", "camel"}),
    ],
)  # fmt: skip
def test_exact_words_are_found_as_they_are_typed(home, words, found):
    index = SearchIndex(home)
    index.update([document(name, f"needle {text}") for name, text in TEXTS.items()], [], 1)
    assert set(names(index.search("needle", filters=Filters(exact=[words])))) == found
    matching = Exact(words)
    assert {name for name, text in TEXTS.items() if matching(text)} == found
    both = Filters(exact=[words, "call"])
    assert set(names(index.search("needle", filters=both))) == found & {"snake", "camel"}


@pytest.mark.parametrize("words", ["\0", "\ud800", "", " ", "(" * 5000, "知" * 5000, "a" * 20_000])
def test_no_exact_words_make_it_fail(twins, words):
    filters = Filters(exact=[words])
    assert len(twins.search("needle", filters=filters)) in (0, len(TWINS))
    assert len(twins.search(words, filters=filters)) in (0, len(TWINS))


def test_a_threshold_only_cuts_off(home):
    index = SearchIndex(home)
    index.update([document(f"n{n}", "needle " + "hay " * n) for n in range(40)], [], 1)
    everything = index.search("needle", limit=100)
    scores = [hit.score for hit in everything]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 5
    kept = len(everything)
    for least in [0.0, *sorted(set(scores)), scores[0] + 1]:
        found = index.search("needle", filters=Filters(threshold=least), limit=100)
        assert found == everything[: len(found)]
        assert len(found) <= kept
        assert all(score >= least for score in scores[: len(found)])
        assert all(score < least for score in scores[len(found) :])
        kept = len(found)
    assert kept == 0


@pytest.mark.parametrize("exact", [(), ("needle",)])
def test_pages_under_ties_repeat_nothing_and_leave_nothing_out(home, exact):
    index = SearchIndex(home)
    made = [
        document(f"n{n:03}", at=DAY + timedelta(minutes=n // 2), turn=n % 2, kind="message")
        for n in range(300)
    ]
    for part in range(0, 300, 50):  # several segments, in an order of their own
        index.update(made[part : part + 50][::-1], [], 1)
    everything = [f"n{n:03}" for n in range(299, -1, -1)]  # the newest first, then the later turn
    filters = Filters(exact=exact)
    pages = [
        names(index.search("needle", filters=filters, limit=7, offset=offset))
        for offset in range(0, 300, 7)
    ]
    assert list(itertools.chain(*pages)) == everything
    assert names(index.search("needle", filters=filters, limit=1000)) == everything
    other = SearchIndex(home / "other")
    (home / "other").mkdir()
    other.update(sorted(made, key=lambda one: one.name[::-1]), [], 1)
    assert names(other.search("needle", limit=1000)) == everything


def test_ties_without_end_are_paged_too(home, monkeypatch):
    monkeypatch.setattr(lookup, "TIES", 50)
    index = SearchIndex(home)
    few = [document(f"few-{n}", "needle needle", at=DAY + timedelta(n)) for n in range(30)]
    index.update([document(f"n{n}") for n in range(200)] + few, [], 1)
    pages = [names(index.search("needle", limit=9, offset=offset)) for offset in range(0, 240, 9)]
    found = list(itertools.chain(*pages))
    assert found[:30] == [f"few-{n}" for n in range(29, -1, -1)]
    assert len(found) == len(set(found)) == 230


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("authenticatio", "long"), ("authent", "long"), ("AUTHENTIC", "long"), ("fetchUserN", "camel"),
        ("foo_bar.b", "call"), ("src/app/rea", "path"), ("au", None), ("zzz", None),
        ("File \"/srv/app/main.py\", line 42, in run", "frame"), ("main.py", "frame"),
        ("/srv/app/main.py:42", "frame"), ("read_file.py", "path"), ("src/app/read_file.py", "path"),
        ("ภาษา", "thai"), ("เขียนภาษาไทย", "thai"), ("데이터베이스", "korean"), ("トークン", "kana"),
        ("ﾄｰｸﾝ", "kana"), ("Ｔｏｋｅｎ", "wide"), ("naive", "accent"), ("lodz", "stroke"),
        ("what is the authentication", "long"), ("the", "stop"),
    ],
)  # fmt: skip
def test_what_else_is_found(home, query, first):
    index = SearchIndex(home)
    texts = {
        "long": "the authentication was renewed", "camel": "fetchUserName()", "call": "foo_bar.baz()",
        "path": "see src/app/read_file.py:42: error", "frame": 'File "/srv/app/main.py", line 42, in run',
        "thai": "เราเขียนภาษาไทยได้", "korean": "데이터베이스를 옮겼다", "kana": "古いトークンを消す",
        "wide": "a token", "accent": "a naïve approach", "stroke": "built in Łódź",
        "stop": "what is the the the is what", "noise": "file line run app srv src py error 42 in",
    }  # fmt: skip
    index.update([document(name, text) for name, text in texts.items()], [], 1)
    assert names(index.search(query))[:1] == ([first] if first else [])


def test_a_long_question_is_read_to_its_end(home):
    index = SearchIndex(home)
    index.update([document("x", "a needle")], [], 1)
    polite = "so I was thinking that we might perhaps want to do this or that, and if so how about "
    assert names(index.search(polite * 20 + "the needle")) == ["x"]


@pytest.mark.parametrize(
    ("text", "words", "phrases"),
    [
        ('why does "connection pool" hang', "why does connection pool hang", ("connection pool",)),
        ("“two words” and «three words».", "two words and three words.", ("two words", "three words")),
        ('"one" "two"', "one two", ("one", "two")),
        ('an "open mark', 'an "open mark', ()), ('print("a b")', 'print("a b")', ()),
        ('{"a": "b"}', '{"a": "b"}', ()), ('"" "  " "--"', '"" "  " "--"', ()), ("", "", ()),
        ('5" of "steel"', '5" of steel', ("steel",)),
    ],
)  # fmt: skip
def test_phrases_stand_in_quotation_marks(text, words, phrases):
    assert split_quoted(text) == (words, phrases)


def test_terms_are_the_same_however_they_are_typed():
    assert terms("İSTANBUL") == terms("istanbul") == terms("ıstanbul")
    assert terms("CAFÉ") == terms("cafe") == terms("cafe\u0301")
    assert terms("Straße Øre ﬁle Ⅷ") == ["strasse", "ore", "file", "viii"]


# --------------------------------------------------------------------------- following the store


@pytest.fixture
def found(kit):
    """Bring the index to the store, then look."""
    index = SearchIndex(kit.home)

    def look(query, **filters):
        with kit.open() as store:
            sync_index(store, index)
        return set(names(index.search(query, filters=Filters(**filters))))

    return look


def test_another_name_finds_the_entry_and_its_statements(kit, found):
    with kit.change() as txn:
        txn.put_entry(Entry("PostgreSQL", "a database", synonyms=("pg", "postgres"), scopes=("",)))
        txn.put_entry(Entry("SQLite", "another", scopes=("",)))
        txn.put_statement(Statement("app", "uses", "PostgreSQL", scopes=("",)))
        txn.put_statement(Statement("PostgreSQL", "written_in", "C", scopes=("",)))
        txn.put_statement(Statement("app", "left", "SQLite", scopes=("",)))
        txn.put_statement(
            Statement("Ann", "knows", "Bob", synonyms={"object": ["Robert"]}, scopes=("",))
        )
    about = {"app,uses,PostgreSQL", "PostgreSQL,written_in,C"}
    assert found("pg") == {"PostgreSQL"} | about
    assert found("robert") == {"Ann,knows,Bob"}
    with kit.change() as txn:
        txn.update_entry("PostgreSQL", synonyms=("elephant",))
    assert found("elephant") == {"PostgreSQL"} | about
    assert found("pg") == set()
    with kit.change() as txn:
        txn.put_statement(Statement("shop", "uses", "PostgreSQL", scopes=("",)))
    assert found("elephant", catalog="statement") == about | {"shop,uses,PostgreSQL"}
    with kit.change() as txn:
        txn.update_entry("PostgreSQL", synonyms=())
    assert found("elephant") == set()
    assert found("shop") == {"shop,uses,PostgreSQL"}


def test_another_name_tells_nothing_to_another_project(kit, found):
    with kit.change() as txn:
        txn.put_entry(Entry("Falcon", "x", synonyms=("secretname",), scopes=("app",)))
        txn.put_entry(Entry("Eagle", "x", synonyms=("publicname",), scopes=("",)))
        for scope in ("app", "other"):
            txn.put_statement(Statement(scope, "uses", "Falcon", scopes=(scope,)))
            txn.put_statement(Statement(scope, "uses", "Eagle", scopes=(scope,)))
        txn.put_statement(Statement("both", "use", "Falcon", scopes=("app", "other")))
    assert found("secretname") == {"Falcon", "app,uses,Falcon"}
    assert found("secretname", scopes=["other"]) == set()
    assert found("publicname", scopes=["other"]) == {"other,uses,Eagle"}


@pytest.mark.deep
@pytest.mark.parametrize(
    "how", [{"trust": Trust.CANDIDATE}, {"trust": Trust.REJECTED}, {"suppressed": True}]
)
def test_what_is_withheld_is_never_in_the_index(kit, found, how):
    with kit.change() as txn:
        txn.put_entry(
            Entry("secret", "a xylophone", synonyms=("glockenspiel",), **{"scopes": ("",), **how})
        )
        txn.put_entry(Entry("open", "a xylophone", scopes=("",)))
        txn.put_statement(Statement("band", "plays", "secret", scopes=("",)))
        txn.put_statement(Statement("band", "plays", "open", scopes=("",)))
    assert found("xylophone") == {"open"}
    assert found("glockenspiel") == set()
    assert found("band") == {"band,plays,open"}
    with kit.change() as txn:
        txn.update_entry("secret", trust=Trust.ASSERTED, suppressed=False)
    assert found("xylophone") == {"open", "secret"}
    assert found("glockenspiel") == {"secret", "band,plays,secret"}


def test_a_message_is_found_by_who_said_it_in_which_session(kit, found):
    with kit.change() as txn:
        for session in ("s-1", "s-2"):
            said = [
                kit.message(1, "## Role\nassistant\nthe needle", session=session),
                kit.message(2, "the needle", session=session, role="assistant"),
            ]
            txn.put_messages(session, said, "app")
    assert found("needle", roles=["user"]) == {"msg-s-1-1", "msg-s-2-1"}
    assert found("needle", roles=["assistant"], sessions=["s-2"]) == {"msg-s-2-2"}
    assert found("needle", tags=["message"], since=kit.now) == {
        f"msg-{session}-{turn}" for session in ("s-1", "s-2") for turn in (1, 2)
    }
    assert found("needle", since=kit.now + timedelta(hours=1)) == set()


WRITER = """
import sys
from pathlib import Path
from hypatia_mem.store.search import Document, SearchIndex
index = SearchIndex(Path(sys.argv[1]))
for round in range(10_000):
    index.update(
        [Document(f"n{n}", "knowledge", "memory", ("app",), f"needle {n} {round} " + "hay " * 50)
         for n in range(200)], [], round)
    print(round, flush=True)
"""


@pytest.mark.deep
def test_a_kill_while_it_is_written_leaves_a_state_that_was_committed(home):
    index = SearchIndex(home)
    for number in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as writer:
            assert writer.stdout is not None
            for _ in range(2):
                writer.stdout.readline()
            time.sleep(0.013 * number)
            writer.send_signal(signal.SIGKILL)
        found = index.search("needle", limit=1000)
        assert len({hit.name for hit in found}) == len(found) == 200
        assert len({hit.snippet_text.split()[2] for hit in found}) == 1  # one round, whole
        index.update([document("after", "a fresh word")], [], 5)
        assert names(index.search("fresh")) == ["after"]
        index.remove(["after"])
