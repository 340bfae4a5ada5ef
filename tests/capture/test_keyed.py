"""What the words of a prompt call up: which words do, for how many turns, and how much of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypatia_mem.capture import keyed, paths
from tests.capture.hook_kit import SESSION, conf, context, event, fire

ID = "a" * 24


def item(id_=ID, keys=("deploy",), text="- x:\n> words", **more):
    conditions = {name: more.pop(name.replace("-", "_"), ()) for name in keyed.CONDITIONS}
    return keyed.Item(id_, keys, conditions, text=text, units=more.pop("units", len(text)), **more)


def judged(one, prompt, turn=1, fired=0, now=0.0):
    return keyed.judge(one, keyed.folded(prompt), turn=turn, fired=fired, now=now).why


# key, prompt, whether it stands there
WORDS = [
    ("app", "open the app", True),
    ("app", "my-app is open", False),
    ("app", "app-store", False),
    ("app", "my_app", False),
    ("app", "apps and happy", False),
    ("app", "src/app/main.py and app.py", True),
    ("app", "(app)", True),
    ("app", "the app: it - runs", True),
    ("app", "the app- and more", True),
    ("app", "l'app", True),
    ("app", "", False),
    ("deploy", "DEPLOY!", True),
    ("Deploy", "please deploy", True),
    ("straße", "in der STRASSE", True),
    ("café", "un cafe\u0301", True),
    ("cafe", "un cafe\u0301", False),  # another word, however it is written
    ("ｄｅｐｌｏｙ", "deploy", True),
    ("release notes", "write the Release\n  notes", True),
    ("release notes", "release the notes", False),
    ("部署", "请把它部署到生产环境", True),
    ("部署", "请把它发布", False),
    ("デプロイ", "今日デプロイします", True),
    ("배포", "서버를 배포해 주세요", True),
    ("ขึ้นระบบ", "ช่วยขึ้นระบบให้หน่อย", True),
    ("api", "使用API部署", True),
    ("api", "使用apis部署", False),
    ("деплой", "Деплой завтра", True),
    ("деплой", "передеплойка", False),
    ("हिन्द", "हिन्दी", False),
    ("हिन्दी", "यह हिन्दी है", True),
    ("c++", "in C++ code", True),
    ("#42", "see #42.", True),
    ("#42", "see #421", False),
    (".*", "anything", False),  # a key is what it is, no pattern
    (".*", "a .* here", True),
]


@pytest.mark.parametrize(("key", "prompt", "there"), WORDS)
def test_a_key_is_a_word_of_its_own(key, prompt, there):
    found = judged(item(keys=(keyed.folded(key),)), prompt)
    assert found == ("match" if there else "no key")


A, B = "alpha", "beta"
# condition, which of its two words the prompt says, whether the entry is told
LOGIC = [
    ("and-any", (), False), ("and-any", (A,), True), ("and-any", (B,), True),
    ("and-any", (A, B), True),
    ("and-all", (), False), ("and-all", (A,), False), ("and-all", (B,), False),
    ("and-all", (A, B), True),
    ("not-any", (), True), ("not-any", (A,), False), ("not-any", (B,), False),
    ("not-any", (A, B), False),
    ("not-all", (), True), ("not-all", (A,), True), ("not-all", (B,), True),
    ("not-all", (A, B), False),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "words", "told"), LOGIC)
def test_the_four_conditions(condition, words, told):
    one = item(**{condition.replace("-", "_"): (A, B)})
    assert judged(one, f"deploy {' '.join(words)}") == ("match" if told else condition)
    assert judged(one, f"nothing {' '.join(words)}") == "no key"


def test_all_conditions_must_hold():
    one = item(and_any=("now",), not_any=("staging",))
    assert judged(one, "deploy now") == "match"
    assert judged(one, "deploy now to staging") == "not-any"
    assert judged(one, "deploy") == "and-any"


# turn, fired, what is said of it: sticky 2, cooldown 3, delay 2
TURNS = [
    (1, 0, "delay"), (2, 0, "match"), (3, 0, "match"),
    (3, 2, "sticky"), (4, 2, "sticky"), (5, 2, "cooldown"), (7, 2, "cooldown"), (8, 2, "match"),
    (1, 5, "delay"), (3, 5, "match"),  # a turn that has not been counts as nothing
]  # fmt: skip


@pytest.mark.parametrize(("turn", "fired", "why"), TURNS)
@pytest.mark.parametrize("said", [True, False])
def test_the_order_in_which_it_is_decided(turn, fired, why, said):
    one = item(sticky=2, cooldown=3, delay=2)
    expected = "no key" if why == "match" and not said else why
    assert judged(one, "deploy" if said else "hello", turn, fired) == expected


def test_time_comes_before_all():
    one = item(sticky=5, since=100, until=200)
    assert [judged(one, "deploy", 3, 2, now) for now in (99, 100, 199, 200)] == [
        "time", "sticky", "sticky", "time",
    ]  # fmt: skip


# The whole of it, against a model that keeps a countdown instead of turns -----------------------

STEPS = st.lists(st.booleans(), max_size=40)
SMALL = st.integers(0, 4)


@given(STEPS, SMALL, SMALL, SMALL)
def test_any_conversation_is_told_what_a_simple_model_says(steps, sticky, cooldown, delay):
    one = item(sticky=sticky, cooldown=cooldown, delay=delay)
    state: dict[str, int] = {}
    held = silent = 0
    for turn, says in enumerate(steps, start=1):
        said = keyed.called_up([one], state, "deploy" if says else "hi", turn=turn, now=0)
        told, _ = keyed.chosen(said)
        state = keyed.after([one], state, told, turn)
        if turn < delay:
            expected = False
        elif held:
            held, expected = held - 1, True
        elif silent:
            silent, expected = silent - 1, False
        else:
            expected = says
            if says:
                held, silent = sticky, cooldown
        assert bool(told) is expected


# The hook ---------------------------------------------------------------------------------------


@pytest.fixture
def rendered(home, app):
    """Write a table for the project's folder; ``rendered(items...)``."""

    def write(*items, key=None):
        (home / "briefs" / keyed.ANY).touch()
        path = keyed.table_path(str(home), key or paths.find_root(str(app)).key)
        keyed.write(path, keyed.table(items))

    return write


def say(app, prompt, **more):
    return context(fire(event(cwd=str(app), prompt=prompt, **more)))


def test_a_prompt_is_told_what_it_calls_up_and_no_other(rendered, app):
    rendered(item(text="- rule:deploy:\n> Deploy by hand,\n> never on Fridays"))
    assert say(app, "hello") == ""
    told = say(app, "Deploy it").splitlines()
    assert told[1:] == ["- rule:deploy:", "> Deploy by hand,", "> never on Fridays"]
    assert "quoted as data" in told[0]


def test_the_table_comes_back_as_it_was_written(home, rendered, app):
    one = item(
        keys=("a b", "c"), and_any=("d",), and_all=("e", "f"), not_any=("g",), not_all=("h",),
        sticky=1, cooldown=2, delay=3, since=4, until=5, units=6, text="- x:\n> ü\n> 部署 y",
    )  # fmt: skip
    rendered(one, item("b" * 24))
    found = keyed.read_table(str(home), paths.find_root(str(app)).key)
    same = [
        {name: getattr(each, name) for name in keyed.Item.__slots__} for each in (found[0], one)
    ]
    assert same[0] == same[1]
    assert found[1].id == "b" * 24


def test_what_is_first_has_the_room_and_the_rest_is_counted(rendered, app):
    long = [item(f"{n}" * 24, text=f"- e{n}:\n> {'x' * 1500}") for n in range(1, 4)]
    rendered(*long, item("9" * 24, text="- short:\n> y"))
    told = say(app, "deploy")
    assert [f"- {name}:" in told for name in ("e1", "e2", "e3", "short")] == [
        True, True, False, True,
    ]  # fmt: skip
    assert "(1 more entry not shown here" in told


def test_what_had_no_room_was_not_called_up(home, rendered, app):
    """It is told at the next prompt in which there is room, silent turns or not."""
    rendered(
        item("1" * 24, text=f"- e1:\n> {'x' * 3900}", keys=("both",)),
        item("2" * 24, text=f"- e2:\n> {'y' * 500}", keys=("both", "two"), cooldown=9),
    )
    assert "- e2:" not in say(app, "both")
    assert "- e2:" in say(app, "two")
    assert "- e2:" not in say(app, "two")
    assert keyed.read_state(str(home), SESSION) == {"2" * 24: 2}


def test_another_projects_words_are_never_told(rendered, app, tmp_path):
    rendered(item())
    other = tmp_path / "other"
    other.mkdir()
    assert say(other, "deploy") == ""
    rendered(item(text="- everywhere:\n> z"), key="global")
    assert "- everywhere:" in say(other, "deploy")
    assert "- everywhere:" not in say(app, "deploy")  # its own table holds the global ones too


@pytest.mark.parametrize(
    "state",
    [
        b"\xff\xfe\0garbage", b"", b"no newline 3", ID.encode() + b" 99999999999999999999\n",
        ID.encode() + b" -1\n", ID.encode() + b" x\n", ID.encode() + b" 7\n", b"\n\n \n" * 99,
    ],
)  # fmt: skip
def test_a_torn_or_senseless_state_counts_as_nothing(home, rendered, app, state):
    rendered(item(sticky=1, cooldown=5))
    path = keyed.state_path(str(home), SESSION)
    with open(path, "wb") as file:
        file.write(state)
    assert say(app, "hello") == ""
    assert "- x:" in say(app, "deploy")
    assert keyed.read_state(str(home), SESSION) == {ID: 2}


@pytest.mark.parametrize("table", [b"\xff\0\t\t", b" text of nothing\n", b"a\tb\n", b"\n" * 50])
def test_a_table_that_is_none_tells_nothing(home, rendered, app, table):
    rendered()
    with open(keyed.table_path(str(home), paths.find_root(str(app)).key), "wb") as file:
        file.write(table)
    assert say(app, "deploy") == ""


def test_the_state_is_the_owners_and_holds_no_words(home, rendered, app):
    rendered(item(sticky=1))
    say(app, "deploy secretly")
    path = home / "turns" / f"{SESSION}.active"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == f"{ID} 1\n"
    assert not (home / "hypatia-mem.log").exists()


def test_a_state_that_cannot_be_kept_costs_nobody_the_words(home, rendered, app):
    rendered(item(sticky=1))
    (home / "turns" / f"{SESSION}.active").mkdir()
    assert "- x:" in say(app, "deploy")
    assert say(app, "hello") == ""


def test_what_a_client_says_by_itself_is_no_turn(rendered, app):
    rendered(item(delay=2))
    assert say(app, "hello") == ""
    assert say(app, "<task-notification>deploy</task-notification>") == ""
    assert "- x:" in say(app, "deploy")


def test_switched_off_with_the_briefs_and_not_with_the_triggers(home, rendered, app):
    rendered(item())
    conf(home, briefs="off")
    assert say(app, "deploy") == ""
    conf(home, triggers="off")
    assert "- x:" in say(app, "deploy")


def test_a_pasted_log_is_looked_at_at_both_ends(rendered, app):
    rendered(item())
    filler = "line of a log\n" * 9000
    assert "- x:" in say(app, f"deploy this:\n{filler}")
    assert "- x:" in say(app, f"{filler}\ndeploy this")
    assert say(app, f"{filler} deploy {filler}") == ""


# Out of the table ---------------------------------------------------------------------------------


def test_what_leaves_is_told_no_more_and_what_stays_is(home, rendered, app):
    rendered(item("1" * 24, text="- one:\n> 1"), item("2" * 24, text="- two:\n> 2\n> 22"))
    rendered(item("1" * 24, text="- one:\n> 1"), key="global")
    keyed.leave(str(home), {"1" * 24, "3" * 24})
    assert say(app, "deploy").splitlines()[1:] == ["- two:", "> 2", "> 22"]
    assert keyed.read_table(str(home), "unknown") == []
