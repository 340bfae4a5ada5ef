"""Presets: what was saved comes back, what came from elsewhere is believed as little as it should."""

from __future__ import annotations

import json
import stat

import pytest

from hypatia_mem.cli.app import run as run_cli
from hypatia_mem.config import SETTINGS, Settings, load_settings, set_value

KEY = "sk-ant-" + "api03-" + "Aa1Bb2Cc3Dd4" * 6


@pytest.fixture
def command(home, capsys):
    def call(*arguments):
        capsys.readouterr()
        code = run_cli(["preset", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_what_was_saved_comes_back_as_it_was_and_what_was_before_is_kept(home, command):
    for key, value in (("summary_words", "400"), ("briefs", "off"), ("triggers", "literal")):
        set_value(home, key, value)
    saved, text = load_settings(home, {}), (home / "config.toml").read_text()
    assert command("save", "quiet")[1] == "Kept: quiet (3 settings)\n"
    set_value(home, "summary_words", "900")
    set_value(home, "cascade_batch", "5")
    changed = load_settings(home, {})
    told = command("use", "quiet", "--dry-run")[1]
    assert "summary_words  900 -> 400" in told
    assert "cascade_batch  5 -> 16 (default)" in told
    assert load_settings(home, {}) == changed, "only looked at"
    assert command("use", "quiet")[0] == 0
    assert load_settings(home, {}) == saved
    assert (home / "config.toml").read_text() == text
    assert command("use", "quiet")[1] == "Nothing changes: it is what is in force.\n"
    command("use", "previous")
    assert load_settings(home, {}) == changed


def test_the_hook_follows(home, command):
    command("save", "plain")
    set_value(home, "triggers", "off")
    assert "triggers=off" in (home / "hook.conf").read_text()
    command("use", "plain")
    assert "triggers=combined" in (home / "hook.conf").read_text()


def test_every_setting_but_the_personal_ones_goes_there_and_back(home, command):
    """Each at a value that is not its default."""
    other = {"choice": lambda row: next(c for c in row.choices if c != row.default),
             "switch": lambda row: "off" if row.default else "on",
             "text": lambda row: f"my-{row.key}",
             "whole": lambda row: str(row.least if row.least != row.default else row.least + 1)}  # fmt: skip
    for row in SETTINGS.values():
        set_value(home, row.key, other[row.kind](row))
    saved = load_settings(home, {})
    assert all(getattr(saved, key) != getattr(Settings(), key) for key in SETTINGS)
    command("save", "all")
    command("save", "all", "--replace")
    (home / "config.toml").write_text("")
    command("use", "all")
    back = load_settings(home, {})
    lost = {key for key in SETTINGS if getattr(back, key) != getattr(saved, key)}
    assert lost == {"anthropic_key_file", "anthropic_url", "claude_command"}


def test_no_secret_and_nobodys_key_stands_in_one(home, command):
    set_value(home, "anthropic_key_file", "/home/me/key")
    set_value(home, "summary_model", KEY)  # pasted into the wrong one
    set_value(home, "summary_words", "300")
    command("save", "mine")
    file = home / "presets" / "mine.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert "summary_words = 300" in text
    assert KEY not in text
    assert "key_file" not in text
    command("use", "mine")
    assert load_settings(home, {}).anthropic_key_file == "/home/me/key", "it stays as it is"


FROM_ELSEWHERE = f"""
summary_words = 250
summary_floor = "many"
cascade_batch = 12.5
triggers = "loud"
shoe_size = 43
summary_by = "anthropic"
model_day_cents = 900000
anthropic_url = "https://elsewhere.example"
claude_command = "/tmp/claude"
summary_model = "{KEY}"
briefs = false

[model_windows]
x = 3
"""


def test_of_what_came_from_elsewhere_only_what_is_harmless_and_allowed_is_kept(
    home, command, tmp_path
):
    (tmp_path / "theirs.toml").write_text(FROM_ELSEWHERE)
    code, out, err = command("import", str(tmp_path / "theirs.toml"), "--json")
    assert code == 0
    row = json.loads(out)
    assert row["values"] == {"summary_words": 250, "briefs": False}
    assert len(row["left_out"]) == 10
    for said in (
        "summary_floor cannot be 'many'", "no setting 'shoe_size'", "summary_by can cost money",
        "model_day_cents can cost money", "anthropic_url says whom you ask",
        "summary_model looks like a secret", "no setting 'model_windows'",
    ):  # fmt: skip
        assert said in err
    assert KEY not in out + err
    assert load_settings(home, {}) == Settings(), "it is only kept"
    command("use", "theirs")
    assert load_settings(home, {}) == Settings(summary_words=250, briefs=False)


def test_what_costs_money_may_stand_in_ones_own(home, command):
    set_value(home, "summary_by", "anthropic")
    set_value(home, "model_day_cents", "70")
    command("save", "dear")
    set_value(home, "summary_by", "extractive")
    command("use", "dear")
    assert load_settings(home, {}).summary_by == "anthropic"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("use", "nothing"), 1, "there is no preset 'nothing'"),
        (("show", "nothing"), 1, "there is no preset"),
        (("drop", "nothing"), 1, "there is no preset"),
        (("save", "../evil"), 2, "cannot be the name"),
        (("save", "taken"), 2, "there is a preset taken already"),
        (("import", "no-such-file.toml"), 1, "cannot be read"),
        (("import", "BROKEN"), 2, "is not TOML"),
        (("import", "LARGE"), 2, "larger than"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    home, command, tmp_path, arguments, code, says
):
    command("save", "taken")
    files = {"BROKEN": "= = =", "LARGE": "x" * 70_000}
    for name, text in files.items():
        (tmp_path / name.lower()).write_text(text)
    asked = [str(tmp_path / one.lower()) if one in files else one for one in arguments]
    told = command(*asked)
    assert (told[0], says in told[2]) == (code, True)
    assert json.loads(command("list", "--json")[1]) == [
        {"preset": "taken", "values": {}, "left_out": []}
    ]


def test_a_config_that_cannot_be_rewritten_is_left_alone(home, command):
    set_value(home, "summary_words", "300")
    set_value(home, "cascade_batch", "5")
    command("save", "mine")
    broken = 'cascade_batch = 9\n"summary_words" = 7\n'
    (home / "config.toml").write_text(broken)
    code, _, err = command("use", "mine")
    assert (code, "nothing was changed" in err) == (2, True)
    assert (home / "config.toml").read_text() == broken


def test_one_is_taken_away_on_purpose(home, command):
    command("save", "old")
    assert command("drop", "old", "--dry-run")[1] == "Would be removed: old\n"
    assert "old" in command("list")[1]
    command("drop", "old")
    assert command("list")[1] == "There are none.\n"


def test_a_broken_preset_hides_no_other(home, command):
    command("save", "quiet")
    (home / "presets" / "bad.toml").write_bytes(b"\xff\xfe")
    code, out, err = command("list", "--json")
    assert code == 0
    rows = {row["preset"]: row["left_out"] for row in json.loads(out)}
    assert rows["quiet"] == []
    assert "is not TOML" in rows["bad"][0]
    assert "is not TOML" in err
