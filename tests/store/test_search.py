"""Search finds what people type, in the scopes they may see, and never fails over a text."""

from __future__ import annotations

import time

import pytest

from hypatia_mem.errors import IndexUnavailable
from hypatia_mem.model import Entry, Statement, Trust
from hypatia_mem.store import search
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.indexing import sync_index
from hypatia_mem.store.lookup import _snippet
from hypatia_mem.store.search import Document, SearchIndex
from hypatia_mem.store.terms import MAX_TERM, terms

TEXTS = {
    "cjk": "我们用知识图谱来存储。",
    "kana": "データベースの移行は完了しました",
    "hangul": "데이터베이스 이전",
    "cpp": "The extension is written in C++ and in C#.",
    "flag": "Run it with --dry-run first.",
    "camel": "Call fetchUserName() before saving.",
    "snake": "See src/app/read_file.py line 7",
    "call": "foo_bar.baz() raises",
    "accent": "Das Café über dem Fluß",
    "stem": "The databases were migrated",
    "error": "ModuleNotFoundError: No module named 'yaml'",
    "version": "pinned to 1.24.3 on linux-x86_64",
}


def document(name, text, *, scopes=("app",), kind="knowledge", catalog="knowledge"):
    return Document(name, catalog, kind, tuple(scopes), text)


@pytest.fixture
def index(home):
    made = SearchIndex(home)
    made.update([document(name, text) for name, text in TEXTS.items()], [], 1)
    return made


def names(hits):
    return [hit.name for hit in hits]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("图谱", "cjk"), ("知识图谱", "cjk"), ("知", "cjk"), ("移行", "kana"), ("이전", "hangul"),
        ("C++", "cpp"), ("c#", "cpp"), ("--dry-run", "flag"), ("dry run", "flag"),
        ("fetchUserName", "camel"), ("username", None), ("user name", "camel"),
        ("read_file.py", "snake"), ("src/app/read_file.py", "snake"), ("foo_bar.baz()", "call"),
        ("baz", "call"), ("cafe", "accent"), ("CAFÉ", "accent"), ("cafe\u0301", "accent"),
        ("fluss", "accent"), ("database migration", "stem"), ("migra", "stem"),
        ("ModuleNotFoundError", "error"), ("yaml", "error"), ("1.24.3", "version"),
        ("我们上次怎么用图谱的", "cjk"), ("存储知识", "cjk"), ("移行はいつ完了したのか", "kana"),
        ("识用存知", None), ("图谱们", None),
        ("x86_64", "version"), ("zebra", None), ("识知", None), ("谱图", None),
    ],
)  # fmt: skip
def test_what_is_found(index, query, first):
    found = names(index.search(query))
    assert found[:1] == ([first] if first else [])


@pytest.mark.deep
@pytest.mark.parametrize(
    "query",
    [
        "", " ", "\0", "a\0b", "\ud800", "😀", "👨‍👩‍👧", "AND OR NOT", "+must -not", '"open', "a:b",
        "text:(", "[a TO b]", "*", "?", "~", "^2", "\\", "{}", "a" * 10_000, "知" * 10_000,
        "word " * 2_000, "é" * 10_000, "/.*/", "(((((", "\x1b[31m", "'; DROP TABLE entry; --",
        "ÿ²³", "x" * 300 + "é", "\u202e", "the of and",
    ],
)  # fmt: skip
def test_no_text_makes_it_fail(index, query):
    for found in (index.search(query), index.search(query, scopes=["app"])):
        assert len(found) <= len(TEXTS)


@pytest.mark.parametrize(
    ("scopes", "found"),
    [
        (None, {"in-app", "in-my-app", "global", "none", "both"}),
        (["app"], {"in-app", "both"}),
        (["my-app"], {"in-my-app"}),
        (["app", ""], {"in-app", "both", "global"}),
        ([""], {"global"}),
        (["ap"], set()),
        ([], set()),
        (["app "], set()),
    ],
)
def test_scopes_match_by_element(home, scopes, found):
    index = SearchIndex(home)
    of = {"in-app": ["app"], "in-my-app": ["my-app"], "global": [""], "none": []}
    of["both"] = ["app", "tool"]
    index.update([document(n, "same words", scopes=s) for n, s in of.items()], [], 1)
    hits = index.search("words", scopes=scopes)
    assert set(names(hits)) == found
    assert all(hit.scopes == tuple(of[hit.name]) for hit in hits)


def test_filters_come_before_the_ranking(home):
    index = SearchIndex(home)
    loud = [document(f"loud-{n}", "needle " * 20, scopes=["other"]) for n in range(300)]
    quiet = document("quiet", "one needle in a long text " + "of hay " * 300, kind="rule")
    index.update([*loud, quiet], [], 1)
    assert names(index.search("needle", scopes=["app"], limit=1)) == ["quiet"]
    assert names(index.search("needle", kinds=["rule"], limit=1)) == ["quiet"]
    assert index.search("needle", catalog="statement") == []
    assert len(index.search("needle", limit=10**12)) == 301
    assert len(index.search("needle", limit=10**12, offset=300)) == 1
    assert index.search("needle", offset=10**12) == []
    assert index.search("needle", limit=0) == index.search("needle", limit=-1) == []
    pages = names(index.search("needle", limit=5)) + names(
        index.search("needle", limit=5, offset=5)
    )
    assert pages == names(index.search("needle", limit=10))


def test_what_is_removed_is_gone_at_once(index):
    index.remove(["camel"])
    assert index.search("saving") == []
    assert names(index.search("yaml")) == ["error"]
    assert index.seq() == 1


def test_it_follows_the_store(kit):
    index = SearchIndex(kit.home)

    def sync():
        with kit.open() as store:
            return sync_index(store, index)

    with kit.change() as txn:
        txn.put_messages("s-1", [kit.message(1, "the parser drops a line")], "app")
        txn.put_entry(kit.rule("Never mock the parser"))
        txn.put_entry(kit.rule("Parser guess", trust=Trust.CANDIDATE))
        txn.put_statement(Statement("parser", "written_by", "Ada", scopes=("app",)))
        txn.put_statement(Statement("rule:x", "is_a", "rule", scopes=("app",)))
    assert sync() == 5
    found = index.search("parser", scopes=["app"])
    assert {hit.name for hit in found} == {
        "msg-s-1-1", "rule:never-mock-the-parser", "parser,written_by,Ada",
    }  # fmt: skip
    assert sync() == 0
    with kit.change() as txn:
        txn.update_entry("rule:parser-guess", trust=Trust.ASSERTED)
        txn.delete_entry("rule:never-mock-the-parser")
        txn.rename_scope("app", "tool")
    sync()
    assert index.search("parser", scopes=["app"]) == []
    assert {hit.name for hit in index.search("parser", scopes=["tool"])} == {
        "msg-s-1-1", "rule:parser-guess", "parser,written_by,Ada",
    }  # fmt: skip


def test_what_was_deleted_while_the_index_was_away_leaves_it_and_may_come_back(kit):
    index = SearchIndex(kit.home)

    def found(query):
        with kit.open() as store:
            sync_index(store, index)
        return [hit.name for hit in index.search(query)]

    with kit.change() as txn:
        txn.put_entry(kit.rule("Use a xylophone"))
        txn.put_statement(Statement("xylophone", "is", "loud", scopes=("",)))
        txn.put_entry(Entry("other", "a xylophone too", scopes=("",)))
    assert len(found("xylophone")) == 3
    with kit.change() as txn:
        txn.delete_entry("rule:use-a-xylophone")
        txn.delete_statement("xylophone", "is", "loud")
    assert found("xylophone") == ["other"]
    with kit.change() as txn:
        txn.put_entry(kit.rule("Use a xylophone"))
        txn.delete_entry("other")
        txn.put_entry(Entry("other", "now a drum", scopes=("",)))
    assert found("xylophone") == ["rule:use-a-xylophone"]
    assert found("drum") == ["other"]


def test_the_statements_of_what_is_withheld_are_withheld_with_it(kit):
    index = SearchIndex(kit.home)

    def seen():
        with kit.open() as store:
            sync_index(store, index)
            live = [row["triple"] for row in store.run("SELECT triple FROM live_statement")]
        return live, [hit.name for hit in index.search("xylophone", catalog="statement")]

    triples = ["rule:x,about,xylophone", "xylophone,needs,rule:x", "xylophone,is,loud"]
    with kit.change() as txn:
        txn.put_entry(kit.rule("Play", "rule:x"))
        for triple in triples:
            txn.put_statement(Statement(*triple.split(","), scopes=("",)))
    assert [sorted(part) for part in seen()] == [sorted(triples)] * 2
    for change in ({"suppressed": True}, {"suppressed": False, "trust": Trust.REJECTED}):
        with kit.change() as txn:
            txn.update_entry("rule:x", **change)
        assert seen() == (triples[2:], triples[2:])
    with kit.change() as txn:
        txn.update_entry("rule:x", trust=Trust.ASSERTED)
    assert [sorted(part) for part in seen()] == [sorted(triples)] * 2


@pytest.fixture
def synced(kit):
    with kit.change() as txn:
        txn.put_entry(Entry("a", "first thing", scopes=("app",)))
    with kit.open() as store:
        sync_index(store, SearchIndex(kit.home))
    with kit.change() as txn:
        txn.put_entry(Entry("b", "second thing", scopes=("app",)))
    return kit


def older_format(folder):
    (folder / "seq").write_text(f"1 {(folder / 'seq').read_text().split()[1]}")


def garbage_meta(folder):
    (folder / "meta.json").write_text("{nonsense")


def lost_segments(folder):
    for path in folder.iterdir():
        if path.suffix in (".term", ".idx", ".store", ".pos", ".fast"):
            path.unlink()


def cut_segments(folder):
    for path in folder.iterdir():
        if path.suffix in (".term", ".idx", ".store", ".pos", ".fast"):
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def all_gone(folder):
    SearchIndex(folder.parent).clear()


def ahead(folder):
    (folder / "seq").write_text(f"{search.FORMAT} 999")


@pytest.mark.deep
@pytest.mark.parametrize(
    "damage", [older_format, garbage_meta, lost_segments, cut_segments, all_gone, ahead]
)
def test_a_damaged_index_says_so_and_is_built_anew_with_all_of_it(synced, damage):
    index = SearchIndex(synced.home)
    damage(synced.home / "index")
    if damage is not ahead:
        with pytest.raises(IndexUnavailable) as caught:
            index.search("thing")
        assert "worker drain" in caught.value.hint
    with synced.open() as store:
        sync_index(store, index)
    assert sorted(names(index.search("thing"))) == ["a", "b"]


def test_a_second_writer_is_told_and_nothing_is_thrown_away(synced, monkeypatch):
    import tantivy

    monkeypatch.setattr(search, "_LOCK_WAIT_SECONDS", 0.2)
    index = SearchIndex(synced.home)
    writer = tantivy.Index.open(str(synced.home / "index")).writer()
    try:
        with synced.open() as store, pytest.raises(IndexUnavailable, match="another process"):
            sync_index(store, index)
        assert names(index.search("thing")) == ["a"]
    finally:
        writer.wait_merging_threads()
    with synced.open() as store:
        sync_index(store, index)
    assert sorted(names(index.search("thing"))) == ["a", "b"]


def test_an_empty_store_has_an_empty_index(home):
    with pytest.raises(IndexUnavailable):
        SearchIndex(home).search("x")
    with open_store(home, write=False) as store:
        sync_index(store, SearchIndex(home))
    assert SearchIndex(home).search("x") == []


def test_nobody_else_can_read_the_index(synced):
    folder = synced.home / "index"
    assert {path.stat().st_mode & 0o077 for path in [folder, *folder.iterdir()]} == {0}


@pytest.mark.deep
@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000, "A" * 1_000_000, "aB" * 500_000, "A1_" * 333_333, "." * 1_000_000,
        "(" * 1_000_000, "知" * 1_000_000, "é" * 1_000_000, "a." * 500_000, "word " * 1_000_000,
        "\u0301" * 1_000_000,
    ],
)  # fmt: skip
def test_huge_texts_take_linear_time(text):
    def cost(part):
        start = time.process_time()
        found = terms(part)
        return time.process_time() - start, found

    cost(text[:1000])
    small = cost(text[: len(text) // 10])[0]
    whole, found = cost(text)
    assert whole < max(25 * small, 0.5)  # ten times the text; quadratic would be a hundred
    assert all(len(term) <= MAX_TERM for term in found)


def test_a_run_as_it_stands_comes_before_its_pairs(home):
    index = SearchIndex(home)
    texts = {"pairs": "登录修复修复登录登录", "whole": "昨天的登录页面修复", "none": "登页"}
    index.update([document(name, text) for name, text in texts.items()], [], 1)
    assert names(index.search("登录页面")) == ["whole", "pairs"]
    assert names(index.search("登录页")) == ["whole"]  # a short run is one word


def test_a_long_snippet_is_cut_around_the_word(home):
    index = SearchIndex(home)
    index.update([document("long", "hay " * 5000 + "needle" + " hay" * 5000)], [], 1)
    snippet = index.search("needle")[0].snippet_text
    assert "needle" in snippet
    assert len(snippet) < 700


@pytest.mark.parametrize("behind", [True, False])
def test_no_piece_of_a_secret_is_shown_where_a_snippet_is_cut(behind):
    """Wherever the cut falls, and though another secret stands within."""
    token = "ghp_" + "Zk3vQ9xT1mB7cR5dW8yL2nH6" + "pJ4sF0aGuE1q"  # nobody's
    for distance in range(0, 860, 3):
        between = "w " * (distance // 2)
        rest = f"password: hunter2 {'v ' * 600}"
        near = f"needle {between}{token} {rest}" if behind else f"{token} {between}needle {rest}"
        snippet = _snippet("w " * 600 + near, ["needle"])
        assert "needle" in snippet
        assert not any(token[at : at + 8] in snippet for at in range(len(token) - 7)), distance
