"""Page by page one sees what one sees at once: no row twice, none missed, in the same order."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta

import pytest

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
