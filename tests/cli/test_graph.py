"""The published command lines of the graph: their texts, their rows, their quirks."""

from __future__ import annotations

import json

import pytest

from hypatia_mem.store.connection import open_store


def test_create_get_update_delete(cli):
    """The whole life of an entry, with the published texts."""
    assert cli("knowledge-create", "Rust", "-d", "A language", "--tags", "a,b").out == (
        "Created knowledge: Rust\n"
    )
    created = cli("knowledge-get", "Rust").json
    assert created["content"] == {
        "format": "markdown",
        "data": "A language",
        "tags": ["a", "b"],
        "synonyms": None,
        "figures": None,
        "scopes": ["app"],
    }

    assert cli("knowledge-update", "Rust", "--data", "Fast").out == "Updated knowledge: Rust\n"
    assert cli("knowledge-update", "Rust", "--data", "Fast").out == "Knowledge unchanged: Rust\n"
    updated = cli("knowledge-get", "Rust").json
    assert updated["content"] == {**created["content"], "data": "Fast"}
    assert updated["created_at"] == created["created_at"]

    assert cli("knowledge-update", "Rust", "--tags", "").code == 0
    assert cli("knowledge-get", "Rust").json["content"]["tags"] == []

    assert cli("knowledge-delete", "Rust").out == "Deleted knowledge: Rust\n"
    missing = cli("knowledge-get", "Rust")
    assert (missing.code, missing.out) == (0, "Knowledge 'Rust' not found.\n")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["knowledge-delete", "nobody"], "Error: not found: knowledge 'nobody'"),
        (["knowledge-update", "nobody", "-d", "x"], "Error: not found: knowledge 'nobody'"),
        (["knowledge-get", "nobody", "--json"], None),
        (["statement-delete", "a", "b", "c"], "Error: not found: statement"),
        (["knowledge-create", " "], "an entry needs a name"),
    ],
)
def test_what_is_not_there_is_an_error(cli, arguments, words):
    """Exit code 1 (2 for a wrong value), and nothing on standard output."""
    done = cli(*arguments)

    assert done.code in (1, 2)
    assert done.out == ""
    if words:
        assert words in done.err


def test_a_taken_name_is_an_error(cli):
    """Creation never overwrites."""
    cli("knowledge-create", "x", "-d", "first")

    done = cli("knowledge-create", "x", "-d", "second")

    assert done.code == 1
    assert cli("knowledge-get", "x").json["content"]["data"] == "first"


def test_an_update_of_nothing_is_an_error(cli):
    """As published."""
    cli("knowledge-create", "x")

    done = cli("knowledge-update", "x")

    assert done.code == 2
    assert "nothing to update" in done.err


@pytest.mark.deep
@pytest.mark.parametrize(
    ("scopes", "stored"),
    [("", [""]), (",", [""]), ("app,", ["app", ""]), ("p, ", ["p"]), (None, ["app"])],
)
def test_scopes_of_creation(cli, scopes, stored):
    """The documented example for a global entry works; without the option it is the project's."""
    option = [] if scopes is None else ["--scopes", scopes]
    cli("knowledge-create", "x", *option)
    cli("statement-create", "a", "is_a", "b", *option)

    assert cli("knowledge-get", "x", "--all-projects").json["content"]["scopes"] == stored
    [row] = cli("query", '["$statement", ["$triple", "a", "$*", "$*"]]', "--all-projects").json
    assert row["content"]["scopes"] == stored


@pytest.mark.deep
@pytest.mark.parametrize(
    ("data", "stored"),
    [
        (["-d", "- a\n- b"], "- a\n- b"),
        (["--data=- a"], "- a"),
        (["-d", "-x"], "-x"),
        (["-d", "-"], "from stdin"),
        (["-d", "@@home"], "@home"),
    ],
)
def test_data_that_begins_oddly(cli, data, stored):
    """A Markdown list begins with a dash."""
    cli("knowledge-create", "x", *data, stdin=b"from stdin\n")

    assert cli("knowledge-get", "x").json["content"]["data"] == stored


def test_data_longer_than_an_argument_may_be(cli, tmp_path):
    """Linux refuses an argument above 128 KiB."""
    text = "word " * 60_000
    (tmp_path / "long.md").write_text(text)

    cli("knowledge-create", "x", "-d", f"@{tmp_path / 'long.md'}")

    assert cli("knowledge-get", "x").json["content"]["data"] == text


def test_statements(cli):
    """A duplicate is a sentence and changes nothing."""
    first = cli("statement-create", "Alice", "likes", "Rust, the language", "-d", "since 2015")
    again = cli("statement-create", "Alice", "likes", "Rust, the language", "-d", "never")
    [row] = cli("query", '["$statement", ["$contains", "triple", "Alice"]]').json

    assert first.out == "Created statement: (Alice, likes, Rust, the language)\n"
    assert again.out == "Statement already exists: (Alice, likes, Rust, the language)\n"
    assert again.code == 0
    assert row["triple"] == 'Alice,likes,"Rust, the language"'
    assert row["content"]["data"] == "since 2015"
    assert cli("statement-delete", "Alice", "likes", "Rust, the language").out == (
        "Deleted statement: (Alice, likes, Rust, the language)\n"
    )


def test_statement_synonyms_are_found(cli):
    """Stored under the first vocabulary, whichever was written."""
    cli("statement-create", "a", "knows", "b", "--synonyms", '{"head": ["Al"]}')

    [row] = cli("query", '["$statement", ["$contains", "synonyms", "Al"]]').json
    assert row["content"]["synonyms"] == {"subject": ["Al"]}


def test_a_statement_takes_no_tags(cli):
    """Older skills pass them; silently dropping them would be a lie."""
    done = cli("statement-create", "a", "b", "c", "--tags", "x")

    assert done.code == 2
    assert "a statement carries no tags" in done.err


def test_deleting_an_entry_takes_its_statements_along(cli):
    """No dangling edge is left."""
    cli("knowledge-create", "x")
    cli("statement-create", "x", "is_a", "y")
    cli("statement-create", "y", "is_a", "z")

    deleted = cli("knowledge-delete", "x", "--json").json
    rows = cli("query", '["$statement"]').json

    assert deleted["statements"] == 1
    assert [row["subject"] for row in rows] == ["y"]


def test_query_without_rows(cli):
    """A text for people, an empty list for programs, both exit 0."""
    text = cli("query", '["$knowledge"]')
    machine = cli("query", '["$knowledge"]', "--json")

    assert (text.code, text.out) == (0, "No results found.\n")
    assert (machine.code, machine.json) == (0, [])


def test_query_from_standard_input_and_file(cli, tmp_path):
    """A long expression need not fight the shell's quotes."""
    cli("knowledge-create", "x")
    expression = '["$knowledge", ["$eq", "name", "x"]]'
    (tmp_path / "q.json").write_text(expression)

    assert cli("query", "-", stdin=expression.encode()).json[0]["name"] == "x"
    assert cli("query", f"@{tmp_path / 'q.json'}").json[0]["name"] == "x"


PLAIN = ["$knowledge", ["$like", "name", "%"]]
NAMED = ["$knowledge", ["$or", ["$contains", "scopes", "other"], ["$contains", "scopes", ""]]]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("expression", "options", "names"),
    [
        (PLAIN, (), {"here", "everywhere"}),
        (PLAIN, ("--scope", "other"), {"there"}),
        (PLAIN, ("--scope", "other", "--scope", ""), {"there", "everywhere"}),
        (PLAIN, ("--all-projects",), {"here", "everywhere", "there", "nowhere"}),
        (NAMED, (), {"there", "everywhere"}),
        (NAMED, ("--all-projects",), {"there", "everywhere"}),
        (NAMED, ("--scope", "other"), {"there"}),
        (NAMED, ("--scope", "app"), set()),
        (
            ["$knowledge", ["$not", ["$contains", "scopes", "app"]]],
            (),
            {"there", "everywhere", "nowhere"},
        ),
        ({"$knowledge": [], "fields": ["name", "scopes"]}, (), {"here", "everywhere"}),
        (["$knowledge", ["$search", "needle"]], (), {"here", "everywhere"}),
        (["$knowledge", ["$search", "needle"]], ("--scope", "other"), {"there"}),
    ],
)
def test_what_scopes_a_query_reads(cli, home, expression, options, names):
    """Without a condition on scopes: the project's and the global one, never all (I5)."""
    for name, scopes in (("here", "app"), ("everywhere", ""), ("there", "other"), ("nowhere", "x")):
        cli("knowledge-create", name, "-d", "needle", "--scopes", scopes)
    with open_store(home, write=True) as store:  # as an early version let it in
        store.execute("UPDATE entry SET scopes = [] WHERE name = 'nowhere'")

    rows = cli("query", json.dumps(expression), *options, "--json").json

    assert {row["name"] for row in rows} == names


def test_a_walk_stays_in_the_scopes_that_are_read(cli):
    """A project's statements are no bridge between two others."""
    for subject, object_, scopes in (("a", "b", "app"), ("b", "c", "other"), ("c", "d", "app")):
        cli("statement-create", subject, "to", object_, "--scopes", scopes)
    walk = ["$k-hop", "a", "to", 20]

    def ends(expression, *options):
        rows = cli("query", json.dumps(expression), *options, "--json").json
        return [(row["object"], row["hop"]) for row in rows]

    assert ends(["$statement", walk]) == [("b", 1)]
    assert ends(["$statement", walk, ["$contains", "scopes", "app"]]) == [("b", 1)]
    assert ends(["$statement", walk], "--all-projects") == [("b", 1), ("c", 2), ("d", 3)]


def test_a_query_travels_in_time(cli, monkeypatch):
    """--as-known-at shows what the memory held; both flags are options of the language too."""
    from datetime import datetime

    from hypatia_mem.cli import context

    monkeypatch.setattr(context, "now", lambda: datetime(2026, 1, 1))
    cli("knowledge-create", "x", "-d", "first")
    monkeypatch.setattr(context, "now", lambda: datetime(2026, 2, 1))
    cli("knowledge-update", "x", "-d", "second")
    monkeypatch.setattr(context, "now", lambda: datetime(2026, 3, 1))
    cli("knowledge-delete", "x")

    def texts(expression, *options):
        rows = cli("query", json.dumps(expression), *options, "--json").json
        return [row["content"]["data"] for row in rows]

    plain = ["$knowledge", ["$eq", "name", "x"]]
    assert texts(plain) == []
    assert texts(plain, "--as-known-at", "2025-12-31") == []
    assert texts(plain, "--as-known-at", "2026-01-15") == ["first"]
    assert texts(plain, "--as-known-at", "2026-02-15T00:00:00Z") == ["second"]
    assert texts({"$knowledge": plain[1:], "as_known_at": "2026-01-15"}) == ["first"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--as-of", "yesterday"), "--as-of: 'yesterday' is no date"),
        (("--as-known-at", "2025-02-30"), "is no date"),
        (("--as-of", "2025-01-02"), "contradicts the same option"),
        (("--scope", "x", "--all-projects"), "contradict each other"),
    ],
)
def test_options_of_a_query_that_cannot_be_meant(cli, options, words):
    """Told before anything is read."""
    done = cli("query", '{"$knowledge": [], "as_of": "2025-01-01"}', *options)

    assert done.code == 2
    assert words in done.err


def test_search_is_scoped_to_project_and_global(cli):
    """An omitted scope is never all (I5); other scopes have to be asked for."""
    for name, scopes in (("here", "app"), ("everywhere", ""), ("there", "my-app")):
        cli("knowledge-create", name, "-d", "the needle", "--scopes", scopes)

    def keys(*options):
        return {row["key"] for row in cli("search", "needle", *options, "--json").json}

    assert keys() == {"here", "everywhere"}
    assert keys("--scope", "my-app") == {"there"}
    assert keys("--scope", "") == {"everywhere"}
    assert keys("--scope", "my-app", "--scope", "app") == {"here", "there"}
    assert keys("--all-projects") == {"here", "everywhere", "there"}


def test_search_rows(cli):
    """Best first; content is a JSON text as published; no rows is a sentence."""
    cli("knowledge-create", "authentication", "-d", "How authenticating works")
    cli("knowledge-create", "other", "-d", "Something else")

    rows = cli("search", "authentication", "--json").json
    nothing = cli("search", "zebra")

    assert [row["key"] for row in rows] == ["authentication"]
    assert rows[0]["catalog"] == "knowledge"
    assert rows[0]["score"] == -rows[0]["rank"] > 0
    assert "authenticating" in json.loads(rows[0]["content"])["data"]
    assert nothing.out == "No results found.\n"


def test_search_takes_any_text(cli):
    """What is an operator elsewhere is a word here."""
    cli("knowledge-create", "x", "-d", "a=b cost $5 AND OR NOT")

    for text in ("???", "a=b", "cost $5", "\\", "AND", "NOT x", "-x y", '"', "(", "日本"):
        done = cli("search", text)
        assert done.code == 0, (text, done.err)
        assert "Traceback" not in done.err


@pytest.mark.deep
def test_search_inside_an_expression(cli):
    """Filters come before rank and limit, and rows keep rank order with a score."""
    for number in range(12):
        cli("knowledge-create", f"noise{number}", "-d", "needle needle needle", "--scopes", "n")
    cli("knowledge-create", "wanted", "-d", "one needle in a long text of other words")

    expression = {
        "$knowledge": [["$search", "needle"], ["$contains", "scopes", "app"]],
        "limit": 1,
    }
    rows = cli("query", json.dumps(expression)).json

    assert [row["name"] for row in rows] == ["wanted"]
    assert rows[0]["score"] > 0


def test_session_current(cli):
    """The published text: names and times, and how many."""
    assert cli("session-current").out == "No unsummarized messages.\n"
    for name, scopes in (("m1", "app"), ("m2", ""), ("m3", "other")):
        cli("knowledge-create", name, "--tags", "message", "--scopes", scopes)

    lines = cli("session-current").out.splitlines()
    cli("statement-create", "s", "summary", "m1")
    after = cli("session-current", "--json").json
    limited = cli("session-current", "--all-projects", "--limit", "1").out.splitlines()

    assert [line.split()[0] for line in lines[:-1]] == ["m1", "m2"]
    assert lines[-1] == "  (2 unsummarized messages)"
    assert [row["name"] for row in after["messages"]] == ["m2"]
    assert limited[-1] == "  (2 unsummarized messages, the first 1 shown)"


def test_session_current_is_the_expression_of_the_skill(cli):
    """The same messages in the same order as $not-summaried gives; nothing withheld among them."""
    for number, scopes in ((3, "app"), (1, "app,web"), (2, "app"), (4, "web"), (5, "app")):
        cli("knowledge-create", f"m{number}", "--tags", "message", "--scopes", scopes)
    cli("knowledge-create", "no-message", "--tags", "memory", "--scopes", "app")
    cli("knowledge-create", "s1", "--tags", "summary,summary 1", "--scopes", "app")
    cli("statement-create", "s1", "summary", "m2")
    cli("suppress", "m5")

    asked = cli("query", '["$not-summaried", "message", ["$contains", "scopes", "app"]]').json
    short = cli("session-current", "--scope", "app", "--json").json

    assert [row["name"] for row in asked] == ["m3", "m1"]
    assert short == {"total": 2, "messages": asked}
    assert cli("session-current").out.splitlines() == [
        *(f"  {row['name']}  {row['created_at']}" for row in asked),
        "  (2 unsummarized messages)",
    ]


def test_a_rule_made_with_knowledge_create_is_a_rule(cli):
    """The published skill makes rules that way, by their tags."""
    cli("knowledge-create", "rule:x", "-d", "Say why.", "--tags", "memory,rule")
    cli("knowledge-create", "wu-1", "-d", "A lesson.", "--tags", "memory,work-unit,x")

    names = [row["name"] for row in cli("rules", "--json").json]

    assert names == ["rule:x"]


def test_secrets_are_redacted(cli):
    """Also what an agent writes by hand."""
    secret = "ghp_" + "a1B2" * 9
    cli("knowledge-create", "x", "-d", f"token {secret}")

    assert secret not in cli("knowledge-get", "x").out
