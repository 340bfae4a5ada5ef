"""A memory under any sequence of all the verbs there are, by a person and by an agent.

After each verb: every live summary and lesson stands on what is live; no edge of provenance leads
to nothing; the chain of the ledger holds; nothing withheld and nothing forgotten is in any default
read. At the end: undoing everything since the last thing that is final leads back to the state
there was then, and doing it again to the end.
"""

from __future__ import annotations

import shutil
import tempfile
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

from hypatia_mem.memory import (
    bulk,
    goals,
    history,
    projects,
    propagation,
    retention,
    review,
    tombstones,
    trust,
)
from hypatia_mem.memory.graph import merge
from hypatia_mem.model import Entry, Statement, Trust
from hypatia_mem.store.connection import open_store
from tests.memory import cascade_kit as kit
from tests.properties.verbs_world import (
    AGENT,
    CONFIG,
    PERSON,
    SCOPES,
    TURNS,
    WORDS,
    Memory,
    begun,
    said,
)
from tests.system.machine import scaled

BULK = {"delete": "", "move": "web", "pin": "", "unpin": "", "suppress": "", "unsuppress": "",
        "tag": "heap", "untag": "heap", "category": "ores", "archive": "", "unarchive": ""}  # fmt: skip
AGED = kit.settings(retention_sessions=0, retention_days=1, summary_words=20)


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
        entry = Entry(f"about-{word}", said(word), scopes=(scope,), kind=kind)
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
        if self.memory.names():
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

    @rule(at=numbers, who=who, version=st.integers(1, 4))
    def revert(self, at, who, version):
        """Go back behind a change that a person has just made, so that there is something to."""
        self.edit(at, PERSON, 21 + version)
        words = [f"{self.pick(at)}@{version}"]
        how = {"author": who, "now": self.memory.at()}
        self.memory.do(lambda: history.revert(self.memory.home, words, **how))

    @rule(turn=st.integers(1, TURNS), who=who, branch=st.booleans())
    def delete_from(self, turn, who, branch):
        how = {"scopes": None, "branch": branch, "author": who, "now": self.memory.at()}
        name = f"msg-s-1-{turn}"
        self.memory.do(lambda: propagation.delete_onward(self.memory.home, name, **how))

    @rule(at=numbers, who=who)
    def delete_entry_and_later(self, at, who):
        how = {"scopes": None, "author": who, "now": self.memory.at()}
        name = self.pick(at)
        self.memory.do(lambda: propagation.delete_onward(self.memory.home, name, **how))

    @rule(who=who)
    def delete_session(self, who):
        how = {"scopes": None, "author": who, "now": self.memory.at()}
        self.memory.do(lambda: propagation.delete(self.memory.home, ["s-1"], **how))

    @rule(
        verb=st.sampled_from(sorted(BULK)),
        who=who,
        select=st.sampled_from(["1", "1-3", "all"]),
        of=st.sampled_from(["", "s-1"]),
    )
    def many(self, verb, who, select, of):
        wanted = bulk.Filter(None, session_id=of)
        how = {"author": who, "now": self.memory.at()}
        self.memory.do(
            lambda: bulk.change(self.memory.home, verb, BULK[verb], select, wanted, **how)
        )

    @rule(turn=st.integers(1, TURNS), who=who, number=numbers)
    def edit_message(self, turn, who, number):
        how = {"scopes": None, "author": who, "now": self.memory.at()}
        name, words = f"msg-s-1-{turn}", f"words number {number} of somebody"
        self.memory.do(lambda: trust.edit(self.memory.home, name, words, **how))

    @rule(turn=st.integers(1, TURNS), scope=st.sampled_from(SCOPES))
    def move_message(self, turn, scope):
        how = {"scopes": None, "author": PERSON, "now": self.memory.at()}
        name = f"msg-s-1-{turn}"
        self.memory.do(lambda: propagation.move(self.memory.home, [name], scope, **how))

    @rule(new=st.sampled_from(["app", "mine", "pit"]), who=who)
    def rename_project(self, new, who):
        with open_store(self.memory.home, write=False) as store:
            old = [one.scope for one in store.projects()]
        how = {"author": who, "now": self.memory.at()}
        if old:
            self.memory.do(lambda: projects.rename(self.memory.home, old[0], new, **how))

    @rule(at=numbers, who=who, rewritten=st.booleans())
    def take_in(self, at, who, rewritten):
        how = {"scopes": None, "author": who, "now": self.memory.at()}
        words = {"text": f"taken in as number {at}"} if rewritten else {}
        name = self.pick(at)
        self.memory.do(lambda: review.accept(self.memory.home, [name], **words, **how))

    @rule(at=numbers, other=numbers, who=who)
    def take_together(self, at, other, who):
        how = {"scopes": None, "author": who, "now": self.memory.at()}
        one, into = self.pick(at), self.pick(other)
        self.memory.do(lambda: review.merge(self.memory.home, one, into, **how))

    @rule(at=numbers, who=who)
    def defer(self, at, who):
        how = {"days": 3, "scopes": None, "author": who, "now": self.memory.at()}
        name = self.pick(at)
        self.memory.do(lambda: review.defer(self.memory.home, [name], **how))

    @rule(who=who)
    def let_go(self, who):
        how = {"dry_run": False, "author": who, "now": self.memory.at()}
        self.memory.do(lambda: retention.apply(self.memory.home, AGED, "app", **how))

    @rule(at=numbers, who=who)
    def lift(self, at, who):
        with open_store(self.memory.home, write=False) as store:
            there = [one.id for one in tombstones.listed(store, None)]
        how = {"scopes": None, "author": who, "now": self.memory.at()}
        if there:
            which = [there[at % len(there)]]
            self.memory.do(lambda: tombstones.lift(self.memory.home, which, **how))
            self.memory.still_kept_away()

    @rule(who=who)
    def rotate(self, who):
        how = {"author": who, "now": self.memory.at()}
        self.memory.do(lambda: tombstones.rotate_key(self.memory.home, **how))

    @rule(number=numbers, who=who)
    def aim(self, number, who):
        how = {"steps": ("dig", "sell"), "scope": "app", "author": who, "now": self.memory.at()}
        self.memory.do(lambda: goals.put(self.memory.home, f"open pit {number}", **how))

    @rule(number=numbers, who=who, step=st.integers(0, 2))
    def reach(self, number, who, step):
        how = {"step": step, "scopes": SCOPES, "author": who, "now": self.memory.at()}
        self.memory.do(lambda: goals.done(self.memory.home, f"open pit {number}", **how))

    @rule()
    def export_and_import(self):
        self.memory.carried_over()

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
    "in bulk, gone back, put together, carried over": [
        ("create", {"word": "amber", "who": PERSON, "scope": "app", "kind": "rule"}),
        ("create", {"word": "basalt", "who": AGENT, "scope": "app", "kind": "rule"}),
        ("many", {"verb": "tag", "who": PERSON, "select": "all", "of": ""}),
        ("edit", {"at": 0, "who": PERSON, "number": 7}),
        ("revert", {"at": 0, "who": PERSON, "version": 1}),
        ("defer", {"at": 1, "who": PERSON}),
        ("take_together", {"at": 1, "other": 0, "who": PERSON}),
        ("export_and_import", {}),
        ("many", {"verb": "delete", "who": PERSON, "select": "all", "of": ""}),
    ],
    "messages edited, cut off, let go, lifted": [
        ("edit_message", {"turn": 2, "who": PERSON, "number": 4}),
        ("condense", {}),
        ("many", {"verb": "suppress", "who": PERSON, "select": "1-3", "of": "s-1"}),
        ("delete_from", {"turn": 6, "who": PERSON, "branch": False}),
        ("rename_project", {"new": "mine", "who": PERSON}),
        ("let_go", {"who": PERSON}),
        ("create", {"word": "cobalt", "who": AGENT, "scope": "mine", "kind": "rule"}),
        ("reject", {"at": 0, "who": PERSON}),
        ("rotate", {"who": PERSON}),
        ("lift", {"at": 0, "who": PERSON}),
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
