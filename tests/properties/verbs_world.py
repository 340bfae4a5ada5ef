"""What the test of all verbs acts on: a memory, its operations, and what has to hold of it."""

from __future__ import annotations

import json
import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from hypatia_mem.capture import paths
from hypatia_mem.errors import HypatiaError
from hypatia_mem.memory import curate, history, tombstones
from hypatia_mem.memory.sharing import exporting, importing
from hypatia_mem.model import Author, Channel
from hypatia_mem.store import chain, sources, summaries
from hypatia_mem.store.connection import open_store
from hypatia_mem.store.entries import is_withheld
from hypatia_mem.store.search import SearchIndex
from tests.memory import cascade_kit as kit

PERSON = Author(Channel.CLI_PERSON, "person")
AGENT = Author(Channel.CLI_AGENT, "agent")
NOW = datetime(2026, 11, 30, 12)
TURNS = 6
SCOPES = ("app", "web", "")
CONFIG = kit.settings(cascade_batch=2, cascade_max_tokens=200)
WORDS = ("amber", "basalt", "cobalt", "dolomite", "ebony", "feldspar", "garnet", "heliodor")
_begun: list[Path] = []
_VERDICTS, _VERIFIED = 5, '"trust": "verified"'


def begun() -> Path:
    """Return a memory with a few turns and their summaries; made once, copied for each run."""
    if not _begun:
        home = Path(tempfile.mkdtemp(prefix="hypatia-verbs-")) / "home"
        paths.ensure_home(str(home))
        kit.fill(home, kit.talk(TURNS))
        kit.run(home, CONFIG)
        _begun.append(home)
    return _begun[0]


def said(word: str) -> str:
    """Return what an entry about a word says."""
    return f"the {word} mine was opened"


class Memory:
    """A store, the operations since the last final one, and the state there was then."""

    def __init__(self, home: Path, *, make: bool = False) -> None:
        self.home = home
        if make:
            paths.ensure_home(str(home))
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
                    " trust, pinned, suppressed, valid_from, valid_to, category, priority FROM entry"
                ),
                store.run("SELECT triple, content, list_sort(scopes), trust FROM statement"),
                store.run("SELECT session_id, turn, uuid, parent_uuid, parts FROM message"),
                store.run(
                    "SELECT id, project, title, pinned, archived, list_sort(tags) FROM session"
                ),
                store.run("SELECT DISTINCT digest, scope FROM tombstone"),
                store.run(
                    "SELECT name, trust, reason, until FROM verdict"
                    " WHERE concat(name, trust) IN (SELECT concat(name, trust) FROM entry)"
                ),
            ]
        return [sorted(json.dumps(row, default=str) for row in rows) for rows in found]

    def names(self) -> list[str]:
        with open_store(self.home, write=False) as store:
            rows = store.run("SELECT name FROM entry WHERE kind IN ('knowledge', 'rule')")
        return sorted(row["name"] for row in rows)

    def summaries(self) -> list[str]:
        return [one.name for one in kit.summaries(self.home)]

    # -- what has to hold

    def holds(self, *, sealed: bool = True) -> None:
        with open_store(self.home, write=False) as store:
            walked = chain.walk(store)
            assert walked.broken == ""
            assert not sealed or walked.sealed in (walked.rows, None)
            assert summaries.broken(store) == []
            assert sources.orphans(store) == []
            entries = store.entries(row["name"] for row in store.run("SELECT name FROM entry"))
            live = {one.name for one in store.live_entries(one.name for one in entries)}
            links = store.run(
                "SELECT subject, object FROM statement"
                " WHERE predicate IN ('summary', 'derivedFrom', 'supersedes', 'leads_to')"
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

    def carried_over(self) -> None:
        """Write all of it out, take it in elsewhere: the same is there, and the same is not."""
        folder = self.home.with_name(f"export-{self.now:%H%M%S}")
        exporting.export_shelf(self.home, folder)
        there = Memory(folder.with_name(f"{folder.name}-home"), make=True)
        importing.import_shelf(there.home, folder, author=PERSON, now=self.at())
        there.forgotten, there.now = self.forgotten, self.now
        there.holds(sealed=False)
        mine, found = self.dump(), there.dump()
        for what, (one, other) in enumerate(zip(mine, found, strict=True)):
            if what == _VERDICTS:  # what somebody else has verified is nobody's word here
                one = [row for row in one if _VERIFIED not in row]
            one = sorted(row.replace(_VERIFIED, '"trust": "asserted"') for row in one)
            assert other == one, f"table {what} is another one after an import"
        for path in (folder, there.home):
            shutil.rmtree(path)

    def still_kept_away(self) -> None:
        """Look which words are forgotten still: a tombstone may have been lifted."""
        with open_store(self.home, write=False) as store:
            self.forgotten = {
                word
                for word in self.forgotten
                if tombstones.check(store, said(word), SCOPES).verdict == "refused"
            }

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
