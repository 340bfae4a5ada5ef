"""A settings file is edited without touching what is not ours, and given back byte for byte."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hypatia_mem.errors import InstallError
from hypatia_mem.install import settings, settingsfile
from hypatia_mem.install.plan import Plan

EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
COMMAND = "test -f '/p/skills/hypatia-memory/hooks/hook.py'"
HOOKS = {
    event: [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 5}]}] for event in EVENTS
}
OTHERS = """{
  "hooks": {
    "Stop": [
      {"matcher": "", "hooks": [{"type": "command", "command": "notify-send done"}]}
    ],
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard"}]}]
  },
  "model": "opus"
}
"""

KINDS = [
    pytest.param(b"{}", id="empty-object"),
    pytest.param(b"", id="empty-file"),
    pytest.param(b" \n\n", id="blank-file"),
    pytest.param(b"{ }", id="spaced-object"),
    pytest.param(b"{\n}\n", id="object-over-two-lines"),
    pytest.param(b'{"model":"opus","n":1.50e0}', id="one-line"),
    pytest.param(b'{\n  "model": "opus"\n}', id="two-blanks-no-final-newline"),
    pytest.param(b'{\n    "model": "opus",\n    "x": [1, 2]\n}\n', id="four-blanks"),
    pytest.param(b'{\n\t"model": "opus"\n}\n', id="tabs"),
    pytest.param(b'{\r\n  "model": "opus"\r\n}\r\n', id="crlf"),
    pytest.param(b'\xef\xbb\xbf{\n  "model": "opus"\n}\n', id="byte-order-mark"),
    pytest.param(b"\xef\xbb\xbf", id="byte-order-mark-alone"),
    pytest.param(OTHERS.encode(), id="other-peoples-hooks"),
    pytest.param(b'{\n  "hooks": {}\n}\n', id="hooks-empty"),
    pytest.param(b'{\n  "hooks": {"Stop": []},\n  "z": 1\n}\n', id="event-empty"),
    pytest.param(
        b'{"zeta": 1, "alpha": {"b": [], "a": {}}, "\\u00e9": "\\u65e5"}', id="order-escapes"
    ),
    pytest.param('{\n  "env": {"NAME": "日本 👍"}\n}\n'.encode(), id="unicode"),
    pytest.param(b'{"hooks": {"Stop": []}, "model": 1, "hooks": {"Stop": [ ]}}', id="doubled-keys"),
    pytest.param(
        b'{\n  "a": "// not a comment",\n  "b": "/* nor this */"\n}', id="slashes-in-text"
    ),
]
REFUSED = [
    pytest.param(b'{\n  // mine\n  "a": 1\n}', "comments", id="line-comment"),
    pytest.param(b'{"a": 1 /* mine */}', "comments", id="block-comment"),
    pytest.param(b'{"a": 1,}', "comments or trailing commas", id="trailing-comma"),
    pytest.param(b'{"a": ', "not valid JSON", id="broken"),
    pytest.param(b'{"a": NaN}', "not valid JSON", id="not-a-number"),
    pytest.param(b"[1]", "no JSON object", id="list"),
    pytest.param(b"null", "no JSON object", id="null"),
    pytest.param(b'{"hooks": []}', '"hooks" that is not an object', id="hooks-list"),
    pytest.param(b'{"hooks": {"Stop": {}}}', '"hooks.Stop" that is not a list', id="event-object"),
    pytest.param('{"a": 1}'.encode("utf-16"), "not UTF-8", id="utf-16"),
    pytest.param(b'{"a": "\xff"}', "not UTF-8", id="latin-1"),
    pytest.param(b"[" * 100_000, "not valid JSON", id="deep"),
]


def merge(path: Path, memo: dict | None = None) -> dict:
    plan = Plan()
    fresh = settingsfile.plan_merge(plan, path, HOOKS, memo)
    plan.apply()
    return fresh


def unmerge(path: Path, memo: dict | None) -> None:
    plan = Plan()
    settingsfile.plan_unmerge(plan, path, memo)
    plan.apply()


def parsed(path: Path) -> dict:
    return json.loads(path.read_text("utf-8-sig"))


def ours_in(path: Path) -> list[str]:
    hooks = parsed(path).get("hooks", {})
    return [
        event
        for event, groups in hooks.items()
        for group in groups
        for handler in group["hooks"]
        if handler.get("command") == COMMAND
    ]


@pytest.mark.parametrize("before", KINDS)
def test_merge_adds_every_event_and_unmerge_restores_every_byte(tmp_path, before):
    """The bytes a person had before are the bytes they have afterwards."""
    path = tmp_path / "settings.json"
    path.write_bytes(before)
    memo = merge(path)
    assert sorted(EVENTS) == sorted(ours_in(path))
    unmerge(path, memo)
    assert before == path.read_bytes()
    assert [one.name for one in tmp_path.glob("*settings*")] == ["settings.json"]


@pytest.mark.parametrize("before", KINDS)
def test_merging_twice_changes_nothing(tmp_path, before):
    path = tmp_path / "settings.json"
    path.write_bytes(before)
    memo = merge(path)
    once = path.read_bytes()
    again = merge(path, memo)
    assert once == path.read_bytes()
    assert memo == again
    assert once == (path.write_bytes(once), merge(path, None), path.read_bytes())[2]


@pytest.mark.parametrize("before", KINDS)
def test_everything_else_keeps_its_bytes_and_order(tmp_path, before):
    """What was there is there still, in the same order, spelled the same way."""
    path = tmp_path / "settings.json"
    path.write_bytes(before)
    merge(path)
    after = path.read_bytes()
    kept = iter(after)
    assert all(byte in kept for byte in before), "the old bytes are a subsequence of the new ones"
    if b"\r\n" in before:
        assert b"\n" not in after.replace(b"\r\n", b"")
    assert before.startswith(b"\xef\xbb\xbf") == after.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize(("before", "sentence"), REFUSED)
def test_a_file_that_cannot_be_edited_safely_is_refused_and_kept(tmp_path, before, sentence):
    path = tmp_path / "settings.json"
    path.write_bytes(before)
    with pytest.raises(InstallError, match=sentence) as caught:
        merge(path)
    assert before == path.read_bytes()
    assert str(path) in caught.value.message
    assert COMMAND in caught.value.hint


def test_the_lines_to_paste_are_the_hooks():
    """A person who pastes the hint between the braces of their file has the hooks."""
    assert json.loads("{" + settings.paste_lines(HOOKS) + "}") == {"hooks": HOOKS}


def test_a_file_that_did_not_exist_is_gone_again(tmp_path):
    path = tmp_path / "new" / "settings.json"
    memo = merge(path)
    assert sorted(EVENTS) == sorted(ours_in(path))
    unmerge(path, memo)
    assert not path.exists()


def test_what_its_owner_added_meanwhile_stays(tmp_path):
    """Ours are taken out, one by one; the new key and the new hook stay."""
    path = tmp_path / "settings.json"
    path.write_text(OTHERS)
    memo = merge(path)
    changed = parsed(path)
    changed["theme"] = "dark"
    changed["hooks"]["Stop"].insert(0, {"hooks": [{"type": "command", "command": "later"}]})
    changed["hooks"]["Stop"][-1]["hooks"].append({"type": "command", "command": "joined"})
    path.write_text(json.dumps(changed, indent=2))
    unmerge(path, memo)
    left = parsed(path)
    assert ours_in(path) == []
    assert left["theme"] == "dark"
    commands = [h["command"] for g in left["hooks"]["Stop"] for h in g["hooks"]]
    assert commands == ["later", "notify-send done", "joined"]
    assert sorted(left["hooks"]) == ["PreToolUse", "Stop"]


def test_a_file_made_by_us_and_edited_since_is_kept(tmp_path):
    path = tmp_path / "settings.json"
    memo = merge(path)
    changed = {"model": "opus", **parsed(path)}
    path.write_text(json.dumps(changed))
    unmerge(path, memo)
    assert parsed(path) == {"model": "opus"}


def test_without_a_memo_only_our_entries_go(tmp_path):
    """The record may be lost; what is ours is still told from what is not."""
    path = tmp_path / "settings.json"
    path.write_text(OTHERS)
    merge(path)
    unmerge(path, None)
    assert path.read_text() == OTHERS


def test_a_hook_that_only_looks_like_ours_stays(tmp_path):
    path = tmp_path / "settings.json"
    lookalike = '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"hypatia-memory.sh"}]}]}}'
    path.write_text(lookalike)
    unmerge(path, None)
    assert lookalike == path.read_text()
    assert not settingsfile.has_ours(path)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_symlink_stays_a_link_and_its_target_is_edited(tmp_path):
    target = tmp_path / "dotfiles" / "claude.json"
    target.parent.mkdir()
    target.write_bytes(b'{"model": "opus"}\n')
    link = tmp_path / "settings.json"
    link.symlink_to(target)
    memo = merge(link)
    assert link.is_symlink()
    assert sorted(EVENTS) == sorted(ours_in(target))
    unmerge(link, memo)
    assert link.is_symlink()
    assert target.read_bytes() == b'{"model": "opus"}\n'
    assert [one.name for one in target.parent.iterdir()] == ["claude.json"]


def test_a_read_only_file_is_refused_even_for_root(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b"{}")
    path.chmod(0o444)
    with pytest.raises(InstallError, match="read-only"):
        merge(path)
    assert path.read_bytes() == b"{}"


@pytest.mark.skipif(os.name == "nt", reason="modes are another thing there")
def test_the_mode_is_kept_and_the_copy_has_it_too(tmp_path):
    """A file that only its owner may read stays so, and so does the copy of it."""
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"env": {"TOKEN": "x"}}')
    path.chmod(0o600)
    memo = merge(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(memo["backup"]).stat().st_mode) == 0o600
    assert Path(memo["backup"]).read_bytes() == b'{"env": {"TOKEN": "x"}}'


def test_what_is_remembered_holds_nothing_of_the_file(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"env": {"TOKEN": "planted-secret-value"}}')
    assert "planted-secret-value" not in json.dumps(merge(path))


def test_a_hard_link_is_not_split(tmp_path):
    path, other = tmp_path / "settings.json", tmp_path / "other.json"
    path.write_bytes(b"{}")
    os.link(path, other)
    memo = merge(path)
    assert path.read_bytes() == other.read_bytes() != b"{}"
    unmerge(path, memo)
    assert other.read_bytes() == b"{}"


KEYS = st.sampled_from(["model", "hooks2", "é", "a b", "Stop"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
GROUPS = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.just({"type": "command", "command": "x"}), max_size=2)}
    ),
    max_size=2,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=3).flatmap(
    lambda body: (
        st.dictionaries(st.sampled_from(EVENTS), GROUPS, max_size=3).map(
            lambda hooks: {**body, "hooks": hooks}
        )
        | st.just(body)
    )
)


@pytest.mark.deep
@hypothesis_settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    DOCUMENTS,
    st.sampled_from([None, 1, 2, "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.booleans(),
)
def test_any_settings_file_survives_the_round_trip(document, indent, newline, mark, ascii_only):
    """Insert, look, take our slices out: the text as before; our entries apart, the value too."""
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).replace("\n", newline)
    text = ("\ufeff" if mark else "") + text + newline
    text = settings.read(text.encode(), "settings.json", HOOKS)
    edited = settings.insert(text, HOOKS)
    assert text == edited.without()
    value = json.loads(edited.text.removeprefix("\ufeff"))
    for event in EVENTS:
        had = document.get("hooks", {}).get(event, [])
        assert [*had, *HOOKS[event]] == value["hooks"][event]
    left = json.loads(settings.remove(edited.text).removeprefix("\ufeff"))
    emptied = {k: v for k, v in document.get("hooks", {}).items() if v or k not in EVENTS}
    assert emptied == {k: v for k, v in left.pop("hooks", {}).items() if v}
    assert {k: v for k, v in document.items() if k != "hooks"} == left
