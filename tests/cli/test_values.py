"""What stands on the command line, in the published forms."""

from __future__ import annotations

import io
import sys

import pytest

from hypatia_mem.cli import values
from hypatia_mem.cli.group import _shielded
from hypatia_mem.errors import UsageError


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        pytest.param("p", ("p",), id="one"),
        pytest.param("p,q", ("p", "q"), id="two"),
        pytest.param("p,", ("p", ""), id="a comma at the very end adds the global scope"),
        pytest.param(",", ("",), id="only the global scope"),
        pytest.param("", ("",), id="the documented way to say global"),
        pytest.param("p, ", ("p",), id="a blank after the comma is not the very end"),
        pytest.param(" p , q ", ("p", "q"), id="trimmed"),
        pytest.param("a,,b", ("a", "b"), id="blanks dropped"),
        pytest.param(",p", ("p",), id="a comma at the beginning adds nothing"),
        pytest.param("p,p,", ("p", ""), id="each once"),
        pytest.param("my app,日本", ("my app", "日本"), id="blanks inside and any script"),
    ],
)
def test_scopes(text, scopes):
    """The quirks are published and depended on; the empty text means global, as documented."""
    assert scopes == values.parse_scopes(text)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("a,b", ("a", "b")),
        ("a,,b", ("a", "", "b")),
        ("summary,summary 1", ("summary", "summary 1")),
        ("memory, rule", ("memory", "rule")),
        ("", ()),
    ],
)
def test_tags(text, tags):
    """Tags keep their blanks; an empty text clears."""
    assert tags == values.parse_tags(text)


def test_statement_synonyms_in_both_vocabularies():
    """Older skills say head, relation, tail; what is stored says subject, predicate, object."""
    text = '{"head": ["Al"], "tail": ["Robert"], "object": ["Bobby"]}'

    assert values.parse_synonyms(text) == {"subject": ["Al"], "object": ["Robert", "Bobby"]}
    assert values.parse_synonyms("") is None


@pytest.mark.parametrize("text", ["Al", '["Al"]', '{"friend": ["Al"]}', '{"subject": "Al"}'])
def test_statement_synonyms_refused(text):
    """With an example of the right form."""
    with pytest.raises(UsageError) as caught:
        values.parse_synonyms(text)

    assert "Example: --synonyms" in caught.value.hint


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b"plain\n", "plain", id="the shell's newline goes"),
        pytest.param(b"two\n\n", "two\n", id="only one of them"),
        pytest.param(b"dos\r\n", "dos", id="CRLF"),
        pytest.param(b"\xef\xbb\xbfbom", "bom", id="BOM"),
        pytest.param("- list\n  日本 🎉".encode(), "- list\n  日本 🎉", id="any text"),
    ],
)
def test_text_from_standard_input_and_from_a_file(data, text, tmp_path, monkeypatch):
    """Content need not travel in argv, which is short and visible to all."""
    file = tmp_path / "text.md"
    file.write_bytes(data)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "ascii"))

    assert text == values.read_text(f"@{file}", "--data")
    assert text == values.read_text("-", "--data")


@pytest.mark.parametrize(
    ("value", "text"), [("plain", "plain"), ("@@alice", "@alice"), ("- item", "- item"), ("", "")]
)
def test_text_as_it_stands(value, text):
    """An at-sign is written twice."""
    assert text == values.read_text(value, "--data")


def test_a_missing_file_teaches_the_escape():
    """Text that merely begins with an at-sign is the likely mistake."""
    with pytest.raises(UsageError, match="cannot be read") as caught:
        values.read_text("@alice said", "--data")

    assert "write it twice: '@@alice said'" in caught.value.hint


def test_text_that_is_no_utf8_is_refused(tmp_path):
    """With the byte's place."""
    file = tmp_path / "latin1"
    file.write_bytes("é".encode("latin-1"))

    with pytest.raises(UsageError, match="not valid UTF-8 at byte 0"):
        values.read_text(f"@{file}", "--data")
    with pytest.raises(UsageError, match="not valid UTF-8"):
        values.checked("\udce9", "the name")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        pytest.param(["- never do it"], ["--", "- never do it"], id="a list item"),
        pytest.param(
            ["--kind", "rule", "-- why not"], ["--kind", "rule", "--", "-- why not"], id="after"
        ),
        pytest.param(["- a b", "--json"], ["--json", "--", "- a b"], id="before an option"),
        pytest.param(["-d", "- a b", "x"], ["-d", "- a b", "x"], id="an option's own value"),
        pytest.param(["--data=- a b", "x"], ["--data=- a b", "x"], id="with an equals sign"),
        pytest.param(["--jsn", "x"], ["--jsn", "x"], id="a misspelt option stays one"),
        pytest.param(["-", "--", "- a b"], ["-", "--", "- a b"], id="shielded already"),
    ],
)
def test_words_that_cannot_be_options_are_values(args, expected):
    """A remembered line often begins with a dash."""
    assert expected == _shielded(args, {"-d", "--data", "--kind"})
