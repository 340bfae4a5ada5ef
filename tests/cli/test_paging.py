"""Page by page one sees what one sees at once: no row twice, none missed, in the same order."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta

import pytest

from hypatia_mem.cli import querying
from hypatia_mem.memory import curate
from hypatia_mem.memory.sharing import archive
from hypatia_mem.model import Author, Channel, Entry, Message, Session, Statement
from hypatia_mem.store.connection import open_store

AT = datetime(2026, 5, 1)
MANY = 23


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Rows that nothing but their names tells apart: equal times, equal texts, equal scores."""
    home = tmp_path_factory.mktemp("sample") / "home"
    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.HOOK), now=AT) as txn:
            for n in range(MANY):
                txn.put_session(Session(f"s{n}", project="app", updated_at=AT, started_at=AT))
                txn.put_messages(
                    f"s{n}", [Message(f"s{n}", f"u{n}", "user", "the needle", AT)], "app"
                )
                txn.put_entry(
                    Entry(
                        f"e{n}",
                        "the needle",
                        tags=(f"t{n}", "all"),
                        scopes=("app", f"scope{n}"),
                        figures=(f"archive://f{n}.txt",),
                        created_at=AT + timedelta(hours=n // 10),
                    )
                )
                txn.put_statement(
                    Statement("hub", "needle", f"e{n}", scopes=("app",), created_at=AT)
                )
    for n in range(MANY):
        path = home / archive.FOLDER / f"f{n}.txt"
        archive.private_folder(path.parent)
        path.write_text("x")
    curate.refresh(home)
    return home


@pytest.fixture
def given(cli, home, sample):
    """The command line on a copy of that."""
    shutil.copytree(sample, home, dirs_exist_ok=True)
    return cli


def query(expression, limit, offset):
    operator, *conditions = expression
    options = {"limit": limit, "offset": offset}
    return ["query", json.dumps({operator: conditions, **options}), "--json"]


def plain(*command):
    return lambda limit, offset: [
        *command, "--json", "--limit", str(limit), "--offset", str(offset),
    ]  # fmt: skip


LISTS = {
    "sessions": plain("sessions"),
    "scope list": plain("scope", "list"),
    "tag list": plain("tag", "list"),
    "archive-list": plain("archive-list"),
    "search": plain("search", "needle"),
    "search knowledge": plain("search", "needle", "-c", "knowledge"),
    "query": lambda limit, offset: query(["$knowledge"], limit, offset),
    "query by tag": lambda limit, offset: query(
        ["$knowledge", ["$contains", "tags", "all"]], limit, offset
    ),
    "query statements": lambda limit, offset: query(["$statement"], limit, offset),
    "query oldest first": lambda limit, offset: query(["$not-summaried", "message"], limit, offset),
    "query by search": lambda limit, offset: query(
        ["$knowledge", ["$search", "needle"]], limit, offset
    ),
}


def rows(done):
    assert done.code == 0, done.err
    return done.json["files"] if isinstance(done.json, dict) else done.json


def without_place(row):
    """Leave out what says where in its page a hit stands."""
    if not isinstance(row, dict):
        return row
    return {k: v for k, v in row.items() if not (k == "id" and isinstance(v, int))}


@pytest.mark.deep
@pytest.mark.parametrize("name", LISTS)
def test_pages_together_are_the_whole(given, name):
    """By pages of a size that does not divide the number of rows; beyond the end there is nothing."""
    command = LISTS[name]
    whole = [without_place(row) for row in rows(given(*command(1000, 0)))]
    pages = []
    for offset in range(0, len(whole) + 7, 7):
        page = rows(given(*command(7, offset)))
        assert len(page) == max(0, min(7, len(whole) - offset))
        pages += [without_place(row) for row in page]

    assert pages == whole
    assert len({json.dumps(row, sort_keys=True) for row in whole}) == len(whole) >= MANY


@pytest.mark.deep
def test_pages_of_one_moment_hold_while_others_write(given):
    """The pages of a query as of a time are those of that time, whatever comes in between."""
    moment = "2026-05-01T00:00:00.000001"
    options = {"limit": 17, "as_known_at": moment}
    whole = given("query", json.dumps({"$knowledge": [], **options, "limit": -1})).json
    names, live = [], []
    for offset in range(0, len(whole) + 17, 17):
        page = given("query", json.dumps({"$knowledge": [], **options, "offset": offset}), "--json")
        names += [row["name"] for row in page.json]
        page = given(
            "query", json.dumps({"$knowledge": [], "limit": 17, "offset": offset}), "--json"
        )
        live += [row["name"] for row in page.json]
        given("knowledge-create", f"new{offset}")
        given("knowledge-delete", f"e{offset // 17}")

    assert names == [row["name"] for row in whole]
    assert len(set(names)) == len(names) == 2 * MANY
    assert len(set(live)) < len(live) or len(live) != len(whole)  # the twin: without it they move


# --- with a cursor: while the memory changes ------------------------------------------------------


CURSORS = {
    "sessions": (["sessions"], "id"),
    "search": (["search", "needle"], "key"),
    "search knowledge": (["search", "needle", "-c", "knowledge"], "key"),
    "search a keyword": (["search", "--keyword", "the needle", "--kind", "message"], "key"),
}


def walk(given, command, key, limit, between=lambda number: None):
    """Return the keys of each page, with something done between the pages."""
    pages = []
    cursor = "first"
    while cursor is not None:
        done = given(*command, "--limit", str(limit), "--cursor", cursor, "--json")
        assert done.code == 0, done.err
        pages.append([row[key] for row in done.json["rows"]])
        cursor = done.json["next"]
        between(len(pages))
    return pages


def at_once(given, command, key):
    return [row[key] for row in given(*command, "--limit", "1000", "--json").json]


def say(home, session, n, now):
    """Say something in a session: it goes to the front, and the words count differently."""
    with curate.changing(home, Author(Channel.HOOK), now) as (_, txn):
        txn.put_session(Session(session, project="app", updated_at=now, started_at=now))
        said = [Message(session, f"late-{session}-{n}", "user", "the needle, a needle", now)]
        txn.put_messages(session, said, "app")


@pytest.mark.deep
@pytest.mark.parametrize("name", CURSORS)
@pytest.mark.parametrize("limit", [1, 7, MANY, 1000])
def test_a_cursor_pages_through_the_same_rows(given, name, limit):
    command, key = CURSORS[name]
    pages = walk(given, command, key, limit)
    assert [one for page in pages for one in page] == at_once(given, command, key)
    assert all(len(page) == limit for page in pages[:-1])


@pytest.mark.deep
@pytest.mark.parametrize("name", CURSORS)
def test_what_comes_in_meanwhile_neither_repeats_nor_hides_a_row(given, home, name):
    """New ones come in at the front, and old ones move there, between any two pages."""
    command, key = CURSORS[name]
    before = at_once(given, command, key)

    def between(number):
        say(home, f"new{number}", 0, AT + timedelta(days=number))
        say(home, f"s{MANY - number}", number, AT + timedelta(days=number))

    pages = walk(given, command, key, 5, between)
    assert [one for page in pages for one in page] == before
    assert at_once(given, command, key) != before


@pytest.mark.deep
def test_pages_by_number_would_have_repeated_some(given, home):
    """The control: without a cursor the same changes shift what is behind them."""
    command, key = CURSORS["sessions"]
    shown = []
    for number in range(5):
        rows = given(*command, "--limit", "5", "--offset", str(5 * number), "--json").json
        shown += [row[key] for row in rows]
        say(home, f"new{number}", 0, AT + timedelta(days=1 + number))
    assert len(shown) > len(set(shown))


def test_what_is_withdrawn_meanwhile_is_left_out_and_its_page_is_full(given, home):
    command, key = CURSORS["search knowledge"]
    before = at_once(given, command, key)
    gone = [name for name in before[5:] if name.startswith("e")][:3]

    def between(number):
        if number == 1:
            with curate.changing(home, Author(Channel.CLI_PERSON), AT) as (_, txn):
                for name in gone[:2]:
                    txn.delete_entry(name, tombstone=True)
                txn.update_entry(gone[2], scopes=("other",))

    pages = walk(given, command, key, 5, between)
    assert [one for page in pages for one in page] == [one for one in before if one not in gone]
    assert [len(page) for page in pages[:-1]] == [5] * (len(pages) - 1)


def test_a_page_can_be_asked_for_again(given):
    first = given("sessions", "--limit", "5", "--cursor", "first", "--json").json
    again = [given("sessions", "--limit", "5", "--cursor", first["next"], "--json").json] * 2
    assert again[0] == again[1]
    shown = given("sessions", "--limit", "5", "--cursor", "first")
    assert "There are more: --cursor " in shown.err


@pytest.mark.parametrize(
    ("cursor", "command"),
    [
        ("nonsense", ["sessions"]),
        ("0123456789abcdef.5", ["sessions"]),
        ("../../key.5", ["sessions"]),
        ("THEIRS", ["search", "needle"]),
        ("THEIRS", ["sessions", "--archived"]),
        ("THEIRS", ["sessions", "--all-projects"]),
    ],
)
def test_a_cursor_of_something_else_is_refused(given, cursor, command):
    """Else it would show rows of a question that was not asked."""
    if cursor == "THEIRS":
        page = given("sessions", "--limit", "5", "--cursor", "first", "--json").json
        cursor = page["next"]
    done = given(*command, "--cursor", cursor, "--json")
    assert done.code == 1
    assert "--cursor first" in done.err


@pytest.mark.parametrize("option", [["--offset", "5"], ["--as-known-at", "now"]])
def test_a_cursor_says_the_place_and_the_time_by_itself(given, option):
    done = given("search", "needle", "--cursor", "first", *option)
    assert done.code == 2
    assert option[0] in done.err


def test_what_is_kept_for_pages_names_nothing_and_is_private(given, home):
    given("search", "needle", "--limit", "5", "--cursor", "first", "--json")
    (kept,) = (home / "index" / "pages").iterdir()
    assert "hub" not in kept.read_text()
    assert "e1" not in json.loads(kept.read_text())["keys"]
    assert kept.stat().st_mode & 0o777 == 0o600


def test_lists_that_nobody_comes_back_to_go(given, home, monkeypatch):
    from hypatia_mem.memory import paging

    monkeypatch.setattr(paging, "_KEPT_LISTS", 3)
    for _ in range(5):
        given("sessions", "--limit", "5", "--cursor", "first", "--json")
    assert len(list((home / "index" / "pages").iterdir())) == 3
    paging.sweep(home, now=(datetime.now() + timedelta(days=2)).timestamp())
    assert list((home / "index" / "pages").iterdir()) == []


# --- a stream: every row, few in memory -----------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    "expression",
    [
        ["$knowledge"],
        ["$knowledge", ["$contains", "tags", "all"]],
        ["$knowledge", ["$search", "needle"]],
        ["$statement", ["$triple", "hub", "$*", "$*"]],
        ["$not-summaried", "message"],
        {"$knowledge": [["$contains", "tags", "all"]], "fields": ["name"]},
    ],
)
def test_a_stream_gives_every_row_once(given, expression, monkeypatch):
    monkeypatch.setattr(querying, "_STREAMED", 5)
    done = given("query", json.dumps(expression), "--stream")
    rows = [json.loads(line) for line in done.out.splitlines()]
    whole = expression if isinstance(expression, dict) else {expression[0]: expression[1:]}
    everything = given("query", json.dumps({**whole, "limit": -1}), "--json").json
    key = "triple" if "$statement" in whole else "name"
    assert [row[key] for row in rows] == sorted(row[key] for row in everything)
    assert sorted(rows, key=json.dumps) == sorted(everything, key=json.dumps)


@pytest.mark.deep
def test_a_stream_neither_repeats_nor_misses_while_others_write(home, given):
    from hypatia_mem.jse.parser import parse
    from hypatia_mem.memory.streaming import stream

    query = parse('["$knowledge", ["$contains", "tags", "all"]]')
    before = sorted(f"e{n}" for n in range(MANY))
    seen = []
    for number, row in enumerate(stream(home, query, scopes=["app"], size=4)):
        seen.append(row["name"])
        if number % 4 == 0:
            with curate.changing(home, Author(Channel.HOOK), AT) as (_, txn):
                late = Entry(f"a{number}", "x", tags=("all",), scopes=("app",))
                txn.put_entry(late)
                txn.update_entry(before[0], content=f"changed {number}")
    assert seen == before


@pytest.mark.parametrize("option", [{"order": "name"}, {"offset": 3}, {"count": True}])
def test_a_stream_has_an_order_of_its_own(given, option):
    done = given("query", json.dumps({"$knowledge": [], **option}), "--stream")
    assert done.code == 2
    assert next(iter(option)) in done.err


@pytest.mark.deep
def test_a_stream_holds_few_rows_at_once(home, given):
    """However many there are: what it takes does not grow with them."""
    import tracemalloc

    from hypatia_mem.jse.parser import parse
    from hypatia_mem.memory.streaming import stream

    with open_store(home, write=True) as store:
        with store.transaction(Author(Channel.HOOK), now=AT) as txn:
            for n in range(120):
                txn.put_entry(Entry(f"big{n}", "x" * 20_000, tags=("big",), scopes=("app",)))
    query = parse('["$knowledge", ["$contains", "tags", "big"]]')
    tracemalloc.start()
    try:
        count = sum(1 for _ in stream(home, query, scopes=["app"], size=10))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (count, most < 1_200_000) == (120, True), most
