"""``tidy``: says it first, does it when told to."""

from __future__ import annotations


def test_it_is_said_first_then_done_then_there_is_nothing_left(cli):
    cli("remember", "never use print() for progress, use the logger from app.log", "--kind", "rule")
    cli(
        "knowledge-create", "wu-2026-11-30-loader", "--tags", "memory,work-unit",
        "-d", "## Lesson\n- never use print() for progress, use the logger from app.log instead",
    )  # fmt: skip
    said = cli("tidy")
    assert said.out.count("relates_to") == 1
    assert "1 could be tied: hypatia-mem tidy --apply" in said.out
    assert "1 could be tied" in cli("tidy").out
    assert cli("tidy", "--apply", "--json").json["ties"][0]["new"] == "wu-2026-11-30-loader"
    assert "Nothing new" in cli("tidy").out
    found = cli("query", '["$statement", ["$triple", "wu-2026-11-30-loader", "relates_to", "$*"]]')
    assert found.code == 0
    assert "relates_to" in found.out
