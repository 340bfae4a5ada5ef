"""Entries with keys: written, changed, explained and told, by the commands and the real hook."""

from __future__ import annotations

import json
import os
import shutil
from datetime import timedelta

import pytest

from hypatia_mem.capture import keyed
from hypatia_mem.cli import context
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import calling
from hypatia_mem.store.connection import open_store
from tests.capture import hook_kit

RULE = "memory:deploy-by-hand"
TEXT = "deploy by hand"


@pytest.fixture
def person(cli, monkeypatch):
    monkeypatch.setattr(context, "channel", lambda: Channel.CLI_PERSON)
    return cli


@pytest.fixture
def agent(cli, monkeypatch):
    """Run a command line as an agent in its client."""

    def call(*arguments):
        with monkeypatch.context() as other:
            other.setattr(context, "channel", lambda: Channel.CLI_AGENT)
            other.setenv("CLAUDECODE", "1")
            return cli(*arguments)

    return call


@pytest.fixture
def hook(project):
    """Send prompts through the hook, a new process each; returns what was told with each."""

    def call(*prompts, session="s-1", cwd=project):
        told = []
        for prompt in prompts:
            done = hook_kit.run(hook_kit.event(cwd=str(cwd), prompt=prompt, session_id=session))
            assert (done.returncode, done.stderr) == (0, b"")
            told.append(hook_kit.context(done.stdout))
        return told

    return call


def spells(told, text=TEXT):
    """Return for each prompt whether an entry's words were told: ``x`` or ``-``."""
    return "".join("x" if text in one else "-" for one in told)


def remember(cli, *options, text=TEXT, keys_="deploy"):
    done = cli("remember", text, "--kind", "memory", "--keys", keys_, *options)
    assert done.code == 0, done.err
    return done


# The six patterns ---------------------------------------------------------------------------------


def test_what_was_just_told_is_silent_while_it_cools_down(person, hook):
    remember(person, "--cooldown", "2")
    assert spells(hook("deploy", "deploy", "deploy", "deploy", "deploy")) == "x--x-"


def test_what_was_called_up_stays_for_prompts_that_do_not_say_it(person, hook):
    remember(person, "--sticky", "2")
    assert spells(hook("deploy", "hello", "hello", "hello", "deploy", "hello")) == "xxx-xx"


def test_it_is_not_told_before_its_prompt(person, hook):
    remember(person, "--delay", "3")
    assert spells(hook("deploy", "deploy", "deploy")) == "--x"


def test_suppress_beats_a_match_a_sticky_turn_and_a_pin(person, hook):
    """And what a pin tells at every start; taken back, it is called up again."""
    remember(person, "--sticky", "5")
    assert person("pin", RULE).code == 0
    assert TEXT in person("brief").out
    assert spells(hook("deploy", "hello")) == "xx"
    assert person("suppress", RULE).code == 0
    assert spells(hook("hello", "deploy")) == "--"
    assert TEXT not in person("brief").out
    assert person("why", "--prompt", "deploy", "--json").json["entries"] == []
    assert RULE in person("suppress").out
    assert person("unsuppress", RULE).code == 0
    assert spells(hook("deploy")) == "x"


def test_the_silent_turns_begin_when_the_sticky_ones_end(person, hook):
    """And words said while it is told do not lengthen that."""
    remember(person, "--sticky", "1", "--cooldown", "2")
    assert spells(hook(*["deploy"] * 7)) == "xx--xx-"


def test_turns_are_counted_across_restarts_and_for_each_session(person, hook, home):
    """Each prompt is a process of its own; the derived files may be made anew in between."""
    remember(person, "--sticky", "1", "--cooldown", "3")
    assert spells(hook("deploy")) == "x"
    for path in (home / "briefs").iterdir():
        path.unlink()
    assert spells(hook("hello", session="s-0")) == "-"  # there is nothing to be read
    assert person("doctor", "--fix").code in (0, 1)
    assert spells(hook("hello", "deploy", "deploy")) == "x--"
    assert spells(hook("deploy", session="s-2")) == "x"
    assert spells(hook("deploy", "deploy")) == "-x"


# Commands -----------------------------------------------------------------------------------------


def test_remember_with_keys(person, hook):
    done = remember(person, "--not", "staging", "--and-any", "now, today", "--priority", "2")
    assert 'Told when a prompt says "deploy" and "now" or "today" but not "staging"' in done.out
    assert (
        spells(hook("deploy now", "deploy", "deploy today on staging", "Deploy TODAY!")) == "x--x"
    )
    assert TEXT not in person("brief").out
    assert 'says "deploy"' in person("rules").out


@pytest.mark.deep
def test_the_json_of_remember_and_show(person):
    done = person(
        "remember", TEXT, "--kind", "memory", "--keys", "Deploy", "--sticky", "3", "--json"
    )
    settings = {"keys": ["deploy"], "sticky": 3}
    assert (done.json["activation"], done.json["priority"]) == (settings, 0)
    assert person("show", RULE, "--json").json["activation"] == settings
    assert 'says "deploy"; 3 prompts more' in person("show", RULE).out
    assert person("rules", "--json").json[0]["activation"] == settings


def test_set_changes_and_shows(person, hook):
    person("remember", TEXT, "--kind", "memory")
    assert TEXT in person("brief").out
    assert "no keys" in person("set", RULE).out
    done = person("set", RULE, "keys=deploy,release", "not=staging", "sticky=3", "--json").json
    assert done == {
        "verb": "updated",
        "name": RULE,
        "activation": {"keys": ["deploy", "release"], "not_any": ["staging"], "sticky": 3},
        "priority": 0,
    }
    assert person("set", RULE, "--json").json == done | {"verb": "shown"}
    assert person("set", RULE, "sticky=3", "--json").json == done | {"verb": "unchanged"}
    assert spells(hook("a release", "hello")) == "xx"
    assert person("set", RULE, "sticky=0").code == 0
    assert spells(hook("hello", "deploy", "hello")) == "-x-"
    assert person("set", RULE, "keys=").code == 0
    assert spells(hook("deploy")) == "-"
    assert TEXT in person("brief").out


@pytest.mark.deep
def test_set_of_what_a_person_wrote_as_knowledge(person, hook):
    """It is told at no start; with keys it is told when it is called up."""
    person("knowledge-create", "runbook", "-d", "first the database, then the app")
    assert spells(hook("migrate"), "first the database") == "-"
    assert person("set", "runbook", "keys=migrate").code == 0
    assert spells(hook("migrate"), "first the database") == "x"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sticky=3"], "has no keys"),
        (["keys=deploy", "sticky=-1"], "counts prompts"),
        (["keys=deploy", "sticky=many"], "is a number"),
        (["keys=deploy", "colour=red"], "is no setting"),
        (["keys"], "is no setting"),
        (["keys=a", "keys=b"], "said twice"),
        (["keys=" + "x" * 101], "100 characters"),
        (["keys=" + ",".join(f"k{n}" for n in range(65))], "at most 64"),
        (["keys=deploy", "priority=99999"], "a priority is from"),
        ([f"keys={hook_kit.SECRET}"], "looks like a secret"),
    ],
)
def test_what_cannot_be_set_is_said_and_changes_nothing(person, words, says):
    person("remember", TEXT, "--kind", "memory")
    done = person("set", RULE, *words)
    assert (done.code, says in done.err) == (2, True)
    assert hook_kit.SECRET not in done.err
    assert person("set", RULE, "--json").json["activation"] is None


def test_the_settings_have_a_history_and_are_undone(person, hook):
    remember(person)
    person("set", RULE, "keys=ship")
    assert person("history", RULE, "--json").json["versions"][-1]["changed"] == ["activation"]
    assert '"ship"' in person("diff", RULE).out
    assert spells(hook("deploy", "ship")) == "-x"
    assert person("undo").code == 0
    assert spells(hook("deploy", "ship")) == "x-"
    assert person("redo").code == 0
    assert spells(hook("deploy", "ship")) == "-x"
    assert person("revert", f"{RULE}@1").code == 0
    assert spells(hook("deploy")) == "x"


@pytest.mark.deep
def test_saying_it_again_keeps_or_changes_its_keys(person, hook):
    remember(person)
    assert "Already stored" in person("remember", TEXT, "--kind", "memory").out
    assert spells(hook("deploy")) == "x"
    remember(person, keys_="ship")
    assert spells(hook("deploy", "ship")) == "-x"


@pytest.mark.deep
def test_the_higher_priority_is_told_first(person, hook):
    for text, priority in (("one thing", "1"), ("two things", "9"), ("three things", "5")):
        remember(person, "--priority", priority, text=text)
    [told] = hook("deploy")
    assert told.index("two things") < told.index("three things") < told.index("one thing")
    person("set", "memory:one-thing", "priority=10")
    [told] = hook("deploy")
    assert told.index("one thing") < told.index("two things")


@pytest.mark.deep
def test_what_has_no_room_is_counted(person, hook):
    for number in range(9):
        remember(person, text=f"thing {number} {'word ' * 150}")
    [told] = hook("deploy")
    shown = told.count("> thing")
    assert 0 < shown < 9
    assert f"({9 - shown} more entries not shown here" in told
    found = person("why", "--prompt", "deploy", "--json").json["entries"]
    assert [one["why"] for one in found].count("no room") == 9 - shown
    assert sum(one["told"] for one in found) == shown


# Why ----------------------------------------------------------------------------------------------


def test_why_says_what_a_prompt_would_call_up_and_changes_nothing(person, hook, home):
    remember(person, "--not", "staging", "--sticky", "1", "--cooldown", "2")

    def why(prompt):
        found = person("why", "--prompt", prompt, "--session", "s-1", "--json").json
        [one] = found["entries"]
        return found["turn"], one["told"], one["why"], one["word"], one["until"]

    assert why("hello") == (1, False, "no key", "", 0)
    assert why("deploy staging") == (1, False, "not-any", "deploy", 0)
    assert why("deploy") == why("deploy") == (1, True, "match", "deploy", 0)
    assert spells(hook("deploy")) == "x"
    assert why("hello") == (2, True, "sticky", "", 2)
    hook("hello")
    assert why("deploy") == (3, False, "cooldown", "", 4)
    before = (home / "turns" / "s-1.active").read_bytes()
    said = person("why", "--prompt", "deploy", "--session", "s-1").out
    assert f"{RULE}: silent until prompt 4" in said
    assert (home / "turns" / "s-1.active").read_bytes() == before
    assert person("why", "--session", "s-1").code == 2


@pytest.mark.deep
def test_why_counts_what_is_withheld_and_does_not_name_it(person):
    remember(person, "--candidate")
    done = person("why", "--prompt", "deploy")
    assert "1 with keys are withheld" in done.out
    assert RULE not in done.out


# Never told ---------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(
    "withdraw",
    [
        ("suppress", RULE), ("reject", RULE, "--reason", "wrong"), ("delete", RULE),
        ("forget", "deploy by hand"), ("trust", RULE, "candidate"), ("erase", RULE, "--yes"),
    ],
)  # fmt: skip
def test_what_is_withdrawn_is_told_to_no_prompt(person, hook, home, withdraw):
    remember(person, "--sticky", "9")
    remember(person, text="another thing")
    assert spells(hook("deploy")) == "x"
    done = person(*withdraw)
    assert done.code == 0, done.err
    [told] = hook("deploy")
    assert (TEXT in told, "another thing" in told) == (False, True)
    for path in [*(home / "briefs").iterdir(), *(home / "turns").iterdir()]:
        assert b"by hand" not in path.read_bytes()
        assert b"by-hand" not in path.read_bytes()


@pytest.mark.deep
def test_the_last_one_takes_the_tables_with_it(person, hook, home):
    remember(person)
    person("forget", TEXT)
    assert hook("deploy") == [""]
    assert not list((home / "briefs").glob("*.keyed"))


def test_it_leaves_the_tables_before_the_store_commits(person, hook, home):
    """A hook that runs while the change is being made does not tell it any more."""
    remember(person)
    remember(person, text="another thing")
    author = Author(Channel.CLI_PERSON)
    with open_store(home, write=True) as store:
        with store.transaction(author, now=context.now()) as txn:
            txn.update_entry(RULE, suppressed=True)
            finish = txn.finish

            def look() -> None:
                finish()
                [told] = hook("deploy")
                assert (TEXT in told, "another thing" in told) == (False, True)

            txn.finish = look
    assert spells(hook("deploy")) == "-"


def test_a_change_that_is_only_tried_leaves_it_where_it_is(person, hook):
    remember(person)
    assert person("suppress", RULE, "--dry-run").code == 0
    assert spells(hook("deploy")) == "x"


def test_what_cannot_leave_the_tables_is_not_changed(person, hook, home, monkeypatch):
    remember(person)

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(keyed, "write", full)
        done = person("suppress", RULE)
    assert (done.code != 0, "nothing was changed" in done.err) == (True, True)
    assert person("show", RULE, "--json").json["suppressed"] is False
    assert spells(hook("deploy")) == "x"


@pytest.mark.deep
def test_only_while_it_is_true(person, hook):
    day = timedelta(days=1)
    yesterday, tomorrow = (f"{context.now() + n * day:%Y-%m-%dT%H:%MZ}" for n in (-1, 1))
    remember(person, "--valid-from", tomorrow, text="not yet")
    remember(person, "--valid-to", yesterday, text="no more")
    remember(person, "--valid-from", yesterday, "--valid-to", tomorrow, text="just now")
    [told] = hook("deploy")
    assert [text in told for text in ("not yet", "no more", "just now")] == [False, False, True]


@pytest.mark.deep
def test_no_mark_names_what_another_project_holds(person, hook, project, monkeypatch):
    """Two of one project that contradict each other are told as such; of two projects neither."""
    person("remember", "always deploy by hand", "--kind", "rule", "--keys", "deploy")
    other = project.parent / "web"
    other.mkdir()
    monkeypatch.chdir(other)
    person("remember", "never deploy by hand", "--kind", "taboo", "--keys", "deploy")
    [told] = hook("deploy", cwd=project)
    assert "always deploy by hand" in told
    assert "contradicts" not in told
    assert "never" not in told
    monkeypatch.chdir(project)
    person("remember", "never deploy by hand", "--kind", "taboo", "--keys", "deploy")
    [told] = hook("deploy", cwd=project)
    assert "contradicts" in told


def test_another_projects_entries_are_not_told_and_global_ones_are(
    person, hook, project, monkeypatch
):
    remember(person, text="of app alone")
    remember(person, "--global", text="of everyone")
    other = project.parent / "web"
    other.mkdir()
    monkeypatch.chdir(other)
    remember(person, text="of web alone")
    for folder, own in ((project, "of app alone"), (other, "of web alone")):
        [told] = hook("deploy", cwd=folder)
        assert own in told
        assert "of everyone" in told
        assert sum(f"of {name} alone" in told for name in ("app", "web")) == 1
    stranger = project.parent / "stranger"
    stranger.mkdir()
    [told] = hook("deploy", cwd=stranger)
    assert "of everyone" in told
    assert "alone" not in told


# Who may ------------------------------------------------------------------------------------------


def test_an_agent_gives_keys_to_its_own_and_not_to_a_persons(person, agent, hook):
    remember(agent)
    assert agent("set", RULE, "sticky=1").code == 0
    person("remember", "never force", "--kind", "taboo")
    [taboo] = [row["name"] for row in person("rules", "--json").json if row["kind"] == "taboo"]
    done = agent("set", taboo, "keys=zzz")
    assert (done.code, "a person has settled when it is told" in done.err) == (1, True)
    assert "never force" in person("brief").out
    person("set", RULE, "keys=ship")
    assert agent("set", RULE, "keys=").code != 0
    assert agent("undo").code != 0
    assert spells(hook("ship")) == "x"


def test_what_an_agent_proposes_is_told_when_a_person_takes_it_in(person, agent, hook):
    remember(agent, "--candidate")
    assert spells(hook("deploy")) == "-"
    assert person("accept", RULE).code == 0
    assert spells(hook("deploy")) == "x"


@pytest.mark.deep
def test_keys_are_for_what_is_written_by_hand(person, home):
    from hypatia_mem.model import Entry

    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.WORKER), now=context.now()) as txn,
    ):
        txn.put_entry(Entry("s", "it was said", kind="summary", tags=("summary",), scopes=("app",)))
    done = person("set", "s", "keys=deploy")
    assert (done.code, "made from what was said" in done.err) == (2, True)


# Out and in, and made anew ------------------------------------------------------------------------


@pytest.mark.deep
def test_an_export_takes_the_settings_along(person, hook, tmp_path, home):
    remember(person, "--sticky", "2", "--priority", "4", "--not-all", "a,b")
    before = person("set", RULE, "--json").json
    folder = tmp_path / "out"
    assert person("export", "default", str(folder)).code == 0
    person("connect", str(tmp_path / "new"), "-n", "new")
    done = person("import", str(folder), "-s", "new")
    assert done.code == 0, done.err
    assert person("set", RULE, "--json", "-s", "new").json == before


@pytest.mark.deep
def test_no_secret_leaves_among_the_keys(person, tmp_path, home):
    """Another program may have let one in; the other keys stay what they are."""
    remember(person)
    with (
        open_store(home, write=True) as store,
        store.transaction(Author(Channel.CLI_PERSON), now=context.now()) as txn,
    ):
        said = json.dumps({"keys": ["deploy", hook_kit.SECRET], "sticky": 2})
        txn.update_entry(RULE, activation=said)
    person("export", "default", str(tmp_path / "out"))
    rows = [
        json.loads(line)
        for path in (tmp_path / "out").rglob("*")
        if path.suffix == ".jsonl"
        for line in path.read_text().splitlines()
        if "deploy by hand" in line
    ]
    settings = json.loads(next(row["activation"] for row in rows if "activation" in row))
    assert settings["keys"][0] == "deploy"
    assert settings["sticky"] == 2
    assert hook_kit.SECRET not in settings["keys"][1]


@pytest.mark.deep
def test_settings_that_are_none_tell_nothing_and_break_nothing(person, hook, home):
    """As an import, or another program, may have written them."""
    remember(person)
    for said in ("{}", '{"keys": "deploy"}', '{"keys": [1, null]}', "[]", "no json", "7"):
        with (
            open_store(home, write=True) as store,
            store.transaction(Author(Channel.CLI_PERSON), now=context.now()) as txn,
        ):
            txn.update_entry(RULE, activation=said)
        assert person("set", RULE, "--json").json["activation"] is None
        assert person("rules").code == 0
        assert spells(hook("deploy")) == "-"


@pytest.mark.deep
def test_the_tables_can_be_deleted_and_are_made_again(person, hook, home):
    remember(person)
    shutil.rmtree(home / "briefs")
    (home / "briefs").mkdir()
    assert spells(hook("deploy")) == "-"
    assert "Run: hypatia-mem doctor --fix" in person("doctor").out
    person("doctor", "--fix")
    assert spells(hook("deploy")) == "x"


@pytest.mark.deep
def test_a_table_of_an_earlier_key_is_left_too(person, hook, home):
    remember(person)
    [table] = [path for path in (home / "briefs").glob("*.keyed") if path.name != keyed.ANY]
    before = table.read_bytes()
    assert person("key", "rotate").code == 0
    assert table.read_bytes() != before
    table.write_bytes(before)
    calling.leave(home, ["another", RULE])
    assert spells(hook("deploy")) == "-"


@pytest.mark.deep
def test_a_session_that_is_gone_leaves_no_state(person, hook, home):
    """The state of one that is not stored yet stays: it may be running."""
    remember(person, "--sticky", "1")
    hook("deploy")
    path = home / "turns" / "s-1.active"
    person("pin", RULE)
    assert path.exists()
    old = path.stat().st_mtime - 3600
    os.utime(path, (old, old))
    person("unpin", RULE)
    assert not path.exists()


@pytest.mark.deep
def test_sql_shows_the_settings(person):
    remember(person, "--priority", "7")
    [row] = person(
        "sql",
        "SELECT priority, activation->>'keys' AS said FROM knowledge WHERE priority > 0",
        "--json",
    ).json
    assert row["priority"] == 7
    assert json.loads(row["said"]) == ["deploy"]
