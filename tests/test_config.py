"""Settings: three layers, one line written, nothing of anybody else's lost."""

from __future__ import annotations

import os
import stat

import pytest

from hypatia_mem.config import (
    SETTINGS,
    Settings,
    load_settings,
    read_settings,
    set_value,
    unset_value,
    write_hook_conf,
)
from hypatia_mem.errors import ConfigError


def hook_conf(home):
    return dict(line.split("=", 1) for line in (home / "hook.conf").read_text().splitlines())


def test_defaults_without_any_file(home):
    """A fresh home needs no file."""
    loaded = read_settings(home, {})

    assert loaded.settings == Settings()
    assert set(loaded.sources.values()) == {"default"}
    assert loaded.problems == ()


def test_every_setting_has_a_row_and_an_allowed_default():
    """The table and the dataclass say the same."""
    assert set(SETTINGS) == set(Settings.__slots__)
    for row in SETTINGS.values():
        assert row.parse(row.default) == row.default


def test_the_environment_overrides_the_file(home):
    """Default < file < environment, each named as the source."""
    (home / "config.toml").write_text("extract_every = 7\nbriefs = false\n")

    loaded = read_settings(home, {"HYPATIA_MEM_EXTRACT_EVERY": "9", "HYPATIA_MEM_HOME": "/x"})

    assert loaded.settings.extract_every == 9
    assert loaded.settings.briefs is False
    assert loaded.sources["extract_every"] == "env"
    assert loaded.sources["briefs"] == "file"
    assert loaded.sources["capture"] == "default"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("this is no toml", "config.toml cannot be read", id="no TOML"),
        pytest.param("extract_every = -1", "extract_every cannot be -1", id="out of range"),
        pytest.param('extract_every = "many"', "extract_every cannot be 'many'", id="wrong type"),
        pytest.param("extract_every = true", "extract_every cannot be True", id="a switch"),
        pytest.param("extract_evry = 5", "there is no setting", id="unknown"),
        pytest.param("brief_max_units = 10001", "brief_max_units cannot be", id="too long"),
    ],
)
def test_a_bad_file_is_a_problem_and_not_a_failure(home, text, words):
    """The worker drains turns whatever somebody typed; doctor says what is wrong."""
    (home / "config.toml").write_text(text)

    loaded = read_settings(home, {})

    assert loaded.settings == Settings()
    assert words in loaded.problems[0]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00" * 10])
def test_bytes_that_are_no_text(home, content):
    """Also then the defaults hold."""
    (home / "config.toml").write_bytes(content)

    assert load_settings(home, {}) == Settings()


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("triggers", "literal", "literal"),
        ("extract_every", "0", 0),
        ("briefs", "off", False),
        ("capture", "ON", True),
        ("brief_max_units", "10000", 10000),
    ],
)
def test_set_and_unset(home, key, text, value):
    """What is set is read, and the hook is told; unset goes back."""
    assert set_value(home, key, text) == value
    assert getattr(load_settings(home, {}), key) == value
    assert unset_value(home, key) is True
    assert load_settings(home, {}) == Settings()
    assert unset_value(home, key) is False


@pytest.mark.parametrize(
    ("key", "text", "hint"),
    [
        ("trigger", "off", "Did you mean triggers?"),
        ("extract-every", "5", "Did you mean extract_every"),
        ("nothing", "5", "Settings: triggers"),
        ("triggers", "loud", "Allowed: combined | literal | off."),
        ("extract_every", "1001", "Allowed: 0 to 1000."),
        ("briefs", "maybe", "Allowed: on | off."),
        ("extract_every", "１", "Allowed: 0 to 1000."),
    ],
)
def test_a_wrong_name_or_value_is_refused(home, key, text, hint):
    """With what would be right, and nothing is written."""
    with pytest.raises(ConfigError) as caught:
        set_value(home, key, text)

    assert hint in caught.value.hint
    assert not (home / "config.toml").exists()


BEFORE = """\
# my settings
extract_every = 7  # every seven
future_key = "kept"

[table]
extract_every = 3
"""


def test_only_one_line_changes(home):
    """Comments, other keys, other tables and the comment behind the value stay."""
    file = home / "config.toml"
    file.write_text(BEFORE)

    set_value(home, "extract_every", "9")
    set_value(home, "triggers", "off")

    assert file.read_text() == BEFORE.replace("= 7 ", "= 9 ").replace(
        "\n[table]", '\ntriggers = "off"\n[table]'
    )
    unset_value(home, "triggers")
    assert file.read_text() == BEFORE.replace("= 7 ", "= 9 ")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"extract_every" = 7\n', id="quoted key"),
        pytest.param("broken = [\n", id="no TOML"),
        pytest.param('x = """\nextract_every = 7\n"""\nextract_every = 8\n', id="in a text"),
    ],
)
def test_a_file_it_cannot_rewrite_is_left_alone(home, text):
    """Refused in a sentence that names the file; byte for byte as before."""
    file = home / "config.toml"
    file.write_text(text)

    with pytest.raises(ConfigError, match="nothing was changed") as caught:
        set_value(home, "extract_every", "9")

    assert str(file) in caught.value.hint
    assert file.read_text() == text


def test_a_link_stays_a_link(home, tmp_path):
    """Dotfiles are often linked."""
    real = tmp_path / "dotfiles.toml"
    real.write_text("extract_every = 7\n")
    (home / "config.toml").symlink_to(real)

    set_value(home, "extract_every", "9")

    assert (home / "config.toml").is_symlink()
    assert real.read_text() == "extract_every = 9\n"


def test_the_hook_is_told(home):
    """Interpreter, path and lines of other versions stay; the environment does not enter."""
    (home / "hook.conf").write_text("python=/usr/bin/python3\nworker_path=/site\nfuture=1\n")
    os.environ["HYPATIA_MEM_CAPTURE"] = "off"
    try:
        set_value(home, "triggers", "literal")
    finally:
        del os.environ["HYPATIA_MEM_CAPTURE"]

    assert hook_conf(home) == {
        "python": "/usr/bin/python3",
        "worker_path": "/site",
        "future": "1",
        "triggers": "literal",
        "extract_every": "5",
        "briefs": "on",
        "capture": "on",
    }


def test_the_installer_names_the_interpreter(home):
    """Then it replaces what stood there."""
    write_hook_conf(home, Settings(), python="/a", worker_path="/b")
    write_hook_conf(home, Settings(briefs=False), python="/c")

    assert hook_conf(home)["python"] == "/c"
    assert hook_conf(home)["worker_path"] == "/b"
    assert hook_conf(home)["briefs"] == "off"
    with pytest.raises(ConfigError, match="line break"):
        write_hook_conf(home, Settings(), python="/a\ncapture=off")


def test_the_files_are_private(home):
    """They lie in a private folder, but a backup may copy them."""
    set_value(home, "capture", "off")

    for name in ("config.toml", "hook.conf"):
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600
    assert [p.name for p in home.iterdir() if p.name.startswith(".")] == []


COSTLY = {
    "summary_by": "anthropic", "summary_model": "dear", "anthropic_key_file": "/p/.env",
    "anthropic_url": "http://elsewhere", "claude_command": "/p/claude",
    "model_day_cents": "9999", "model_call_cents": "9999", "model_day_calls": "9999",
    "model_calls_per_minute": "999",
}  # fmt: skip


@pytest.mark.parametrize("key", COSTLY)
def test_what_costs_money_or_sends_words_away_is_not_taken_from_the_environment(home, key):
    """A project that a session runs in can set the environment; the file is the person's own."""
    loaded = read_settings(home, {f"HYPATIA_MEM_{key.upper()}": COSTLY[key]})
    assert loaded.settings == Settings()
    assert "not taken from the environment" in loaded.problems[0]

    set_value(home, key, COSTLY[key])
    loaded = read_settings(home, {})
    assert str(getattr(loaded.settings, key)) == COSTLY[key]
    assert loaded.problems == ()


def test_the_environment_may_still_choose_what_costs_nothing(home):
    set_value(home, "summary_by", "anthropic")
    assert read_settings(home, {"HYPATIA_MEM_SUMMARY_BY": "off"}).settings.summary_by == "off"


@pytest.mark.parametrize(
    ("by", "handed"), [("extractive", False), ("anthropic", True), ("claude-cli", True)]
)
def test_the_worker_is_handed_a_key_only_for_a_model_that_was_chosen(home, by, handed):
    set_value(home, "summary_by", by)
    names = hook_conf(home).get("worker_env", "")
    assert ("ANTHROPIC_API_KEY" in names.split(",")) is handed
    assert "ANTHROPIC_BASE_URL" not in names


@pytest.mark.parametrize("text", ['a"b', "a\\b", "a\nb", "x" * 5000])
def test_a_text_is_one_plain_line(home, text):
    with pytest.raises(ConfigError, match="anthropic_url cannot be"):
        set_value(home, "anthropic_url", text)
