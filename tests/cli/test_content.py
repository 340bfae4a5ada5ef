"""Content by every way in and on every command that takes it; names that look like options."""

from __future__ import annotations

import pytest

LONG = "a line of words\n" * 20_000  # beyond what one argument of a command line may hold


def created(cli, *content, stdin=b""):
    assert cli("knowledge-create", "x", *content, stdin=stdin).code == 0
    return cli("knowledge-get", "x").json["content"]["data"]


def updated(cli, *content, stdin=b""):
    cli("knowledge-create", "x", "-d", "before")
    assert cli("knowledge-update", "x", *content, stdin=stdin).code == 0
    return cli("knowledge-get", "x").json["content"]["data"]


def stated(cli, *content, stdin=b""):
    assert cli("statement-create", "a", "b", "c", *content, stdin=stdin).code == 0
    [row] = cli("query", '["$statement"]').json
    return row["content"]["data"]


def remembered(cli, *content, stdin=b""):
    words = [word.removeprefix("--data=") for word in content if word not in ("-d", "--data")]
    assert cli("remember", *words, stdin=stdin).code == 0
    [row] = cli("rules", "--json").json
    return row["content"]


COMMANDS = [created, updated, stated, remembered]


AS_IT_STANDS = [
    (["-d", "- a\n- b"], "- a\n- b"),
    (["--data=- x"], "- x"),
    (["-d", "plain"], "plain"),
    (["--data", "- item"], "- item"),
    (["-d", "--- # front matter"], "--- # front matter"),
    (["-d", "@@home"], "@home"),
    (["-d", "日本 🎉 'q' \"d\" $x `y` \\n"], "日本 🎉 'q' \"d\" $x `y` \\n"),
]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "content", "stored"),
    [
        (command, *case)
        for command in COMMANDS
        for case in (AS_IT_STANDS if command is created else AS_IT_STANDS[:2])
    ],
)
def test_content_as_it_stands(cli, command, content, stored):
    """Lists, rules and quotes: the shell's business is over when the words arrive."""
    assert command(cli, *content) == stored


@pytest.mark.deep
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("way", ["standard input", "file"])
def test_content_that_is_no_argument(cli, command, way, tmp_path):
    """However long; one line end at the end belongs to the shell."""
    file = tmp_path / "content.md"
    file.write_text(LONG)
    content, stdin = ("-", LONG.encode()) if way == "standard input" else (f"@{file}", b"")

    assert command(cli, "-d", content, stdin=stdin).rstrip() == LONG.rstrip()


@pytest.mark.parametrize("value", ["@/nowhere/at all", "@", "@\0"])
def test_a_file_that_cannot_be_read(cli, value):
    """Nothing is stored under the words that named it."""
    done = cli("knowledge-create", "x", "-d", value)

    assert done.code == 2
    assert "write it twice" in done.err or "NUL" in done.err
    assert cli("query", '["$knowledge"]').out == "No results found.\n"


@pytest.mark.deep
def test_names_that_begin_with_a_dash(cli):
    """After ``--`` every word is a value, whatever it looks like; options come before."""
    assert cli("knowledge-create", "-d", "x", "--", "-name").out == "Created knowledge: -name\n"
    assert cli("knowledge-create", "--", "--help").out == "Created knowledge: --help\n"
    assert cli("knowledge-create", "- a b").out == "Created knowledge: - a b\n"
    assert cli("knowledge-get", "--", "-name").json["content"]["data"] == "x"
    assert cli("knowledge-update", "-d", "y", "--", "-name").code == 0
    assert cli("statement-create", "--", "-name", "-is", "--help").code == 0
    [row] = cli("query", '["$statement"]').json
    assert (row["subject"], row["predicate"], row["object"]) == ("-name", "is", "--help")
    assert cli("statement-delete", "--", "-name", "-is", "--help").code == 0
    assert cli("knowledge-delete", "--", "-name").out == "Deleted knowledge: -name\n"
    assert cli("search", "--", "--help").code == 0
    assert cli("scope", "exists", "--", "-x").code == 1
    assert cli("archive-get", "--", "-x").out.startswith("Archive '-x' not found")


def test_a_misspelt_option_is_not_taken_for_a_name(cli):
    """The twin: without ``--`` what looks like an option has to be one."""
    for arguments in (["--nmae"], ["x", "--taggs", "y"], ["-x"]):
        done = cli("knowledge-create", *arguments)
        assert (done.code, "No such option" in done.err) == (2, True)
