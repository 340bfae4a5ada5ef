"""Reading the client's transcript: the messages a person would count, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hypatia_mem.memory.intake.blocks import PART_CHARS
from hypatia_mem.memory.intake.lines import Lines, read_lines
from hypatia_mem.memory.intake.transcript import Folded, fold
from hypatia_mem.model import Message

FIXTURES = Path(__file__).parents[1] / "fixtures" / "transcripts"
NAMES = sorted(path.name[: -len(".expected.json")] for path in FIXTURES.glob("*.expected.json"))
INTERRUPT = "[Request interrupted by user]"
PRINTED = "<local-command-stdout>x</local-command-stdout>"
REMINDER = "<system-reminder>x</system-reminder>"
HOOK_SHOWN_ONLY = {"blocked": [["user", "forbidden"]]}


def lines_of(name: str) -> Lines:
    return read_lines(FIXTURES / f"{name}.jsonl", 0, 1 << 30)


def folded(name: str, **options: Any) -> Folded:
    lines = lines_of(name)
    return fold(lines.lines, end=lines.next_offset, flush=True, **options)


def fold_rows(*rows: dict[str, Any], flush: bool = True) -> Folded:
    return fold([(1 + n, row) for n, row in enumerate(rows)], end=len(rows) + 1, flush=flush)


def user(text: Any, **more: Any) -> dict[str, Any]:
    base = {"type": "user", "uuid": f"u{abs(hash(str(text))) % 10**9}", "promptId": "p"}
    stamp = {"timestamp": "2027-03-01T09:00:00.000Z", "message": {"role": "user", "content": text}}
    return {**base, **stamp, **more}


def answer(*blocks: dict[str, Any], id: str = "m1", **more: Any) -> dict[str, Any]:
    message = {"id": id, "role": "assistant", "model": "claude-test-1", "content": list(blocks)}
    return {"type": "assistant", "uuid": f"a-{id}", "message": message, **more}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def said(messages: Iterable[Message]) -> list[list[str]]:
    return [[one.role, one.text] for one in messages]


def by_text(result: Folded, wanted: str) -> Message:
    return next(one for one in result.messages if one.text == wanted)


class TestMessages:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_transcript_holds_what_a_person_would_count(self, name: str) -> None:
        expected = json.loads((FIXTURES / f"{name}.expected.json").read_text())
        hidden = HOOK_SHOWN_ONLY.get(name, [])
        before = said(folded("rewound").messages) if name == "forked" else []

        result = folded(name)

        assert said(result.messages) == before + [one for one in expected if one not in hidden]
        assert len({one.uuid for one in result.messages}) == len(result.messages)

    @pytest.mark.parametrize("name", NAMES)
    def test_any_cut_gives_the_same_messages(self, name: str) -> None:
        lines = lines_of(name)
        offsets = [at for at, _ in lines.lines] + [lines.next_offset]
        whole = folded(name)
        for cut in range(1, len(offsets)):
            for carried in (False, True):
                first = fold(lines.lines[:cut], end=offsets[cut])
                start = offsets[cut] if carried else first.checkpoint
                rest = [(at, line) for at, line in lines.lines if at >= start]
                carry = first.carry if carried else None
                again = fold(rest, carry, end=lines.next_offset, flush=True)

                seen = {one.uuid: one for one in (*first.messages, *again.messages)}

                assert [(m.uuid, m.role, m.text, m.parts, m.flags) for m in seen.values()] == [
                    (m.uuid, m.role, m.text, m.parts, m.flags) for m in whole.messages
                ]

    @pytest.mark.parametrize(
        ("row", "kept"),
        [
            (user("hello"), "hello"),
            (user("hello", isMeta=True), None),
            (user("hello", isSidechain=True), None),
            (user("hello", isCompactSummary=True), None),
            (user("hello", toolUseResult={"stdout": "x"}), None),
            (user([{"type": "tool_result", "tool_use_id": "c", "content": "x"}]), None),
            (user(INTERRUPT), None),
            (user(INTERRUPT, promptSource="typed"), INTERRUPT),
            (user("[Request interrupted by user] why?"), "[Request interrupted by user] why?"),
            (user(PRINTED), None),
            (user(PRINTED, promptSource="sdk"), PRINTED),
            (user(REMINDER), None),
            (user(REMINDER + " go"), REMINDER + " go"),
            (user("<task-notification>x</task-notification>"), None),
            (user("<task-notification>x", origin={"kind": "human"}), "<task-notification>x"),
            (user("done", origin={"kind": "task-notification"}), None),
            (user(" \n\t"), None),
            (user([text("two"), text("texts")]), "two\ntexts"),
            (user(7), None),
            (answer(text("hi")), "hi"),
            (answer(text(" \n")), None),
            (answer(text("hi"), isSidechain=True), None),
            (answer(text("API Error: 500"), isApiErrorMessage=True), None),
            (answer({"type": "thinking", "thinking": "hm"}), None),
            (answer(text("\n\nhi\n")), "hi"),
        ],
    )  # fmt: skip
    def test_what_is_a_message(self, row: dict[str, Any], kept: str | None) -> None:
        assert [one.text for one in fold_rows(row).messages] == ([] if kept is None else [kept])

    def test_a_command_counts_when_the_model_answers_it(self) -> None:
        typed = user("<command-name>/x</command-name><command-args>a b</command-args>")
        printed = user("<local-command-stdout>x</local-command-stdout>")
        body = user("Do x with a b", isMeta=True)

        assert fold_rows(typed, printed).messages == ()
        assert [m.text for m in fold_rows(typed, body).messages] == ["/x a b"]
        assert [m.text for m in fold_rows(typed, answer(text("ok"))).messages] == ["/x a b", "ok"]
        caveat = user("<local-command-caveat>x</local-command-caveat>", isMeta=True)
        assert [m.text for m in fold_rows(caveat, typed, answer(text("ok"))).messages] == ["ok"]
        assert fold_rows(typed, flush=False).checkpoint == 1  # undecided: read again

    def test_a_line_without_a_usable_time_has_its_predecessors(self) -> None:
        late = answer(text("hi"), timestamp="yesterday")
        first, second = fold_rows(user("hello"), late).messages
        assert first.at == second.at == datetime(2027, 3, 1, 9)

    def test_nonsense_in_a_line_is_no_reason_to_fail(self) -> None:
        for broken in (
            {},
            {"type": "user"},
            {"type": "user", "message": []},
            {"type": "assistant", "message": {"content": [1, None, {"type": []}]}},
            {"type": "attachment", "attachment": {"type": "queued_command", "prompt": {"a": 1}}},
            {"type": "system", "subtype": ["x"]},
            {"type": ["user"], "timestamp": {"a": 1}, "forkedFrom": "x"},
            {"type": "user", "uuid": 1, "message": {"content": [{"type": "image", "source": 3}]}},
        ):
            result = fold_rows(broken, user("hello"))
            assert result.messages[-1].text == "hello"


class TestParts:
    def test_calls_and_results_belong_to_the_answer_that_made_them(self) -> None:
        parts = by_text(folded("tools"), "Let me look.").parts
        assert [part["type"] for part in parts] == [
            "reasoning", "tool_use", "tool_use", "tool_result", "tool_result", "usage",
        ]  # fmt: skip
        assert (parts[3]["id"], parts[3]["is_error"]) == ("c2", True)
        assert (parts[4]["text"], parts[4]["length"]) == ("roses\nmint", 10)

    def test_a_response_without_text_lends_its_parts_to_the_next_one(self) -> None:
        parts = by_text(folded("tools"), "All watered.").parts
        assert [part["type"] for part in parts] == [
            "tool_use", "tool_result", "image", "usage", "reasoning", "usage",
        ]  # fmt: skip
        assert parts[0]["name"] == "Read"

    def test_a_turn_without_any_text_keeps_its_parts_with_the_prompt(self) -> None:
        prompt = by_text(folded("tools"), "quiet")
        assert prompt.flags == ("unanswered",)
        said = [part["type"] for part in prompt.parts if part["type"] != "usage"]
        assert said == ["tool_use", "tool_result"]

    def test_pictures_are_kept_by_digest_and_size(self) -> None:
        (part,) = by_text(folded("odd"), "[image]").parts
        assert part == {
            "type": "image", "media_type": "image/png", "bytes": 8, "digest": part["digest"],
        }  # fmt: skip
        assert len(part["digest"]) == 12

    def test_output_of_a_shell_command_is_a_part_of_its_prompt(self) -> None:
        (part,) = by_text(folded("commands"), "!ls shed").parts
        assert part == {"type": "bash", "stdout": "rake\nhoe", "stderr": ""}

    def test_long_output_is_cut_after_it_was_redacted(self) -> None:
        secret = "S3CRET" * 10
        output = "x" * (PART_CHARS - 30) + secret
        call = answer(text("hi"), {"type": "tool_use", "id": "c", "name": "Bash", "input": {}})
        result = user([{"type": "tool_result", "tool_use_id": "c", "content": output}])
        rows = list(enumerate([user("go"), call, result]))

        made = fold(rows, end=9, flush=True, redact=lambda t: t.replace(secret, "[gone]"))

        part = made.messages[1].parts[-1]
        assert "S3C" not in part["text"]
        assert part["length"] == len(output)

    @pytest.mark.parametrize("length", [5_000, 200_000])
    def test_of_long_output_the_beginning_and_the_end_are_kept(self, length: int) -> None:
        """An output says at its end how it ended; a secret there is taken out before the cut."""
        secret = "S3CRET" * 10
        output = "first line\n" + "x" * length + f" {secret} 2 failed, 56 passed"
        call = answer(text("hi"), {"type": "tool_use", "id": "c", "name": "Bash", "input": {}})
        result = user([{"type": "tool_result", "tool_use_id": "c", "content": output}])
        rows = list(enumerate([user("go"), call, result]))

        made = fold(rows, end=9, flush=True, redact=lambda t: t.replace(secret, "[gone]"))

        kept = made.messages[1].parts[-1]["text"]
        assert kept.startswith("first line\nxxx")
        assert kept.endswith("x [gone] 2 failed, 56 passed")
        assert f"[... {len(output) - PART_CHARS} characters left out ...]" in kept
        assert len(kept) <= PART_CHARS

    @pytest.mark.parametrize("name", NAMES)
    def test_what_every_response_cost_is_told_once(self, name: str) -> None:
        """Also of those that only called a tool; not of what the client made up."""
        wanted: dict[str, tuple[str, int, int]] = {}
        for _, line in lines_of(name).lines:
            message = line.get("message")
            if line["type"] == "assistant" and "usage" in message and "error" not in line:
                usage = message["usage"]
                told = (message["model"], usage["input_tokens"], usage["output_tokens"])
                if told[0] != "<synthetic>":
                    wanted[message["id"]] = told

        parts = [part for message in folded(name).messages for part in message.parts]
        costs = [part for part in parts if part["type"] == "usage"]

        told = [(one["model"], one["input_tokens"], one["output_tokens"]) for one in costs]
        assert sorted(told) == sorted(wanted.values())

    def test_a_response_whose_tokens_grow_from_line_to_line_counts_its_last(self) -> None:
        def line(block: dict[str, Any], output: int) -> dict[str, Any]:
            written = {"ephemeral_1h_input_tokens": 30, "ephemeral_5m_input_tokens": 4}
            usage = {
                "input_tokens": 5, "output_tokens": output, "cache_read_input_tokens": 7,
                "cache_creation_input_tokens": 34, "cache_creation": written,
            }  # fmt: skip
            row = answer(block)
            row["message"]["usage"] = usage
            return row

        result = fold_rows(user("go"), line(text("hi"), 1), line(text("there"), 42))

        assert result.messages[1].tokens == 42
        assert list(result.messages[1].parts) == [
            {
                "type": "usage", "model": "claude-test-1", "input_tokens": 5, "output_tokens": 42,
                "cache_read_tokens": 7, "cache_write_tokens": 34, "cache_write_1h_tokens": 30,
            }
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "usage",
        [None, 3, [], {"output_tokens": "9"}, {"output_tokens": -1}, {"input_tokens": True}],
    )
    def test_a_cost_that_makes_no_sense_is_none(self, usage: Any) -> None:
        row = answer(text("hi"))
        row["message"]["usage"] = usage
        assert fold_rows(user("go"), row).messages[1].parts == ()

    def test_every_text_that_leaves_is_redacted(self) -> None:
        rows = lines_of("tools").lines + lines_of("commands").lines + lines_of("compacted").lines
        result = fold(rows, end=1 << 30, flush=True, redact=lambda _: "[gone]")
        left = {m.text for m in result.messages} | set(result.summaries)
        left |= {title.text for title in result.titles}
        for message in result.messages:
            for part in message.parts:
                left |= {part[k] for k in ("text", "input", "stdout", "stderr") if k in part}
        assert left <= {"[gone]", "[gone]\n\n[gone]"}


class TestFlags:
    @pytest.mark.parametrize(
        ("name", "message", "flags"),
        [
            ("interrupted_new", "long one", ("interrupted",)),
            ("interrupted_new", "It was a dark", ("interrupted",)),
            ("interrupted_old", "It was a dark", ("interrupted",)),
            ("interrupted_old", "run it", ("interrupted", "unanswered")),
            ("interrupted_old", "after", ()),
            ("tools", "break", ("api-error", "unanswered")),
            ("two_texts", "First thought.\n\nSecond thought.", ("blocks",)),
            ("queued_new", "wider", ("queued",)),
            ("queued_old", "wider", ("queued",)),
            ("queued_new", "and a poem", ("queued",)),
            ("commands", "/weed north bed", ("command",)),
        ],
    )
    def test_flags(self, name: str, message: str, flags: tuple[str, ...]) -> None:
        assert by_text(folded(name), message).flags == flags

    def test_the_answer_that_may_still_grow_is_named(self) -> None:
        rows = [user("go"), answer(text("one"))]
        running = fold_rows(*rows, flush=False)
        assert running.open == {"a-m1"}
        assert running.checkpoint == 1
        assert running.messages[1].flags == ("partial",)

        for closing in (
            answer(text("two"), id="m2"),
            user("next"),
            {"type": "system", "subtype": "turn_duration"},
            {"type": "system", "subtype": "stop_hook_summary"},
        ):
            assert "a-m1" not in fold_rows(*rows, closing, flush=False).open

    def test_lines_of_one_response_are_one_message_even_around_a_result(self) -> None:
        call = answer({"type": "tool_use", "id": "c", "name": "Bash", "input": {}})
        result = user([{"type": "tool_result", "tool_use_id": "c", "content": "x"}])
        made = fold_rows(user("go"), answer(text("one")), call, result, answer(text("two")))
        assert said(made.messages) == [["user", "go"], ["assistant", "one\n\ntwo"]]


class TestSession:
    def test_titles_and_summaries(self) -> None:
        result = folded("compacted")
        assert [tuple(title) for title in result.titles] == [
            ("Garden plans", False), ("Ada garden", True),
        ]  # fmt: skip
        assert result.summaries == ("This session is being continued. Summary: beans and roses.",)

    def test_facts(self) -> None:
        facts = folded("compacted").facts
        assert (facts.session_id, facts.cwd, facts.git_branch, facts.version) == (
            "compacted", "/home/ada/garden", "main", "2.1.332",
        )  # fmt: skip
        assert facts.started_at is not None
        assert facts.updated_at is not None
        assert facts.started_at < facts.updated_at

    def test_a_branch_says_where_it_came_from(self) -> None:
        row = user("hello", forkedFrom={"sessionId": "mother", "messageUuid": "x"})
        assert fold_rows(row).facts.forked_from == "mother"

    def test_a_fork_repeats_ids(self) -> None:
        mother = {one.uuid for one in folded("rewound").messages}
        fork = {one.uuid for one in folded("forked").messages}
        assert mother < fork


class TestReading:
    def write(self, path: Path, *lines: bytes) -> Path:
        path.write_bytes(b"".join(lines))
        return path

    def test_half_a_line_is_left_for_later(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "t", b'{"a":1}\n', b'{"a":2')
        first = read_lines(path, 0)
        assert (first.lines, first.next_offset) == ([(0, {"a": 1})], 8)
        self.write(path, b'{"a":1}\n', b'{"a":2}\n')
        assert read_lines(path, first.next_offset).lines == [(8, {"a": 2})]

    def test_bad_lines_are_counted_and_passed_over(self, tmp_path: Path) -> None:
        path = self.write(
            tmp_path / "t",
            b"{nonsense\n", b"[1]\n", b"\n", b'{"a":"\xff"}\n', b"[" * 100_000 + b"\n",
            b'{"n":' + b"9" * 5000 + b"}\n", b'{"type":"api-request-blob","x":1}\n', b'{"a":2}\n',
        )  # fmt: skip
        result = read_lines(path, 0)
        assert [line for _, line in result.lines] == [{"a": "\ufffd"}, {"a": 2}]
        assert result.bad == 4

    def test_a_limit_gives_at_least_one_line_and_says_that_more_is_there(
        self, tmp_path: Path
    ) -> None:
        path = self.write(tmp_path / "t", *[b'{"a":%d}\n' % n for n in range(9)])
        found = []
        offset = 0
        while True:
            some = read_lines(path, offset, 1)
            found += some.lines
            assert some.at_end == (len(found) == 9)
            if some.at_end:
                break
            assert len(some.lines) == 1
            offset = some.next_offset
        assert [line["a"] for _, line in found] == list(range(9))

    def test_lines_of_megabytes(self, tmp_path: Path) -> None:
        big = json.dumps({"a": "x" * 5_000_000}).encode()
        path = self.write(tmp_path / "t", b'{"a":1}\n', big, b"\n", b'{"a":3}\n')
        assert [len(str(line["a"])) for _, line in read_lines(path, 0).lines] == [1, 5_000_000, 1]

    def test_a_line_too_long_is_skipped_without_being_held(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hypatia_mem.memory.intake.lines.MAX_LINE_BYTES", 3 << 20)
        big = json.dumps({"a": "x" * (4 << 20)}).encode()
        path = self.write(tmp_path / "t", big, b"\n", b'{"a":2}\n')
        result = read_lines(path, 0)
        assert (result.lines, result.bad) == ([(len(big) + 1, {"a": 2})], 1)

    def test_a_file_that_shrank_is_read_from_its_start(self, tmp_path: Path) -> None:
        path = self.write(tmp_path / "t", b'{"a":1}\n')
        assert read_lines(path, 100).restarted
        assert read_lines(path, 100).lines == [(0, {"a": 1})]
        assert not read_lines(path, 8).restarted

    def test_a_missing_file_is_the_callers_to_handle(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            read_lines(tmp_path / "none", 0)
