"""The spool: one durable line per event; whatever tears, the good records stay readable."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypatia_mem.capture import paths, spool

EVENT = b'{"session_id":"s-1","hook_event_name":"Stop","last_assistant_message":"done"}'
META = b'"dir":"/p","client":"claude-code_2-1-332","entry":"cli",'
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="locks and modes of POSIX")


def put(
    home: Path, event: bytes = EVENT, *, session: str = "s-1", at: int = 10**18, **more
) -> Path:
    spool.append(str(home), session, event, at_ns=at, **more)
    return home / "spool" / f"{session}.jsonl"


def read(path: Path, offset: int = 0) -> tuple[list[spool.Record], list[spool.Damage]]:
    items = list(spool.iter_records(str(path), offset))
    return (
        [item for item in items if isinstance(item, spool.Record)],
        [item for item in items if isinstance(item, spool.Damage)],
    )


def prompts(path: Path, offset: int = 0) -> list[str]:
    return [record.event["n"] for record in read(path, offset)[0]]


def numbered(number: int, size: int = 0) -> bytes:
    return json.dumps({"n": number, "text": "x" * size}).encode()


# -- writing


def test_record_is_one_documented_line(home):
    """Format v1, byte by byte: any JSON reader can take it, the checksum covers the rest."""
    path = put(home, meta=META, red=1)
    raw = path.read_bytes()
    assert raw.endswith(b"}\n")
    assert raw.count(b"\n") == 1
    line = json.loads(raw)
    assert list(line) == ["v", "crc", "at", "dir", "client", "entry", "red", "event"]
    assert (line["v"], line["at"], line["red"]) == (1, 10**18, 1)
    assert line["event"] == json.loads(EVENT)
    covered = raw.rstrip(b"\n").split(b'",', 1)[1]
    assert line["crc"] == f"{zlib.crc32(covered):08x}"


@posix_only
def test_files_are_the_owners_alone(tmp_path):
    """The first record makes its home, closed to others."""
    path = put(tmp_path / "new" / "home")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


def test_line_breaks_between_tokens_become_spaces(home):
    """A client that prints its JSON nicely still makes one line."""
    path = put(home, b'{\n  "n": 1,\r\n  "t": "a\\nb"\n}')
    (record,), damage = read(path)
    assert not damage
    assert record.event == {"n": 1, "t": "a\nb"}


def test_torn_tail_costs_itself_alone(home):
    """A writer killed in the middle: the next begins on its own line."""
    path = put(home, numbered(1))
    with path.open("ab") as file:
        file.write(b'{"v":1,"crc":"00000000","at":1,"dir":"')
    put(home, numbered(2))
    put(home, numbered(3))
    records, damage = read(path)
    assert [r.event["n"] for r in records] == [1, 2, 3]
    assert len(damage) == 1
    assert len(path.read_bytes().splitlines()) == 4


def test_record_is_synced_before_it_is_acknowledged(home, monkeypatch):
    """A power cut after the prompt went through finds the record on the disk."""
    if not hasattr(spool.system, "fdatasync"):
        pytest.skip("no fdatasync here")
    synced = []

    def sync(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)

    monkeypatch.setattr(spool.system, "fdatasync", sync)
    path = put(home)
    assert synced == [path.stat().st_size]


def test_segment_above_the_limit_is_put_aside(home, monkeypatch):
    """The next record begins a new file; every record is in one of them, and ids stay."""
    monkeypatch.setattr(spool, "SEGMENT_BYTES", 2000)
    put(home, numbered(0, 900), at=10**18)
    before = {s.id for s in spool.segments(str(home))}
    for number in range(1, 9):
        put(home, numbered(number, 900), at=10**18 + number)
    found = spool.segments(str(home))
    assert len(found) >= 3
    assert [n for s in found for n in prompts(Path(s.path))] == list(range(9))
    assert {s.session for s in found} == {"s-1"}
    assert before <= {s.id for s in found}
    assert len({s.id for s in found}) == len(found)


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        pytest.param("24f0694b-985c-455c-bc0c-0f47428c6403", None, id="uuid"),
        pytest.param("A_b-9", None, id="plain"),
        pytest.param("x" * 128, None, id="longest"),
        pytest.param("x" * 129, "", id="too-long"),
        pytest.param("", "", id="empty"),
        pytest.param("../../etc/passwd", "", id="traversal"),
        pytest.param("a/b", "", id="slash"),
        pytest.param("a.b", "", id="dot"),
        pytest.param("a\0b", "", id="nul"),
        pytest.param("a b", "", id="space"),
        pytest.param("é", "", id="accent"),
        pytest.param("٣", "", id="other-digits"),
    ],
)
def test_only_plain_names_name_a_file(session_id, name):
    """An id that could leave the spool's folder is no name."""
    assert spool.session_name(session_id) == (session_id if name is None else name)


@pytest.mark.parametrize(
    "text", ["plain /p", 'a"b', "a\\b", "é 日本 👍", "\n\t\x00\x7f", "\ud83d", "\udc88x", ""]
)
def test_json_string_is_what_json_writes(text):
    """The quick way and the library agree on what a reader sees."""
    assert json.loads(spool.json_string(text)) == text
    assert spool.json_string(text).isascii()


# -- reading


def test_record_tells_everything(home):
    """All fields come back, with the byte positions a cursor needs."""
    path = put(home, meta=META, red=2, at=123)
    put(home, at=124)
    (first, second), _ = read(path)
    assert (first.session, first.at_ns, first.dir) == ("s-1", 123, "/p")
    assert (first.client, first.entry, first.redacted) == ("claude-code_2-1-332", "cli", 2)
    assert (first.offset, first.end) == (0, second.offset)
    assert second.end == path.stat().st_size
    assert read(path, first.end)[0][0].at_ns == 124
    assert read(path, second.end) == ([], [])


def test_unfinished_line_is_not_read_yet(home):
    """What has no line break may still be growing."""
    path = put(home, numbered(1))
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(whole[:-1])
    assert prompts(path) == [1]
    with path.open("ab") as file:
        file.write(b"\n")
    assert prompts(path) == [1, 1]


@pytest.mark.parametrize(
    "event",
    [b"", b"null", b"[1]", b'"x"', b"{", b'{"a":"', b"\xff\xfe{}", b"{}}", b"[" * 100_000],
    ids=["empty", "null", "list", "text", "open", "cut", "bytes", "extra", "deep"],
)
def test_whole_line_without_an_event_is_damage_with_its_bytes(home, event):
    """Input that was no JSON object is kept as evidence, and its neighbours are read."""
    path = put(home, numbered(1))
    put(home, event)
    put(home, numbered(2))
    records, (damage,) = read(path)
    assert [r.event["n"] for r in records] == [1, 2]
    assert event in damage.line
    assert path.read_bytes()[damage.offset : damage.end] == damage.line + b"\n"


@pytest.mark.parametrize("flip", [3, 5, 16, 30, 60, 100])
def test_changed_byte_is_damage(home, flip):
    """No byte of a record can change unseen."""
    path = put(home, meta=META)
    put(home, numbered(2))
    raw = bytearray(path.read_bytes())
    raw[flip] ^= 2
    path.write_bytes(raw)
    records, damage = read(path)
    assert [r.event.get("n") for r in records] == [2]
    assert len(damage) == 1


def test_record_behind_damage_on_the_same_line_is_saved(home):
    """A torn write that another writer followed at once costs the torn part alone."""
    path = put(home, numbered(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:25] + whole + whole)
    records, (damage,) = read(path)
    assert [r.event["n"] for r in records] == [1, 1]
    assert (damage.offset, damage.end) == (0, 25)
    assert damage.line == whole[:25]


def test_zeros_of_a_power_cut_are_damage(home):
    """A file system that gives back zeros for the tail."""
    path = put(home, numbered(1))
    with path.open("ab") as file:
        file.write(b"\0" * 5000)
    put(home, numbered(2))
    assert prompts(path) == [1, 2]


def test_reader_stops_before_a_newer_version(home):
    """What a newer program wrote is left to it: neither read wrongly nor set aside as damage."""
    path = put(home, numbered(1))
    end = path.stat().st_size
    with path.open("ab") as file:
        body = b'"other":{}}'
        file.write(b'{"v":2,"crc":"%08x",%s\n' % (zlib.crc32(body, 2), body))
    put(home, numbered(3))
    assert prompts(path) == [1]
    assert not read(path)[1]
    assert list(spool.iter_records(str(path), end)) == []


def test_lone_surrogates_and_bad_bytes_can_be_stored_by_anyone(home):
    """What comes out of the spool always encodes to UTF-8; the text around it is unharmed."""
    event = (
        b'{"p":"a \\ud83d b \\udc00 c \\ud83d\\udc4d \xff d \\u0000","\\ud800":[{"x":"\\udfff"}]}'
    )
    (record,), _ = read(put(home, event))
    assert record.event["p"] == "a \ufffd b \ufffd c 👍 \ufffd d \0"
    json.dumps(record.event, ensure_ascii=False).encode("utf-8")


def test_long_lines_are_read(home):
    """A line of several chunks, and one right at a chunk's edge."""
    path = put(home, numbered(1, 5_000_000))
    put(home, numbered(2, spool.CHUNK_BYTES - 200))
    put(home, numbered(3))
    assert prompts(path) == [1, 2, 3]


def test_line_beyond_all_measure_is_passed_over(home, monkeypatch):
    """A file damaged into one endless line costs no memory, and what follows is read."""
    monkeypatch.setattr(spool, "MAX_LINE_BYTES", 3 << 20)
    monkeypatch.setattr(spool, "CHUNK_BYTES", 1 << 18)
    path = put(home, numbered(1))
    with path.open("ab") as file:
        file.write(b"y" * (6 << 20))
    put(home, numbered(2))
    records, (damage,) = read(path)
    assert [r.event["n"] for r in records] == [1, 2]
    assert len(damage.line) < 4 << 20


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), cuts=st.integers(0, 4))
def test_any_damage_leaves_every_untouched_record(tmp_path_factory, seed, cuts):
    """Bytes overwritten, cut out or put in anywhere: each record whose line is whole is read."""
    chance = random.Random(seed)
    home = tmp_path_factory.mktemp("spool")
    for number in range(8):
        path = put(home, numbered(number, chance.randrange(60)))
    lines = path.read_bytes().splitlines(keepends=True)
    hurt = set()
    for _ in range(cuts):
        number = chance.randrange(len(lines))
        line = bytearray(lines[number])
        at = chance.randrange(len(line) - 1)
        what = chance.choice(["flip", "insert", "cut"])
        if what == "flip":
            line[at] ^= 1 << chance.randrange(8)
        elif what == "insert":
            line[at:at] = chance.randbytes(3)
        else:
            del line[at : at + 5]
        lines[number] = bytes(line)
        hurt.update((number, number + 1))  # a lost line break touches the next line too
    path.write_bytes(b"".join(lines))
    found = prompts(path)
    missing = set(range(8)) - hurt - set(found)
    assert not missing
    assert found == sorted(set(found))


# -- segments, quarantine, removal


def test_segment_keeps_its_id_when_renamed_or_grown(home):
    """The cursor's key is the file's beginning, not its name."""
    path = put(home, numbered(1))
    (before,) = spool.segments(str(home))
    put(home, numbered(2))
    path.rename(home / "spool" / "s-1.77.jsonl")
    (after,) = spool.segments(str(home))
    assert (after.id, after.session) == (before.id, "s-1")
    assert after.size > before.size


def test_segments_are_in_order_of_their_first_record(home):
    """Sessions come in the order they began, whatever was touched last."""
    for session, at in (("b", 3), ("a", 2), ("c", 1)):
        put(home, session=session, at=10**18 + at)
    put(home, session="c", at=10**18 + 9)
    (home / "spool" / "torn.jsonl").write_bytes(b'{"v":1,"cr')
    (home / "spool" / "other.txt").write_bytes(b"x" * 100)
    assert [s.session for s in spool.segments(str(home))] == ["c", "a", "b"]
    assert spool.segments(str(home / "nowhere")) == []


def test_damage_is_kept_once(home):
    """The same damage found again makes no second file."""
    path = put(home, b"no json")
    (_, (damage,)) = read(path)
    names = {spool.quarantine(str(home), damage) for _ in range(3)}
    (name,) = names
    assert Path(name).read_bytes() == damage.line
    assert Path(name).parent == home / "spool" / "quarantine"
    assert len(list((home / "spool" / "quarantine").iterdir())) == 1


def test_removed_segment_is_gone_and_a_grown_one_stays(home):
    """Only what the caller has seen to its end is removed."""
    path = put(home, numbered(1))
    (segment,) = spool.segments(str(home))
    put(home, numbered(2))
    assert not spool.remove_segment(segment)
    assert prompts(path) == [1, 2]
    (segment,) = spool.segments(str(home))
    assert spool.remove_segment(segment)
    assert not path.exists()
    assert spool.remove_segment(segment)
    put(home, numbered(3))
    assert prompts(path) == [3]


@pytest.mark.deep
@posix_only
def test_no_record_is_lost_to_a_remover(home):
    """Removing what is drained, beside a writer, over and over: each record is seen once."""
    seen: list[int] = []
    done = threading.Event()
    total = 1500

    def write() -> None:
        for number in range(total):
            put(home, numbered(number), at=10**18 + number)
        done.set()

    def collect() -> None:
        for segment in spool.segments(str(home)):
            read_now = prompts(Path(segment.path))
            if spool.remove_segment(segment):
                seen.extend(read_now)

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        collect()
    writer.join()
    collect()
    assert sorted(seen) == list(range(total))


WRITER = """
import sys
from hypatia_mem.capture import spool
home, session, first, count, size = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
for n in range(first, first + count):
    event = b'{"n":%d,"text":"%s"}' % (n, b"x" * (size + n % 7))
    spool.append(home, session, event, at_ns=10**18 + n)
"""


def test_writers_of_one_session_do_not_mix(home):
    """Four processes on one file, small and large records: each record whole and once."""
    root = str(Path(__file__).parents[2])
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home), "s-1", str(k * 1000), "60", str(k * 90_000)],
            cwd=root,
        )
        for k in range(4)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    found = [n for s in spool.segments(str(home)) for n in prompts(Path(s.path))]
    assert sorted(found) == sorted(k * 1000 + n for k in range(4) for n in range(60))


# -- failures


def test_no_failure_is_none(home):
    """A memory in which nothing went wrong says so; another component's error is not a hook's."""
    paths.log_line(str(home), "ERROR", "worker", "a record was not kept: no")
    assert spool.last_failure() is None


def test_failure_is_found_in_the_log_with_its_reason(home):
    """Why and where, never what."""
    spool.note_failure(str(home), OSError(28, "No space left on device", "/m/spool/a.jsonl"), {})
    found = spool.last_failure()
    assert found is not None
    assert (found.reason, found.path) == ("ENOSPC No space left on device", "/m/spool/a.jsonl")
    assert found.at > 1.7e9
    assert "could not keep a record: ENOSPC" in str(found)


@posix_only
def test_failure_to_log_leaves_a_marker(tmp_path, monkeypatch):
    """The home cannot be written at all: the temporary folder says it, to the same user only."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    blocked = tmp_path / "memory-home"
    blocked.write_text("a file")
    spool.note_failure(str(blocked), PermissionError(13, "Permission denied"), dict(os.environ))
    found = spool.last_failure()
    assert found is not None
    assert found.reason == "EACCES Permission denied"
    assert spool.last_failure(str(tmp_path / "another-home")) is None
    marker = tmp_path / f"hypatia-mem-{os.getuid()}"
    assert stat.S_IMODE(marker.stat().st_mode) == 0o700
    assert stat.S_IMODE((marker / "hook-failure").stat().st_mode) == 0o600


@posix_only
def test_marker_is_not_written_through_a_link(tmp_path, monkeypatch):
    """Somebody else's link in the shared temporary folder is not followed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    victim = tmp_path / "victim"
    victim.mkdir()
    (tmp_path / f"hypatia-mem-{os.getuid()}").symlink_to(victim)
    spool.note_failure("", OSError(28, "No space left on device"), {"TMPDIR": str(tmp_path)})
    assert list(victim.iterdir()) == []
    assert spool.last_failure() is None
