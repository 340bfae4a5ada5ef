"""The engine is started outside the lease, used again, and never in a state that tells anything."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import duckdb
import pytest

from hypatia_mem.errors import StoreError
from hypatia_mem.store import connection, engine
from hypatia_mem.store.connection import FILE, open_store


@pytest.fixture
def started(monkeypatch) -> list[str]:
    """What engines were started in the test, each by the folder it was told to spill into."""
    folders: list[str] = []
    real = engine._started

    def counted(spill: str) -> duckdb.DuckDBPyConnection:
        folders.append(spill)
        return real(spill)

    engine._close_left_over()
    monkeypatch.setattr(engine, "_started", counted)
    return folders


def note(home: Path, key: str) -> None:
    with open_store(home, write=True) as store:
        store.execute("INSERT INTO meta VALUES (?, 'x')", [key])


def noted(home: Path, key: str) -> str:
    with open_store(home, write=False) as store:
        return store.meta(key)


def test_one_engine_serves_all_stores_of_a_process(tmp_path, started):
    for number in range(3):
        for name in ("one", "two"):
            note(tmp_path / name, str(number))
            assert noted(tmp_path / name, str(number)) == "x"
    assert len(started) == 1


def test_a_large_query_spills_into_its_own_home(tmp_path, started):
    note(tmp_path / "one", "a")
    with open_store(tmp_path / "two", write=False) as store:
        found = store.run("SELECT current_setting('temp_directory') AS folder")
    assert found == [{"folder": str(tmp_path / "two" / ".spill")}]
    assert len(started) == 1


def test_a_store_inside_another_has_an_engine_of_its_own(tmp_path, started):
    note(tmp_path / "two", "a")
    with open_store(tmp_path / "one", write=True), open_store(tmp_path / "two", write=False) as two:
        assert two.meta("a") == "x"
    assert len(started) == 2
    assert noted(tmp_path / "two", "a") == "x"
    assert len(started) == 2


@pytest.mark.parametrize("how", ["raised", "let go", "left attached", "refused"])
def test_an_engine_that_is_not_as_it_was_is_not_used_again(tmp_path, started, how):
    home = tmp_path / "home"
    note(home, "a")
    if how == "raised":
        with pytest.raises(KeyError):
            with open_store(home, write=True):
                raise KeyError
    elif how == "let go":
        with open_store(home, write=False) as store:
            store.execute("CREATE TABLE memory.main.result AS SELECT 'a secret' AS said")
            store.let_go()
    elif how == "left attached":
        with open_store(home, write=False) as store:
            store.execute("ATTACH ':memory:' AS more")
    else:
        with pytest.raises(StoreError):
            with open_store(home, write=True) as store:
                store.execute("SELECT nothing")
    assert noted(home, "a") == "x"
    assert len(started) == 2
    with open_store(home, write=False) as store:
        assert store.run(
            "SELECT count(*) AS n FROM duckdb_tables() WHERE database_name = 'memory'"
        ) == [{"n": 0}]


def test_nothing_of_a_store_is_open_between_two_uses(tmp_path):
    home = tmp_path / "home"
    note(home, "a")
    held = Path("/proc/self/fd")
    if not held.exists():
        pytest.skip("the kernel does not tell which files are open")
    files = {os.readlink(one) for one in held.iterdir() if one.exists()}
    assert str(home / FILE) not in files
    with open_store(home, write=False):
        files = {os.readlink(one) for one in held.iterdir() if one.exists()}
        assert str(home / FILE) in files


def test_a_store_that_was_replaced_is_read_anew(tmp_path, started):
    note(tmp_path / "one", "old")
    note(tmp_path / "two", "new")
    (tmp_path / "two" / FILE).replace(tmp_path / "one" / FILE)
    assert (noted(tmp_path / "one", "old"), noted(tmp_path / "one", "new")) == ("", "x")
    assert len(started) == 1


def test_an_engine_is_running_before_the_lease_is_taken(tmp_path, started, monkeypatch):
    order: list[str] = []
    real = connection.lease
    monkeypatch.setattr(
        connection, "lease", lambda *a, **k: (order.append("lease"), real(*a, **k))[1]
    )
    counted = engine._started
    monkeypatch.setattr(
        engine, "_started", lambda spill: (order.append("engine"), counted(spill))[1]
    )
    note(tmp_path / "home", "a")
    assert order == ["engine", "lease"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_starts_an_engine_of_its_own(tmp_path):
    home = tmp_path / "home"
    note(home, "a")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if noted(home, "a") == "x" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_do_not_share_one(tmp_path, started):
    homes = [tmp_path / str(number) for number in range(4)]
    for home in homes:
        note(home, "a")
    ready = threading.Barrier(len(homes))
    found: list[str] = []

    def work(home: Path) -> None:
        ready.wait()
        for _ in range(5):
            found.append(noted(home, "a"))

    threads = [threading.Thread(target=work, args=(home,)) for home in homes]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == ["x"] * 20


def _compressions(home: Path, table: str, column: str) -> list[set[str]]:
    """Return how each full or last group of a column's rows is compressed."""
    with open_store(home, write=False) as store:
        found = store.run(
            f"SELECT row_group_id AS part, compression FROM pragma_storage_info('{table}')"
            f" WHERE column_name = '{column}' AND segment_type = 'VARCHAR'"
        )
    parts: dict[int, set[str]] = {}
    for row in found:
        parts.setdefault(row["part"], set()).add(row["compression"].upper())
    return [parts[part] for part in sorted(parts)]


def test_rows_are_compressed_quickly_until_their_group_is_complete(tmp_path):
    home = tmp_path / "home"
    for start in (0, 2500, 5000):  # the second fills the first group
        with open_store(home, write=True) as store:
            store.execute(
                "INSERT INTO meta SELECT md5(i::VARCHAR), md5((i + 1)::VARCHAR)"
                " FROM range(?, ?) AS t(i)",
                [start, start + 2500],
            )
        parts = _compressions(home, "meta", "value")
        assert ("DICT_FSST" in parts[0]) is (start > 0)
    assert len(parts) == 2
    assert "DICT_FSST" not in parts[-1]
