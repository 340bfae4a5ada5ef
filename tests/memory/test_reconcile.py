"""Hook records against the transcript: each message once, whatever is seen first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from hypatia_mem.capture.spool import Record
from hypatia_mem.memory.intake import reconcile
from hypatia_mem.memory.intake.reconcile import Plan, digest
from hypatia_mem.model import Message

START = datetime(2027, 3, 1, 9)
SECOND = 1_000_000_000
START_NS = int((START - datetime(1970, 1, 1)).total_seconds()) * SECOND


@dataclass(frozen=True)
class Kept:
    """A stored message as the store identifies it."""

    turn: int
    role: str
    uuid: str
    prompt_id: str
    response_id: str
    text_digest: str
    at: datetime
    flags: tuple[str, ...]


def record(event: str, second: float, *, red: int = 0, **fields: Any) -> Record:
    body = {"session_id": "s", "hook_event_name": event, **fields}
    return Record("s", 0, 1, {"at": START_NS + int(second * SECOND), "red": red, "event": body})


def prompt(text: str, second: float, pid: str = "p1", **more: Any) -> Record:
    return record("UserPromptSubmit", second, prompt=text, prompt_id=pid, **more)


def stop(text: str | None, second: float, pid: str = "p1", **more: Any) -> Record:
    if text is not None:
        more["last_assistant_message"] = text
    return record("Stop", second, prompt_id=pid, **more)


def line(role: str, text: str, second: float, pid: str = "p1", **more: Any) -> Message:
    at = START + timedelta(seconds=second)
    return Message("s", f"line-{role}-{second}", role, text, at, prompt_id=pid, **more)


class Session:
    """A session's stored messages, and plans applied to them."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def known(self) -> list[Kept]:
        return [
            Kept(
                m.turn or 0, m.role, m.uuid, m.prompt_id, m.response_id, digest(m.text), m.at, m.flags
            )
            for m in self.messages
        ]  # fmt: skip

    def see(
        self,
        lines: Sequence[Message] = (),
        records: Sequence[Record] = (),
        *,
        at: float = 1000,
        growing: Sequence[str] = (),
        **more: Any,
    ) -> Plan:
        more.setdefault("elsewhere", {})
        plan = reconcile.plan(
            "s",
            known=self.known(),
            messages=lines,
            growing=growing,
            records=records,
            now_ns=START_NS + int(at * SECOND),
            **more,
        )
        for amendment in plan.amend:
            before = self.messages[amendment.turn - 1]
            self.messages[amendment.turn - 1] = replace(before, **amendment.changes)
        for message in plan.store:
            self.messages.append(replace(message, turn=len(self.messages) + 1))
        assert len({m.uuid for m in self.messages}) == len(self.messages)
        return plan

    @property
    def said(self) -> list[str]:
        return [m.text for m in self.messages]

    @property
    def hook_only(self) -> list[str]:
        return [m.text for m in self.messages if m.uuid.startswith("hook:")]


@pytest.fixture
def session() -> Session:
    return Session()


HELLO = [line("user", "hello", 0), line("assistant", "hi", 1)]
HOOKS = [prompt("hello", 0), stop("hi", 1.2)]


class TestWhateverComesFirst:
    @pytest.mark.parametrize(
        "steps",
        [
            [(HELLO, []), ([], HOOKS)],
            [([], HOOKS), (HELLO, [])],
            [(HELLO, HOOKS)],
            [(HELLO, [])],
            [([], HOOKS), (HELLO, HOOKS), (HELLO, HOOKS)],
            [([], HOOKS[:1]), (HELLO, HOOKS), ([], HOOKS)],
            [(HELLO[:1], HOOKS[:1]), (HELLO, HOOKS[1:])],
            [(HELLO[:1], HOOKS), (HELLO, [])],
        ],
    )
    def test_each_once(
        self, session: Session, steps: list[tuple[list[Message], list[Record]]]
    ) -> None:
        for lines, records in steps:
            assert not session.see(lines, records).waiting
        assert session.said == ["hello", "hi"]
        assert session.hook_only == []
        assert [m.flags for m in session.messages] == [(), ()]

    def test_hooks_alone_are_enough(self, session: Session) -> None:
        session.see((), HOOKS)
        session.see((), HOOKS)
        assert session.said == session.hook_only == ["hello", "hi"]
        assert [m.flags for m in session.messages] == [("hook-only",)] * 2
        assert [m.role for m in session.messages] == ["user", "assistant"]

    def test_the_same_record_always_makes_the_same_id(self, session: Session) -> None:
        other = Session()
        session.see((), HOOKS)
        other.see((), HOOKS)
        assert [m.uuid for m in session.messages] == [m.uuid for m in other.messages]

    def test_a_record_waits_for_its_line_and_no_longer(self, session: Session) -> None:
        soon = session.see((), HOOKS, at=1.3)
        assert soon.waiting == tuple(HOOKS)
        assert soon.again_at_ns == START_NS + 3 * SECOND
        assert session.said == []
        assert session.see((), HOOKS, at=3.1).waiting == (HOOKS[1],)
        assert not session.see((), HOOKS, at=4.3).waiting
        assert session.said == ["hello", "hi"]

    def test_final_waits_for_nothing(self, session: Session) -> None:
        assert not session.see((), HOOKS, at=1.3, final=True).waiting
        assert session.said == ["hello", "hi"]

    def test_nothing_is_given_up_before_the_transcript_is_read_to_its_end(
        self, session: Session
    ) -> None:
        assert session.see((), HOOKS, complete=False).waiting == tuple(HOOKS)
        assert not session.see(HELLO, HOOKS).waiting
        assert session.hook_only == []

    def test_a_clock_that_was_set_back_does_not_make_a_record_wait(self, session: Session) -> None:
        assert not session.see((), HOOKS, at=-3600).waiting
        assert session.said == ["hello", "hi"]

    def test_a_clock_set_back_between_two_turns_does_not_move_the_second_before_the_first(
        self, session: Session
    ) -> None:
        records = [prompt("one", 0, "p1"), stop("first", 1, "p1")]
        records += [prompt("two", -3600, "p2"), stop("second", -3599, "p2")]
        session.see((), records, at=60)
        assert session.said == ["one", "first", "two", "second"]

    def test_hooks_that_ran_at_once_stand_in_the_order_of_their_times(
        self, session: Session
    ) -> None:
        records = [stop("first", 1, "p1"), prompt("one", 0.2, "p1"), prompt("two", 2, "p2")]
        session.see((), records, at=60)
        assert session.said == ["one", "first", "two"]

    def test_the_end_of_the_session_shortens_the_wait(self, session: Session) -> None:
        records = [*HOOKS, record("SessionEnd", 1.3, reason="other")]
        assert session.see((), records, at=1.4).waiting == tuple(HOOKS)
        assert not session.see((), records, at=2.4).waiting

    def test_a_later_prompt_in_the_transcript_ends_the_wait(self, session: Session) -> None:
        blocked = prompt("forbidden", 0)
        later = [line("user", "allowed", 2, "p2")]
        assert not session.see(later, [blocked, prompt("allowed", 2, "p2")], at=2.1).waiting
        assert session.said == ["forbidden", "allowed"]

    def test_so_does_one_that_was_read_before_the_rest(self, session: Session) -> None:
        later = [line("user", "allowed", 2, "p2")]
        records = [prompt("forbidden", 0), prompt("allowed", 2, "p2")]
        assert not session.see(later, records, at=9, complete=False).waiting
        assert session.said == ["forbidden", "allowed"]

    def test_a_session_that_only_ended_is_nothing(self, session: Session) -> None:
        plan = session.see((), [record("SessionEnd", 0, reason="other")])
        assert plan == Plan()


class TestSameOrNot:
    def test_the_same_words_twice_are_two_messages(self, session: Session) -> None:
        records = [prompt("ok", 0, "p1"), stop("ok", 1, "p1"), prompt("ok", 2, "p2")]
        records.append(stop("ok", 3, "p2"))
        lines = [line("user", "ok", 0, "p1"), line("assistant", "ok", 0.9, "p1")]
        lines += [line("user", "ok", 2, "p2"), line("assistant", "ok", 2.9, "p2")]
        for _ in range(2):
            session.see(lines[:2], records)
            session.see(lines, records[2:])
        assert session.said == ["ok"] * 4
        assert session.hook_only == []

    def test_a_hook_run_twice_for_one_event_is_one_message(self, session: Session) -> None:
        records = [prompt("hello", 0), prompt("hello", 0.05), stop("hi", 1), stop("hi", 1.01)]
        session.see((), records)
        session.see((), records[1:])
        assert session.said == ["hello", "hi"]

    def test_a_stop_sent_round_again_is_one_message(self, session: Session) -> None:
        again = stop("hi", 9, stop_hook_active=True)
        session.see((), [prompt("hello", 0), stop("hi", 1), again])
        assert session.said == ["hello", "hi"]
        session.see((), [stop("something else", 12, stop_hook_active=True)])
        assert session.said == ["hello", "hi", "something else"]

    def test_equal_words_under_another_prompt_are_another_message(self, session: Session) -> None:
        session.see((), [prompt("yes", 0, "p1"), prompt("yes", 60, "p2")])
        assert session.said == ["yes", "yes"]

    def test_a_prompt_before_ids_existed_is_matched_by_time(self, session: Session) -> None:
        old = record("UserPromptSubmit", 0, prompt="hello")
        session.see([line("user", "hello", 0.2, "p1")], [old])
        assert session.hook_only == []
        session.see((), [record("UserPromptSubmit", 900, prompt="hello")], at=2000)
        assert session.said == ["hello", "hello"]

    def test_words_are_compared_after_redaction(self, session: Session) -> None:
        hide = lambda text: text.replace("hunter2", "[REDACTED]")  # noqa: E731
        lines = [line("user", "my password is [REDACTED]", 0)]
        session.see((), [prompt("my password is hunter2", 0)], redact=hide)
        assert session.said == ["my password is [REDACTED]"]
        session.see(lines, [prompt("my password is hunter2", 0)], redact=hide)
        assert (session.said, session.hook_only) == (["my password is [REDACTED]"], [])

    @pytest.mark.parametrize("odd", ["a\0b", "lone \ud83d half", "x\u2028y", "  padded \n"])
    def test_odd_characters_do_not_make_two_of_one(self, session: Session, odd: str) -> None:
        shown = odd.replace("\ud83d", "\ufffd")
        session.see((), [prompt(odd, 0)])
        session.see([line("user", shown, 0)], [prompt(odd, 0)])
        assert len(session.messages) == 1
        assert session.hook_only == []

    def test_an_answer_is_compared_as_the_client_trims_it(self, session: Session) -> None:
        session.see([line("assistant", "words", 1)], [stop("\nwords \n", 1.2)])
        assert session.said == ["words"]

    def test_the_word_typed_again_is_not_the_one_before(self, session: Session) -> None:
        running = [line("user", "ok", 0, "p1")]
        session.see(running, [prompt("ok", 0, "p1")])
        session.see((), [prompt("ok", 8, "p1")])  # typed while the first was worked on
        assert session.said == ["ok", "ok"]

    def test_a_line_goes_to_the_record_with_its_own_id(self, session: Session) -> None:
        blocked, allowed = prompt("ok", 0, "p1"), prompt("ok", 5, "p2")
        session.see([line("user", "ok", 5, "p2")], [blocked, allowed], at=5.1)
        assert session.said == ["ok", "ok"]
        assert session.hook_only == ["ok"]

    def test_a_stored_word_does_not_take_the_line_of_another(self, session: Session) -> None:
        session.see((), [prompt("ok", 0, "p1")])  # blocked: no line shows it
        session.see([line("user", "ok", 60, "p2")], [prompt("ok", 60, "p2")])
        assert [m.prompt_id for m in session.messages] == ["p1", "p2"]
        assert [m.uuid.startswith("hook:") for m in session.messages] == [True, False]


class TestOddTurns:
    def test_a_queued_prompt_waits_for_the_turn_to_take_it_in(self, session: Session) -> None:
        running = [prompt("dig", 0), prompt("deeper", 5)]
        shown = [line("user", "dig", 0)]
        assert session.see(shown, running, at=30).waiting == (running[1],)
        assert not session.see(shown, running, at=66).waiting  # not for ever
        assert session.said == ["dig", "deeper"]

        taken = line("user", "deeper", 5, flags=("queued",))
        session.see([*shown, line("assistant", "deep", 70), taken], running, at=80)
        assert (session.said, session.hook_only) == (["dig", "deeper", "deep"], [])

    def test_a_queued_prompt_that_got_a_turn_of_its_own(self, session: Session) -> None:
        records = [prompt("story", 0, "p1"), prompt("poem", 2, "p1"), stop("once", 9, "p1")]
        records.append(stop("roses", 12, "p2"))
        lines = [
            line("user", "story", 0, "p1"),
            line("assistant", "once", 8.9, "p1"),
            line("user", "poem", 10, "p2", flags=("queued",)),
            line("assistant", "roses", 11, "p2"),
        ]
        for cut in range(5):
            session.see(lines[:cut], records[:cut], at=9.5)
        session.see(lines, records)
        assert session.said == ["story", "once", "poem", "roses"]
        assert session.hook_only == []

    def test_queued_twice_in_one_turn_is_two_messages(self, session: Session) -> None:
        records = [prompt("dig", 0), prompt("more", 5), prompt("more", 9), stop("dug", 12)]
        session.see((), records)
        session.see((), records)
        assert session.said == ["dig", "more", "more", "dug"]

    def test_the_answer_to_a_shell_command_has_the_prompt_before_it(self, session: Session) -> None:
        lines = [*HELLO, line("user", "!date", 5, "p1"), line("assistant", "Monday", 6, "p1")]
        session.see(lines, [*HOOKS, stop("Monday", 6.1, "p1")])
        assert (session.said, session.hook_only) == (["hello", "hi", "!date", "Monday"], [])

    def test_a_command_is_stored_as_the_transcript_names_it(self, session: Session) -> None:
        typed = prompt("/recall roses", 0)
        shown = line("user", "/shed:recall roses", 0.3, flags=("command",))
        session.see((), [typed])
        session.see([shown], [typed])
        session.see((), [typed])
        assert session.said == ["/shed:recall roses"]

    def test_the_last_of_several_texts_is_that_answer(self, session: Session) -> None:
        shown = line("assistant", "first\n\nsecond", 1, flags=("blocks",))
        session.see([shown], [stop("second", 1.2)])
        session.see((), [stop("second", 1.2)])
        assert session.said == ["first\n\nsecond"]

    def test_so_is_the_last_of_texts_of_which_one_was_stored_before(self, session: Session) -> None:
        session.see([line("assistant", "first", 1, flags=("partial",))])
        whole = line("assistant", "first\n\nsecond", 1, flags=("blocks", "partial"))
        session.see([whole], [stop("second", 1.2)], growing=[whole.uuid])
        assert (len(session.messages), session.hook_only) == (1, [])

    def test_a_picture_alone(self, session: Session) -> None:
        session.see((), [prompt("", 0)])
        session.see([line("user", "[image]", 0)], [prompt("", 0)])
        assert (session.said, session.hook_only) == (["[image]"], [])

    @pytest.mark.parametrize(
        "quiet",
        [
            prompt("<task-notification>\n<task-id>1</task-id>", 0),
            prompt(" \n", 0),
            stop(None, 0),
            stop(" ", 0),
            record("UserPromptSubmit", 0, prompt=["a"]),
            record("StopFailure", 0, last_assistant_message="API Error"),
            record("SubagentStop", 0, last_assistant_message="a helper"),
            record("PreCompact", 0, trigger="auto"),
        ],
    )
    def test_records_that_are_no_message(self, session: Session, quiet: Record) -> None:
        assert session.see((), [quiet], at=0.1) == Plan()

    def test_a_record_without_its_words_waits_for_the_transcript(self, session: Session) -> None:
        mute = record("UserPromptSubmit", 0, red=2, prompt_id="p1")
        assert session.see((), [mute], at=1).waiting == (mute,)
        assert not session.see(HELLO[:1], [mute], at=1).waiting
        assert session.said == ["hello"]
        assert not session.see((), [mute], at=9).waiting

    def test_lines_of_another_session_are_passed_over(self, session: Session) -> None:
        elsewhere = {one.uuid: ("mother", 1) for one in HELLO}
        new = line("user", "on the fork", 9, "p9")
        plan = session.see([*HELLO, new], [prompt("on the fork", 9, "p9")], elsewhere=elsewhere)
        assert session.said == ["on the fork"]
        assert plan.repeated == (("mother", 1), ("mother", 1))


class TestGrowing:
    def test_an_answer_that_may_grow_is_held_until_a_stop_quotes_it(self, session: Session) -> None:
        growing = [HELLO[1].uuid]
        partial = [HELLO[0], replace(HELLO[1], flags=("partial",))]
        plan = session.see(partial, HOOKS[:1], at=1.1, growing=growing)
        assert (session.said, plan.unfinished) == (["hello"], True)
        plan = session.see(partial, HOOKS, at=1.3, growing=growing)
        assert (session.said, plan.unfinished) == (["hello", "hi"], False)
        assert session.messages[1].flags == ()

    def test_an_answer_nobody_quotes_is_stored_and_followed(self, session: Session) -> None:
        growing = [HELLO[1].uuid]
        session.see([replace(HELLO[1], flags=("partial",))], at=60, growing=growing)
        assert session.messages[0].flags == ("partial",)

        whole = replace(HELLO[1], text="hi there", parts=({"type": "reasoning", "text": "x"},))
        session.see([whole], at=61)
        assert (session.said, session.messages[0].flags) == (["hi there"], ())
        assert session.messages[0].parts == whole.parts

    def test_half_of_an_answer_never_shortens_what_is_stored(self, session: Session) -> None:
        session.see(HELLO)
        half = replace(HELLO[1], text="h", flags=("partial",))
        session.see([HELLO[0], half], growing=[half.uuid])
        assert session.said == ["hello", "hi"]

    def test_a_flag_that_comes_later_is_added(self, session: Session) -> None:
        session.see(HELLO[:1])
        session.see([replace(HELLO[0], flags=("interrupted",))])
        assert session.messages[0].flags == ("interrupted",)
        assert not session.see(HELLO[:1]).amend  # and never taken away

    def test_seen_again_unchanged_is_no_change(self, session: Session) -> None:
        session.see(HELLO, HOOKS)
        plan = session.see(HELLO, HOOKS)
        assert (plan.store, plan.amend, plan.waiting) == ((), (), ())

    def test_words_a_hook_saw_are_marked_as_typed(self, session: Session) -> None:
        plan = session.see(HELLO, HOOKS[:1])
        assert plan.typed == {HELLO[0].uuid}
        alone = Session().see((), HOOKS[:1])
        assert alone.typed == {alone.store[0].uuid}
