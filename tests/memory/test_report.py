"""Reports say what a person with the transcripts before them would count."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from hypatia_mem.capture import paths
from hypatia_mem.errors import ConfigError
from hypatia_mem.memory.intake.lines import read_lines
from hypatia_mem.memory.intake.transcript import fold
from hypatia_mem.memory.report import KINDS, PRICES_EXAMPLE, Span, bars, read_prices, report
from hypatia_mem.model import Author, Channel, Message, Session
from hypatia_mem.store.connection import open_store

FIXTURES = Path(__file__).parents[1] / "fixtures" / "transcripts"
NOW = datetime(2026, 11, 30, 12)
PROJECTS = ("app", "web", "lab")


def usage(model, read=0, written=0, **more):
    return {"type": "usage", "model": model, "input_tokens": read, "output_tokens": written, **more}


def call(name, failed=None, ident=""):
    made = [{"type": "tool_use", "name": name, "input": "{}", "id": ident or name}]
    if failed is not None:
        made.append(
            {
                "type": "tool_result",
                "id": ident or name,
                "text": "x",
                "length": 1,
                "is_error": failed,
            }
        )
    return made


def store_of(home, talks):
    """Store sessions: ``{(project, session): [(role, at, parts), ...]}``."""
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=NOW) as txn,
    ):
        for (project, session), said in talks.items():
            txn.put_session(Session(id=session, project=project, started_at=NOW))
            messages = [
                Message(session, f"{session}-{n}", role, f"text {n}", at, parts=tuple(parts))
                for n, (role, at, parts) in enumerate(said)
            ]
            txn.put_messages(session, messages, project)


def at(day, hour=10, minute=0):
    return datetime(2026, 11, day, hour, minute)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Three sessions small enough to count on one's fingers."""
    made = tmp_path_factory.mktemp("told") / "memory-home"
    paths.ensure_home(str(made))
    store_of(
        made,
        {
            ("app", "s-1"): [
                ("user", at(1), []),
                ("assistant", at(1, 10, 5), [*call("Bash", True), *call("Read", False), usage("m-1", 100, 10), usage("m-1", 50, 5)]),
                ("user", at(2, 23, 50), []),
                ("assistant", at(3, 0, 10), [*call("Bash", False, "b2"), *call("Bash", None, "b3"), usage("m-2", 7, 3, cache_read_tokens=1000, cache_write_tokens=300, cache_write_1h_tokens=100)]),
            ],
            ("app", "s-2"): [
                ("user", at(1, 15), []),
                ("assistant", at(1, 15, 1), []),  # only a hook saw it
            ],
            ("web", "s-3"): [("user", at(1), []), ("assistant", at(1), [usage("m-9", 1, 1)])],
        },
    )  # fmt: skip
    return made


@pytest.fixture
def told(built, home):
    """A copy of them."""
    shutil.copytree(built, home, dirs_exist_ok=True)
    return home


HERE = Span(("app", ""))


def test_activity_by_day(told):
    made = report(told, "activity", HERE, zone=UTC)

    assert made.columns == ("day", "sessions", "prompts", "answers")
    assert [tuple(row.values()) for row in made.rows] == [
        ("2026-11-01", 2, 2, 2),
        ("2026-11-02", 1, 1, 0),
        ("2026-11-03", 1, 0, 1),
    ]


def test_days_begin_where_the_person_is(told):
    """Half past five ahead of UTC, the late prompt and its answer are of one day."""
    india = timezone(timedelta(hours=5, minutes=30))

    made = report(told, "activity", HERE, zone=india)

    assert [tuple(row.values()) for row in made.rows] == [
        ("2026-11-01", 2, 2, 2),
        ("2026-11-03", 1, 1, 1),
    ]


def test_activity_by_hour_of_the_day(told):
    made = report(told, "activity", HERE, zone=UTC, by="hour")

    assert len(made.rows) == 24
    assert {row["hour"]: (row["sessions"], row["prompts"], row["answers"]) for row in made.rows if row["sessions"]} == {
        "00:00": (1, 0, 1),
        "10:00": (1, 1, 1),
        "15:00": (1, 1, 1),
        "23:00": (1, 1, 0),
    }  # fmt: skip


def test_projects(told):
    """The omitted scope is this project; the twin asks for all, latest first."""
    here = report(told, "projects", HERE)
    everything = report(told, "projects", Span(None))

    assert [tuple(row.values()) for row in here.rows] == [
        ("app", 2, 3, 3, "2026-11-01T10:00:00.000Z", "2026-11-03T00:10:00.000Z")
    ]
    assert [row["project"] for row in everything.rows] == ["app", "web"]
    assert "--all-projects" in here.notes[0]
    assert everything.notes == []


def test_models(told):
    made = report(told, "models", HERE)

    assert made.columns[:5] == ("model", "messages", "responses", "input_tokens", "output_tokens")
    assert [tuple(row.values()) for row in made.rows] == [
        ("m-1", 1, 2, 150, 15, 0, 0, 0),
        ("m-2", 1, 1, 7, 3, 1000, 300, 100),
    ]
    assert made.notes[0].startswith("1 answer says neither model nor tokens")


def test_tools(told):
    made = report(told, "tools", HERE)

    assert [tuple(row[name] for name in made.columns) for row in made.rows] == [
        ("Bash", 3, 1, 1, 0.5, "2026-11-03T00:10:00.000Z"),
        ("Read", 1, 0, 0, 0.0, "2026-11-01T10:05:00.000Z"),
    ]


def test_a_time_bound_holds_for_every_report(told):
    """The first bound is in it, the second is not."""
    span = Span(("app", ""), at(2, 23, 50), at(3, 0, 10))

    assert [row["prompts"] for row in report(told, "activity", span, zone=UTC).rows] == [1]
    assert [row["answers"] for row in report(told, "projects", span).rows] == [0]
    assert report(told, "models", span).rows == report(told, "tools", span).rows == []
    wider = Span(("app", ""), at(3, 0, 10))
    assert [row["model"] for row in report(told, "models", wider).rows] == ["m-2"]


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_said_is_an_empty_report(home, kind):
    assert report(home, kind, HERE).rows == []


def test_what_is_withheld_counts_nowhere(told):
    """A message that was suppressed takes its calls and tokens with it."""
    with (
        open_store(told, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON), now=NOW) as txn,
    ):
        txn.update_entry("msg-s-1-2", suppressed=True)

    assert [row["model"] for row in report(told, "models", HERE).rows] == ["m-2"]
    assert [row["calls"] for row in report(told, "tools", HERE).rows] == [2]


# ---- cost ---------------------------------------------------------------------------------------


def prices(home, text):
    (home / "config.toml").write_text(text)


def test_cost_is_tokens_times_the_prices_somebody_wrote(told):
    prices(
        told,
        """
        [prices]
        currency = "EUR"
        [prices."m-1"]
        input = 3.0
        output = 15
        [prices."m-2"]
        input = 10
        output = 50
        cache_read = 1
        cache_write = 12.5
        cache_write_1h = 20
        """,
    )

    made = report(told, "cost", HERE)

    assert {row["model"]: row["cost"] for row in made.rows} == {
        "m-1": (150 * 3 + 15 * 15) / 1e6,
        "m-2": (7 * 10 + 3 * 50 + 1000 * 1 + 200 * 12.5 + 100 * 20) / 1e6,
    }
    assert made.notes[0] == "Estimate, from the prices in config.toml: 0.01 EUR in all."


def test_what_has_no_price_has_no_cost(told):
    """Nothing is made up: not a price, not a zero, and what is left out is said."""
    bare = report(told, "cost", HERE)
    prices(told, '[prices."m-2"]\ninput = 10\noutput = 50\n')
    partly = report(told, "cost", HERE)

    assert [row["cost"] for row in bare.rows] == [None, None]
    assert not any("in all" in note for note in bare.notes)
    assert "m-1, m-2" in bare.notes[-1]
    assert PRICES_EXAMPLE in bare.notes[-1]
    assert {row["model"]: row["cost"] for row in partly.rows} == {"m-1": None, "m-2": 0.00022}
    assert "m-2: no price for cache_read and cache_write; not in its cost." in partly.notes


@pytest.mark.deep
@pytest.mark.parametrize(
    ("model", "priced"),
    [("claude-x-4-5", True), ("claude-x-4-5-20251001", True), ("claude-x-4", False), ("claude-x-4-5-mini", False)],
)  # fmt: skip
def test_a_price_stands_for_the_dated_names_of_its_model(home, model, priced):
    store_of(home, {("app", "s"): [("assistant", at(1), [usage(model, 1_000_000, 0)])]})
    prices(home, '[prices."claude-x-4-5"]\ninput = 2\noutput = 3\n')

    assert report(home, "cost", HERE).rows[0]["cost"] == (2.0 if priced else None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prices = 3", "not a table"),
        ('[prices]\n"m" = 3', "not a table"),
        ('[prices.m]\ninput = 1\noutput = "2"', "for output is not a number"),
        ("[prices.m]\ninput = -1\noutput = 2", "for input is not a number"),
        ("[prices.m]\ninput = nan\noutput = 2", "for input is not a number"),
        ("[prices.m]\ninput = true\noutput = 2", "for input is not a number"),
        ("[prices.m]\ninput = 1", "lacks output"),
        ("[prices.m]\ninput = 1\noutput = 1\ninptu = 2", "no part 'inptu'"),
        ("[prices", "cannot be read"),
    ],
)
def test_a_price_that_makes_no_sense_is_refused(home, text, said):
    prices(home, text)
    with pytest.raises(ConfigError) as caught:
        read_prices(home)

    assert said in caught.value.message
    assert caught.value.hint


def test_the_example_of_prices_can_be_used_as_it_stands(home):
    prices(home, PRICES_EXAMPLE)
    assert read_prices(home).currency == "USD"
    assert list(read_prices(home).models) == ["name-of-the-model"]


def test_bars_are_never_empty_where_there_is_something():
    assert bars([0, 1, 50, 100], 10) == ["", "#", "#####", "##########"]
    assert bars([]) == []
    assert bars([0, 0]) == ["", ""]


# ---- against an oracle --------------------------------------------------------------------------


def test_reports_equal_what_python_counts(home):
    """Three hundred turns at random, counted a second time without the store."""
    dice = random.Random(7)
    talks: dict[tuple[str, str], list] = {}
    for n in range(12):
        said = talks[(dice.choice(PROJECTS), f"s-{n}")] = []
        for _ in range(25):
            moment = at(1) + timedelta(minutes=dice.randrange(40_000))
            parts: list = []
            for k in range(dice.randrange(4)):
                parts += call(
                    dice.choice(["Bash", "Read", "Edit"]), dice.choice([True, False, None]), f"c{k}"
                )
                parts.append(
                    usage(dice.choice(["m-1", "m-2"]), dice.randrange(99), dice.randrange(99))
                )
            said.append((dice.choice(["user", "assistant"]), moment, parts))
    store_of(home, talks)
    everything = [(key, one) for key, said in talks.items() for one in said]
    span = Span(None, at(5), at(20))
    inside = [(key, one) for key, one in everything if at(5) <= one[1] < at(20)]

    days = Counter(f"{one[1]:%Y-%m-%d}" for _, one in inside)
    made = report(home, "activity", span, zone=UTC)
    assert {row["day"]: row["prompts"] + row["answers"] for row in made.rows} == days

    sessions = {name: len({key for key, _ in inside if key[0] == name}) for name in PROJECTS}
    found = report(home, "projects", span).rows
    assert {row["project"]: row["sessions"] for row in found} == sessions
    assert [row["last_active"] for row in found] == sorted(
        (row["last_active"] for row in found), reverse=True
    )

    spent = Counter()
    tools, failed = Counter(), Counter()
    for _, (_, _, parts) in inside:
        results = {part["id"]: part["is_error"] for part in parts if part["type"] == "tool_result"}
        for part in parts:
            if part["type"] == "usage":
                spent[part["model"], "in"] += part["input_tokens"]
                spent[part["model"], "out"] += part["output_tokens"]
                spent[part["model"], "n"] += 1
            if part["type"] == "tool_use":
                tools[part["name"]] += 1
                failed[part["name"]] += results.get(part["id"]) is True
    models = report(home, "models", span).rows
    assert {(row["model"], "in"): row["input_tokens"] for row in models} | {
        (row["model"], "out"): row["output_tokens"] for row in models
    } | {(row["model"], "n"): row["responses"] for row in models} == spent
    rows = report(home, "tools", span).rows
    assert {row["tool"]: row["calls"] for row in rows} == tools
    assert {row["tool"]: row["failures"] for row in rows} == +failed | {
        name: 0 for name in tools if not failed[name]
    }


@pytest.mark.deep
@pytest.mark.parametrize("name", ["tools", "compacted", "interrupted_new"])
def test_reports_of_a_transcript_as_the_client_writes_it(home, name):
    """Counted a second time from its lines: a response once, however many lines it takes."""
    lines = read_lines(FIXTURES / f"{name}.jsonl", 0, 1 << 30)
    folded = fold(lines.lines, end=lines.next_offset, flush=True)
    session = folded.facts.session_id
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.TRANSCRIPT), now=NOW) as txn,
    ):
        txn.put_session(Session(id=session, project="app"))
        txn.put_messages(session, folded.messages, "app")
    responses: dict[str, dict] = {}
    called: dict[str, str] = {}
    for _, line in lines.lines:
        message = line.get("message") or {}
        if line["type"] == "assistant" and message.get("model") not in (None, "<synthetic>"):
            if "usage" in message:
                responses[message["id"]] = message
            for block in message["content"]:
                if block["type"] == "tool_use":
                    called[block["id"]] = block["name"]

    models = report(home, "models", HERE).rows
    tools = report(home, "tools", HERE).rows

    assert json.dumps(
        sorted([row["model"], row["output_tokens"], row["responses"]] for row in models)
    ) == json.dumps(
        sorted(
            [
                model,
                sum(
                    one["usage"]["output_tokens"]
                    for one in responses.values()
                    if one["model"] == model
                ),
                sum(one["model"] == model for one in responses.values()),
            ]
            for model in {one["model"] for one in responses.values()}
        )
    )
    assert {row["tool"]: row["calls"] for row in tools} == Counter(called.values())
