"""A memory under any sequence of all the verbs there are, by a person and by an agent.

After each verb: every live summary and lesson stands on what is live; no edge of provenance leads
to nothing; the chain of the ledger holds; nothing withheld and nothing forgotten is in any default
read. At the end: undoing everything since the last thing that is final leads back to the state
there was then, and doing it again to the end.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hypatia_mem.capture import paths
from hypatia_mem.errors import HypatiaError
from hypatia_mem.memory import curate, history, propagation, trust
from hypatia_mem.memory.graph import merge
from hypatia_mem.model import Author, Channel, Entry, Statement, Trust
from hypatia_mem.store import sources, summaries
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.entries import is_withheld
from hypatia_mem.store.search import SearchIndex
from tests.memory import cascade_kit as kit
from tests.system.machine import scaled

PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
NOW = datetime(2026, 11, 30, 12)
TURNS = 6
SCOPES = ("app", "web", "")
CONFIG = kit.settings(cascade_batch=2, cascade_max_tokens=200)
WORDS = ("amber", "basalt", "cobalt", "dolomite", "ebony", "feldspar", "garnet", "heliodor")
_begun: list[Path] = []


def begun() -> Path:
    """Return a memory with a few turns and their summaries; made once, copied for each run."""
    if not _begun:
        home = Path(tempfile.mkdtemp(prefix="hypatia-verbs-")) / "home"
        paths.ensure_home(str(home))
        kit.fill(home, kit.talk(TURNS))
        kit.run(home, CONFIG)
        _begun.append(home)
    return _begun[0]


class Memory:
    """A store, the operations since the last final one, and the state there was then."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.now = NOW
        self.forgotten: set[str] = set()
        self.done: list[str] = []
        self.start = self.dump()

    def at(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    # -- doing

    def do(self, work, *, final: bool = False) -> bool:
        """Do something; note its operations. Whatever is refused has changed nothing."""
        before, was = self._seq(), self.dump()
        try:
            work()
        except HypatiaError:
            assert self.dump() == was, "what was refused has changed something"
            return False
        after = self.dump()
        if after == was:
            return False
        if final:
            self.done, self.start = [], after
        else:
            self.done += self._operations(before)
        return True

    def change(self, author: Author, work) -> None:
        with open_store(self.home, write=True) as store:
            with store.transaction(author, now=self.at()) as txn:
                work(txn)

    def _seq(self) -> int:
        with open_store(self.home, write=False) as store:
            return store.ledger_seq()

    def _operations(self, after: int) -> list[str]:
        with open_store(self.home, write=False) as store:
            rows = store.run("SELECT op_id, verb FROM mutation WHERE seq > ? ORDER BY seq", [after])
        idle = ("refuse", "hide", "show")
        return list(dict.fromkeys(r["op_id"] for r in rows if not r["verb"].startswith(idle)))

    # -- looking

    def dump(self) -> list[list[str]]:
        """Return what there is, but for what only says when and how often it was written."""
        with open_store(self.home, write=False) as store:
            found = [
                store.run(
                    "SELECT name, content, list_sort(tags), list_sort(scopes), synonyms, kind,"
                    " trust, pinned, suppressed, valid_from, valid_to FROM entry"
                ),
                store.run("SELECT triple, content, list_sort(scopes), trust FROM statement"),
                store.run("SELECT session_id, turn, uuid, parent_uuid, parts FROM message"),
                store.run("SELECT id, project, title FROM session"),
                store.run("SELECT DISTINCT digest, scope FROM tombstone"),
            ]
        return [sorted(json.dumps(row, default=str) for row in rows) for rows in found]

    def names(self) -> list[str]:
        with open_store(self.home, write=False) as store:
            rows = store.run("SELECT name FROM entry WHERE kind IN ('knowledge', 'rule')")
        return sorted(row["name"] for row in rows)

    def summaries(self) -> list[str]:
        return [one.name for one in kit.summaries(self.home)]

    # -- what has to hold

    def holds(self) -> None:
        with open_store(self.home, write=False) as store:
            assert store.verify_ledger() is None
            assert summaries.broken(store) == []
            assert sources.orphans(store) == []
            entries = store.entries(row["name"] for row in store.run("SELECT name FROM entry"))
            live = {one.name for one in store.live_entries(one.name for one in entries)}
            links = store.run(
                "SELECT subject, object FROM statement"
                " WHERE predicate IN ('summary', 'derivedFrom', 'supersedes')"
            )
            there = {one.name for one in entries}
            assert {end for row in links for end in row.values()} <= there, "an edge to nothing"
            told = {one.name for one in store.rules([*SCOPES])}
            edges = store.run("SELECT subject, object FROM live_statement")
        hidden = {one.name for one in entries if is_withheld(one)}
        assert live == there - hidden
        assert not told & hidden
        assert not {end for row in edges for end in row.values()} & hidden
        self._not_found(hidden)

    def _not_found(self, hidden: set[str]) -> None:
        """Ask the index, and read the briefs that a hook would print."""
        curate.refresh(self.home)
        index = SearchIndex(self.home)
        for word in (*WORDS, "report"):
            found = {hit.name for hit in index.search(word, scopes=None, limit=200)}
            assert not {name for name in found if name in hidden}, "a hit that is withheld"
            assert word not in self.forgotten or not found, "a hit on what was forgotten"
        told = "".join(
            path.read_text("utf-8") for path in (self.home / "briefs").iterdir() if path.is_file()
        )
        assert not {word for word in self.forgotten if word in told}
        with open_store(self.home, write=False) as store:
            for one in store.entries(hidden):
                assert one.kind in ("message", "summary") or one.content not in told

    def back_and_forth(self) -> None:
        """Undo all since the last final thing, in reverse; then do it all again."""
        end = self.dump()
        for op_id in reversed(self.done):
            history.undo(self.home, op_id, author=PERSON, now=self.at())
        assert self.dump() == self.start, "undoing everything does not lead back"
        self.holds()
        for op_id in self.done:
            history.redo(self.home, op_id, author=PERSON, now=self.at())
        assert self.dump() == end, "doing it all again does not lead to the end"
        self.holds()


class Verbs(RuleBasedStateMachine):
    """Every verb, with whatever names there are."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="hypatia-verbs-"))
        shutil.copytree(begun(), self.folder / "home")
        self.memory = Memory(self.folder / "home")

    def teardown(self) -> None:
        try:
            self.memory.back_and_forth()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def pick(self, at: int) -> str:
        names = self.memory.names()
        return names[at % len(names)] if names else "nothing"

    numbers = st.integers(0, 20)
    who = st.sampled_from([PERSON, AGENT])
    words = st.sampled_from(WORDS)

    @rule(
        word=words,
        who=who,
        scope=st.sampled_from(SCOPES),
        kind=st.sampled_from(["rule", "knowledge"]),
    )
    def create(self, word, who, scope, kind):
        entry = Entry(f"about-{word}", f"the {word} mine was opened", scopes=(scope,), kind=kind)
        if who is PERSON and word in self.memory.forgotten:
            return  # a person may say it again: then it is not forgotten any more
        self.memory.do(lambda: self.memory.change(who, lambda t: t.put_entry(entry, replace=True)))

    @rule(at=numbers, who=who, number=numbers)
    def edit(self, at, who, number):
        name, words = self.pick(at), f"words number {number} of somebody"
        self.memory.do(
            lambda: self.memory.change(who, lambda txn: txn.update_entry(name, content=words))
        )

    @rule(at=numbers, who=who, state=st.sampled_from(list(Trust)))
    def judge(self, at, who, state):
        if state == Trust.REJECTED and self.pick(at).removeprefix("about-") in WORDS:
            state = Trust.STALE  # rejecting is tried by a rule of its own
        name = self.pick(at)
        how = {"reason": "so it is", "scopes": None, "author": who, "now": self.memory.at()}
        self.memory.do(lambda: trust.set_trust(self.memory.home, [name], state, **how))

    @rule(at=numbers, who=who)
    def reject(self, at, who):
        name = self.pick(at)
        how = {"reason": "it is wrong", "scopes": None, "author": who, "now": self.memory.at()}
        self.memory.do(lambda: trust.set_trust(self.memory.home, [name], Trust.REJECTED, **how))

    @rule(at=numbers, who=who, verb=st.sampled_from(["pin", "unpin", "suppress", "unsuppress"]))
    def mark(self, at, who, verb):
        name = self.pick(at)
        how = {"scopes": None, "author": who, "now": self.memory.at()}
        self.memory.do(lambda: trust.mark(self.memory.home, [name], verb, **how))

    @rule(turn=st.integers(1, TURNS), verb=st.sampled_from(["suppress", "unsuppress"]))
    def mark_message(self, turn, verb):
        how = {"scopes": None, "author": PERSON, "now": self.memory.at()}
        self.memory.do(lambda: trust.mark(self.memory.home, [f"msg-s-1-{turn}"], verb, **how))

    @rule(a=numbers, b=numbers, who=who)
    def tie(self, a, b, who):
        one = Statement(self.pick(a), "leads_to", self.pick(b), scopes=("app",))
        self.memory.do(lambda: self.memory.change(who, lambda txn: txn.put_statement(one)))

    @rule(a=numbers, turn=st.integers(1, TURNS))
    def learn(self, a, turn):
        one = Statement(self.pick(a), "derivedFrom", f"msg-s-1-{turn}", scopes=("app",))
        there = self.memory.names()
        with open_store(self.memory.home, write=False) as store:
            live = store.live_entries([one.subject, one.object])
        if there and len(live) == 2:
            self.memory.do(lambda: self.memory.change(AGENT, lambda txn: txn.put_statement(one)))

    @rule(a=numbers, b=numbers)
    def untie(self, a, b):
        ends = (self.pick(a), "leads_to", self.pick(b))
        self.memory.do(lambda: self.memory.change(PERSON, lambda t: t.delete_statement(*ends)))

    @rule(at=numbers, who=who)
    def delete(self, at, who):
        how = {"scopes": None, "author": who, "now": self.memory.at()}
        name = self.pick(at)
        self.memory.do(lambda: propagation.delete(self.memory.home, [name], **how))

    @rule(turn=st.integers(1, TURNS))
    def delete_message(self, turn):
        how = {"scopes": None, "author": PERSON, "now": self.memory.at()}
        name = f"msg-s-1-{turn}"
        self.memory.do(lambda: propagation.delete(self.memory.home, [name], **how))

    @rule(at=numbers)
    def delete_summary(self, at):
        made = self.memory.summaries()
        how = {"scopes": None, "author": PERSON, "now": self.memory.at()}
        if made:
            name = made[at % len(made)]
            self.memory.do(lambda: propagation.delete(self.memory.home, [name], **how))

    @rule(at=numbers, scope=st.sampled_from(SCOPES))
    def move(self, at, scope):
        how = {"scopes": None, "author": PERSON, "now": self.memory.at()}
        name = self.pick(at)
        self.memory.do(lambda: propagation.move(self.memory.home, [name], scope, **how))

    @rule(a=numbers, b=numbers, force=st.booleans())
    def unite(self, a, b, force):
        how = {"scopes": None, "force": force, "author": PERSON, "now": self.memory.at()}
        one, other = self.pick(a), self.pick(b)
        self.memory.do(lambda: merge.merge(self.memory.home, one, other, **how))

    @rule()
    def condense(self):
        self.memory.do(lambda: kit.run(self.memory.home, CONFIG, now=self.memory.at()))

    @rule(word=words)
    def forget(self, word):
        """Final: nothing before it can be undone any more as if it had not been."""
        name = f"about-{word}"
        if self.memory.do(
            lambda: self.memory.change(
                PERSON, lambda txn: txn.delete_entry(name, "forget", tombstone=True)
            ),
            final=True,
        ):
            self._nothing_says(word)

    def _nothing_says(self, word):
        """Other entries may have taken its words in by a merge, or have got its name."""
        with open_store(self.memory.home, write=False) as store:
            rows = store.run(
                "SELECT name FROM entry WHERE contains(content, $1) OR contains(name, $1)"
                " OR list_contains(synonyms, $2)",
                [word, f"about-{word}"],
            )
        if not rows:
            self.memory.forgotten.add(word)

    @precondition(lambda self: self.memory.done)
    @rule()
    def undo(self):
        """Undoing is itself an operation that can be undone: it is noted as one."""
        last = self.memory.done[-1]
        how = {"author": PERSON, "now": self.memory.at()}
        before = self.memory.dump()
        history.undo(self.memory.home, last, **how)
        history.redo(self.memory.home, last, **how | {"now": self.memory.at()})
        assert self.memory.dump() == before, "undone and done again is not the same"

    @invariant()
    def it_holds(self):
        self.memory.holds()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_any_sequence_of_verbs():
    run_state_machine_as_test(
        Verbs,
        settings=settings(
            max_examples=scaled(25),
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


SEQUENCES = {
    "said, judged, tied, undone": [
        ("create", {"word": "amber", "who": AGENT, "scope": "app", "kind": "rule"}),
        ("create", {"word": "basalt", "who": PERSON, "scope": "app", "kind": "knowledge"}),
        ("tie", {"a": 0, "b": 1, "who": AGENT}),
        ("judge", {"at": 0, "who": PERSON, "state": Trust.VERIFIED}),
        ("mark", {"at": 0, "who": PERSON, "verb": "suppress"}),
        ("undo", {}),
    ],
    "rejected, said again, deleted": [
        ("create", {"word": "cobalt", "who": AGENT, "scope": "app", "kind": "rule"}),
        ("reject", {"at": 0, "who": PERSON}),
        ("create", {"word": "cobalt", "who": AGENT, "scope": "app", "kind": "rule"}),
        ("edit", {"at": 0, "who": AGENT, "number": 3}),
        ("delete", {"at": 0, "who": PERSON}),
    ],
    "derived, moved, united": [
        ("create", {"word": "dolomite", "who": AGENT, "scope": "app", "kind": "knowledge"}),
        ("create", {"word": "ebony", "who": AGENT, "scope": "app", "kind": "knowledge"}),
        ("learn", {"a": 0, "turn": 2}),
        ("unite", {"a": 0, "b": 1, "force": True}),
        ("delete_message", {"turn": 2}),
        ("move", {"at": 0, "scope": "web"}),
    ],
    "forgotten, then on": [
        ("create", {"word": "garnet", "who": AGENT, "scope": "app", "kind": "rule"}),
        ("forget", {"word": "garnet"}),
        ("create", {"word": "garnet", "who": AGENT, "scope": "app", "kind": "rule"}),
        ("delete_summary", {"at": 0}),
        ("condense", {}),
    ],
}


@pytest.mark.deep
@pytest.mark.parametrize("steps", SEQUENCES.values(), ids=SEQUENCES)
def test_a_few_sequences_of_verbs(steps):
    """The short twin of the campaign: the same rules, four ways through."""
    machine = Verbs()
    machine.it_holds()
    try:
        for verb, given in steps:
            getattr(machine, verb)(**given)
            machine.it_holds()
    finally:
        machine.teardown()
