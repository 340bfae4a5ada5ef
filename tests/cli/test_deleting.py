"""Deleting, moving and changing in bulk by command lines."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store
from tests.memory.cascade_kit import NOW, assert_whole, fill, settings, summaries, talk
from tests.memory.cascade_kit import run as condense

LONG_AGO = NOW - timedelta(days=2)


@pytest.fixture
def talked(home, project, once):
    def make():
        fill(home, talk(4), scope="app")
        condense(home, settings(cascade_batch=2))

    once(make)
    return home


@pytest.mark.deep
def test_a_dry_run_names_what_would_go_and_the_command_does_that(cli, talked):
    over = [one.name for one in summaries(talked)]
    told = cli("delete", "msg-s-1-1", "--dry-run", "--json")
    assert told.code == 0
    assert told.json["dry_run"] is True
    assert len(summaries(talked)) == len(over)
    done = cli("delete", "msg-s-1-1", "--json").json
    assert done["derived"] == told.json["derived"] != []
    assert {one["name"] for one in done["derived"]} <= set(over)
    assert cli("show", "msg-s-1-1").code == 1
    assert cli("undo", done["op_id"]).code == 0
    assert cli("show", "msg-s-1-1").code == 0


@pytest.mark.deep
def test_what_is_printed_says_what_stays_and_how_it_is_taken_back(cli, talked):
    said = cli("delete", "s-1:1-2", "--dry-run").out
    assert "Would delete 2 things:" in said
    assert "taken out, for it stood on that:" in said
    said = cli("delete", "s-1:1-2").out
    assert "Deleted 2 things:" in said
    assert "Take it back with: hypatia-mem undo " in said


def test_a_statement_goes_by_its_three_parts_or_its_key(cli, home):
    for predicate in ("likes", "knows"):
        assert cli("statement-create", "a", predicate, "b").code == 0
    assert cli("delete", "--statement", "a", "likes", "b").code == 0
    assert cli("delete", "a,knows,b").code == 0
    assert cli("query", '["$statement"]', "--json").json == []


def test_a_session_goes_as_a_whole(cli, talked):
    assert cli("delete", "s-1").code == 0
    assert cli("sessions", "--json", "--all-projects").json == []
    assert cli("search", "queue").out.strip() == "No results found."
    assert cli("undo").code == 0
    assert [one["id"] for one in cli("sessions", "--json").json] == ["s-1"]


def test_delete_from_here(cli, talked):
    told = cli("delete-from", "msg-s-1-3", "--dry-run", "--json").json
    assert [one["name"] for one in told["targets"]] == ["msg-s-1-3", "msg-s-1-4"]
    done = cli("delete-from", "msg-s-1-3", "--json").json
    assert done["targets"] == told["targets"]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("delete",), 2, "name what is to be deleted"),
        (("delete", "nope"), 1, "there is nothing called 'nope'"),
        (("delete", "msg-s-1-1", "--because", "secret words"), 2, "not 'secret words'"),
        (("delete", "msg-s-1-1", "--scope", "web"), 1, "only a person"),
        (("delete", "msg-s-1-1", "--all-projects"), 1, "only a person"),
        (("delete-from", "s-1"), 2, "nothing comes after"),
        (("move", "msg-s-1-1", "--scope", "web"), 1, "only a person"),
        (("provenance", "nope"), 1, "there is nothing called"),
        (("bulk", "pin"), 2, "say which of the list"),
        (("bulk", "shred", "--select", "1"), 2, "not 'shred'"),
        (("regenerate", "msg-s-1-1"), 2, "is no summary"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(cli, talked, line, code, said):
    ran = cli(*line)
    assert ran.code == code
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.deep
def test_a_person_moves_a_session_and_an_agent_does_not(cli, person, talked):
    assert cli("move", "s-1", "--scope", "web").code == 1
    code, out, _ = person("move", "s-1", "--scope", "web", "--dry-run")
    assert code == 0
    assert "Would move" in out
    code, out, _ = person("move", "s-1", "--scope", "web", "--json")
    assert code == 0
    moved = json.loads(out)
    assert {"msg-s-1-1", "msg-s-1-4"} <= {one["name"] for one in moved["targets"]}
    assert cli("search", "queue").out.strip() == "No results found."
    assert "msg-s-1-1" in cli("search", "queue", "--scope", "web").out


def test_provenance_names_the_messages_and_fails_when_one_is_missing(cli, talked):
    top = summaries(talked, 2)[0].name
    found = cli("provenance", top, "--json")
    assert found.code == 0
    assert found.json["leaves"] == ["msg-s-1-1", "msg-s-1-2"]
    with open_store(talked, write=True) as store:
        store.execute("DELETE FROM entry WHERE name = 'msg-s-1-1'")
    missing = cli("provenance", top)
    assert missing.code == 1
    assert "msg-s-1-1" in missing.out


@pytest.mark.deep
def test_bulk_changes_nothing_without_yes(cli, home):
    for name in ("a", "b", "c"):
        assert cli("knowledge-create", name, "-d", f"text {name}").code == 0
    listed = cli("bulk", "list", "--json").json
    assert {one["number"] for one in listed["entries"]} == {1, 2, 3}
    told = cli("bulk", "tag", "old", "--select", "1-2")
    assert "Would do tag to 2 entries:" in told.out
    assert cli("bulk", "list", "--tag", "old").out.strip() == "Nothing is in this list."
    done = cli("bulk", "tag", "old", "--select", "1-2", "--list", listed["list"], "--yes", "--json")
    assert done.json["names"] == [one["name"] for one in listed["entries"][:2]]
    assert len(cli("bulk", "list", "--tag", "old", "--json").json["entries"]) == 2
    gone = cli("bulk", "delete", "--select", "all", "--yes", "--json").json
    assert len(gone["targets"]) == 3
    stale = cli("bulk", "pin", "--select", "1", "--list", listed["list"], "--yes")
    assert stale.code == 1
    assert cli("undo", gone["op_id"]).code == 0
    assert len(cli("bulk", "list", "--json").json["entries"]) == 3


def test_a_summary_is_made_anew_by_its_ticket(cli, talked):
    name = summaries(talked, 1)[0].name
    shown = cli("regenerate", name, "--words", "15")
    ticket = cli("regenerate", name, "--words", "15", "--json").json["ticket"]
    assert f"--accept {ticket}" in shown.out
    assert cli("regenerate", name, "--words", "15", "--accept", "000000000000").code == 1
    done = cli("regenerate", name, "--words", "15", "--accept", ticket, "--json").json
    assert done["stored"] is True
    assert summaries(talked, 1)[0].content == done["content"]


def test_a_deleted_turn_is_not_told_in_the_next_brief(cli, home, project):
    """Where we left off is told from the messages that are there."""
    from hypatia_mem.memory import curate

    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.HOOK), now=NOW) as txn,
    ):
        txn.put_session(Session("s-2", project="app", updated_at=LONG_AGO))
        said = [("user", "look at zebra"), ("assistant", "zebra is done")]
        txn.put_messages(
            "s-2", [Message("s-2", f"z{n}", *one, LONG_AGO) for n, one in enumerate(said)], "app"
        )
    curate.refresh(home)
    assert "zebra" in cli("brief").out
    assert cli("delete", "s-2:1-2").code == 0
    assert "zebra" not in cli("brief").out


def test_a_suppressed_turn_is_shown_nowhere_and_comes_back_whole(cli, home, project):
    """Neither its words nor its tools', in the session it belongs to."""
    from hypatia_mem.memory import curate

    parts = ({"type": "tool_use", "name": "Bash", "input": "zebra", "id": "t1"},)
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.HOOK), now=NOW) as txn,
    ):
        txn.put_session(Session("s-2", project="app", updated_at=LONG_AGO))
        one = Message("s-2", "z1", "assistant", "zebra is done", LONG_AGO, parts=parts)
        txn.put_messages("s-2", [Message("s-2", "z0", "user", "hello", LONG_AGO), one], "app")
    curate.refresh(home)

    def shown() -> str:
        return cli("show", "s-2", "--raw-parts").out + cli("brief").out

    assert shown().count("zebra") >= 3
    done = cli("bulk", "suppress", "--session", "s-2", "--text", "zebra", "--select", "1", "--yes")
    assert done.code == 0
    assert "zebra" not in shown()
    assert "hello" in shown()
    assert cli("undo").code == 0
    assert shown().count("zebra") >= 3


@pytest.fixture
def condensed(home, project, once):
    """A longer talk: what is condensed anew after a deletion has the names of what went."""

    def make():
        fill(home, talk(12), scope="app")
        condense(home, settings(cascade_batch=4))

    once(make)
    return home


def _dump(home):
    """What is there to be seen: every live entry's words and every live statement."""
    with open_store(home, write=False) as store:
        entries = store.run("SELECT name, content FROM live_entry ORDER BY name")
        links = store.run("SELECT subject, predicate, object FROM live_statement ORDER BY ALL")
    return entries, links


@pytest.mark.parametrize(
    "line",
    [("delete", "msg-s-1-2"), ("delete", "s-1:6-7"), ("delete-from", "msg-s-1-7")],
    ids=" ".join,
)
def test_what_is_printed_to_take_it_back_takes_it_back(cli, condensed, line):
    """Though the rest was condensed anew by the command itself, and by a pass after it."""
    before = _dump(condensed)
    op_id = cli(*line, "--json").json["op_id"]
    after = _dump(condensed)
    assert after != before
    condense(condensed, settings(cascade_batch=4))
    assert cli("undo", op_id, "--dry-run").code == 0
    undone = cli("undo", op_id)
    assert undone.code == 0, undone.err
    assert _dump(condensed) == before
    assert_whole(condensed)


@pytest.mark.parametrize("turn", [2, 5, 7, 11])
def test_nothing_is_in_two_summaries_when_something_comes_back(cli, condensed, turn):
    """Also where what was condensed anew has other names; and so it is when it goes again."""
    before = _dump(condensed)
    done = cli("delete", f"msg-s-1-{turn}", "--json").json
    assert done["remade"]
    gone = _dump(condensed)
    assert cli("undo", done["op_id"]).code == 0
    assert_whole(condensed)
    assert _dump(condensed) == before
    assert cli("redo", done["op_id"]).code == 0
    condense(condensed, settings(cascade_batch=4))
    assert_whole(condensed)
    assert [one["name"] for one in _dump(condensed)[0] if one["name"].startswith("msg-")] == [
        one["name"] for one in gone[0] if one["name"].startswith("msg-")
    ]


def test_the_last_operation_is_the_persons_and_not_what_was_condensed_since(cli, condensed):
    before = _dump(condensed)
    op_id = cli("delete", "msg-s-1-2", "--json").json["op_id"]
    undone = cli("undo", "--json")
    assert undone.code == 0, undone.err
    assert undone.json["target"] == op_id
    assert _dump(condensed) == before


def test_a_summary_that_was_changed_since_then_still_stands_in_the_way(cli, person, condensed):
    """Of those that were condensed anew: a person's words are nobody's to take back."""
    before = {one.name for one in summaries(condensed)}
    done = cli("delete", "msg-s-1-2", "--json").json
    name = next(one for one in done["remade"] if one in before)
    assert person("edit", name, "--text", "my own words")[0] == 0
    there = _dump(condensed)
    refused = cli("undo", done["op_id"])
    assert refused.code == 1
    assert "changed later" in refused.err
    assert "my own words" in str(there)
    assert _dump(condensed) == there
