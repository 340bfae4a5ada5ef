"""Every verb killed with -9 at its write boundaries, on a full disk, and eight times at once.

A boundary is each statement inside a transaction, the ledger's rows before and after they are
written, the moment behind the commit, and each file that is put in its place. ``survival.md`` is
the table of a run. Here each verb is killed at a few boundaries; the whole matrix, with
``HYPATIA_TEST_POINTS`` at more than there are, is for ``test_suites_on_the_wheel.py``.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hypatia_mem.memory.erasing.places import JOB
from tests.contracts import survival_kit as kit
from tests.contracts.survival_kit import DOUBTED, NOTE, RULE, VERBS
from tests.disk import Disk, mounted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]
COMMITTED = Path(__file__).with_name("survival.md")
POINTS = int(os.environ.get("HYPATIA_TEST_POINTS", "6"))  # those around the commit always
SLOW = {"erase": 16, "restore": 24}  # at most so many: each is finished and looked through
FEWER = dict.fromkeys(
    ("drain", "cascade run", "retention apply", "delete-from", "redo", "review accept",
     "review reject", "revert"), 12,
)  # fmt: skip
REJECTED = {"reject": NOTE, "review reject": DOUBTED}
ONWARD = ("import", "drain", "cascade run")  # of several transactions: what is cut short goes on
AT_ONCE = 8
LONG = ("drain", "cascade run", "retention apply")  # eight of them at once: on the wheel alone
LEFT = (0, 256 << 10, 32 << 10, 1 << 20, 2 << 20)[: 2 if POINTS < 10 else 5]  # bytes
TOGETHER = (
    ["remember", "always run the linter"],
    ["remember", "always read the log first"],
    ["forget", "staging db"],
    ["pin", RULE],
    ["knowledge-update", "postgres", "-d", "the database of billing"],
    ["statement-delete", "billing", "uses", "pg"],
    ["delete", "s1:2"],
    ["tombstone", "lift", "memory:the-printer-is-on-the-second-floor"],
)


@pytest.fixture(scope="module")
def doer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kit.Doer]:
    doer = kit.Doer(tmp_path_factory.mktemp("doer"))
    yield doer
    doer.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, doer: kit.Doer) -> kit.Template:
    return kit.Template(tmp_path_factory.mktemp("survival"), doer)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    with mounted(tmp_path_factory.mktemp("small") / "disk", 16) as disk:
        yield disk


def committed(verb: str) -> dict[str, str]:
    """Return a verb's row of the table, by column."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in COMMITTED.read_text("utf-8").splitlines()
        if line.startswith("| ")
    ]
    (found,) = [row for row in rows if row[0] == verb]
    return dict(zip(rows[0], found, strict=True))


def chosen(verb: str, done: kit.Done) -> list[int]:
    """Return the boundaries to be killed at: those around the last commit, and some of the rest."""
    count, ended = done.boundaries, done.ended
    points = min(POINTS, {**SLOW, **FEWER}.get(verb, count))
    if count <= points:
        return list(range(1, count + 1))
    even = {1 + n * (count - 1) // (points - 4) for n in range(points - 3)}
    return sorted({*even, *range(max(1, ended - 1), min(count, ended + 1) + 1)})


class Row:
    """What a verb makes of a memory, and whether that is what became of one."""

    def __init__(self, verb: str, template: kit.Template, doer: kit.Doer, whole: Path) -> None:
        self.verb, self.doer = verb, doer
        self.words = template.words(VERBS[verb])
        self.before = kit.dump(template.of(verb))
        self.done = doer.run(template.copy(verb, whole), self.words)
        assert self.done.code == 0, self.done.err
        self.after, self.noted = kit.dump(whole), kit.ledger(whole)
        assert self.after != self.before

    def finished(self, home: Path, what: str) -> bool:
        """Tell whether it was done; else it is as it was before, and done again it is done."""
        found = kit.dump(home)
        if self.verb == "erase" and (home / JOB).exists():
            found = self._resumed(home)
        if found == self.after:
            # What changed is in the ledger, for both are one transaction.
            assert self.verb in SLOW or kit.ledger(home) >= self.noted, what
            return True
        if self.verb in REJECTED and found != self.before:
            # Written down as kept away, and not yet as rejected: whoever reads next takes it out.
            assert REJECTED[self.verb] not in found[0], what
            assert RULE in found[0], what
            return True
        if self.verb not in ONWARD:
            assert found == self.before, what
        again = self.doer.run(home, self.words)
        assert again.code == 0, f"{what}: {again.err}"
        assert kit.dump(home) == self.after, what
        return False

    def _resumed(self, home: Path) -> tuple[str, ...]:
        done = self.doer.run(home, kit.RESUME)
        assert done.code == 0, done.err
        return kit.dump(home)


@pytest.mark.parametrize("verb", VERBS)
def test_killed_at_its_write_boundaries(template, doer, tmp_path, verb):
    row = Row(verb, template, doer, tmp_path / "whole")
    count = row.done.boundaries
    ends = []
    for point in chosen(verb, row.done):
        home = template.copy(verb, tmp_path / f"at-{point}")
        assert doer.run(home, row.words, point).code == -signal.SIGKILL
        ends.append(row.finished(home, f"{verb} killed at {point} of {count}"))
        shutil.rmtree(home)
    assert count >= 3
    assert any(ends), "behind the commit it is there"
    print(f"\n| {verb} | {count} | whole |")
    said = committed(verb)
    assert said["killed"] == "whole"
    assert abs(int(said["boundaries"]) - count) <= count / 3


@pytest.mark.parametrize("verb", VERBS)
def test_on_a_full_disk(template, doer, disk, tmp_path, verb):
    row = Row(verb, template, doer, tmp_path / "whole")
    refused = 0
    for left in LEFT:
        shutil.rmtree(disk.path / "home", ignore_errors=True)
        home = template.copy(verb, disk.path / "home")
        disk.fill(left)
        done = doer.run(home, row.words)
        disk.free()
        if done.code:
            refused += 1
            told = (done.out + done.err).lower()
            assert any(word in told for word in ("no space", "no room")), (left, done)
            assert "Traceback" not in done.err
        finished = row.finished(home, f"{verb} with {left} bytes left")
        assert finished or done.code, "it said that it was done"
        shutil.rmtree(home)
    assert refused, "it was never full"
    assert committed(verb)["full disk"] == "whole"


@pytest.mark.parametrize("verb", VERBS if POINTS >= 10 else [v for v in VERBS if v not in LONG])
def test_eight_times_at_once(template, doer, tmp_path, verb):
    """It ends as if they had come one after the other, and whoever is refused is told why."""
    words = template.words(VERBS[verb])
    home = template.copy(verb, tmp_path / "at-once")
    done = doer.all(home, [words] * AT_ONCE)
    said = [one.err for one in done]
    assert all(one.code in (0, 1, 2, 5) for one in done), [one.code for one in done]
    assert all(one.err.strip() for one in done if one.code), said
    well = sum(one.code == 0 for one in done)
    assert well, said
    alone = template.copy(verb, tmp_path / "alone")
    for _ in range(well):
        doer.run(alone, words)
    assert kit.dump(home) == kit.dump(alone), said
    assert committed(verb)["eight at once"] == "whole"


def test_eight_different_things_at_once_are_all_done(template, doer, tmp_path):
    home = template.copy("", tmp_path / "at-once")
    done = doer.all(home, [*TOGETHER])
    assert [one.code for one in done] == [0] * AT_ONCE, [one.err for one in done]
    alone = template.copy("", tmp_path / "alone")
    assert all(doer.run(alone, words).code == 0 for words in TOGETHER)
    assert kit.dump(home) == kit.dump(alone)
