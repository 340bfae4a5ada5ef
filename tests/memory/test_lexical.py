"""The vectoriser without a model: what it finds, what it cannot, and that it never wavers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hypatia_mem.memory.vectors.lexical import Lexical, cosine

ROOT = Path(__file__).parents[2]
MODEL = Lexical()
# Of the vector of the text below. Another value means another name for the model.
PINNED = "25084c38b5cf1897b49c55a6ea82c1fa837a2d801ef296d46442e5bba612e541"


def nearness(asked: str, stored: str) -> float:
    query = MODEL.query(asked)
    return cosine(query.vector, MODEL.documents([stored])[0]) / query.own


@pytest.mark.parametrize(
    ("asked", "near", "far"),
    [
        pytest.param("databse", "the database is down", "the coffee is cold", id="typing error"),
        pytest.param("configured", "configuration of linters", "a list of linters", id="word form"),
        pytest.param("pooling", "connection pools", "connection strings", id="stem"),
        pytest.param("user name", "fetchUserName fails", "fetchOrderDate fails", id="camel case"),
        pytest.param("user name", "the_user_name column", "the_order_date column", id="snake case"),
        pytest.param("fetch_user_name", "fetchUserName", "fetchOrderDate", id="snake for camel"),
        pytest.param(
            "timeout", "ConnectionTimeoutError was raised", "KeyError was raised", id="part"
        ),
        pytest.param("naive cafe", "Naïve Café", "Native Cake", id="accents"),
        pytest.param("Größe", "GROESSE GRÖSSE", "Gruppe", id="sharp s and case"),
        pytest.param("知识图谱", "我们的知识图谱很大", "今天天气很好", id="Chinese"),
        pytest.param("データベース", "データベースの設定", "天気がいい", id="Japanese"),
        pytest.param("데이터베이스", "데이터베이스를 설정", "날씨가 좋다", id="Korean"),
        pytest.param("базы данных", "настройка базы данных", "погода хорошая", id="Russian"),
        pytest.param("src/store/gateway.py", "look at gateway.py", "look at setup.cfg", id="path"),
    ],
)
def test_it_finds_what_shares_letters(asked, near, far):
    """The near text is above the floor, and clearly nearer than one that shares nothing telling."""
    assert nearness(asked, near) >= MODEL.threshold
    assert nearness(asked, near) > nearness(asked, far) + 0.1


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        pytest.param("car", "vehicle", id="synonym"),
        pytest.param("the and of what", "rust borrow checker", id="empty words"),
        pytest.param("kubernetes", "deploy to production", id="another thing"),
    ],
)
def test_it_knows_no_meanings(asked, stored):
    """It says what it is: what shares no letters is not near, synonym or not."""
    assert nearness(asked, stored) < MODEL.threshold


@pytest.mark.parametrize("text", ["tabs", "never mock the database", "x " * 3000, "知识", "C++"])
def test_the_same_text_is_at_distance_zero(text):
    assert nearness(text, text) == pytest.approx(1.0, abs=0.01)


def test_a_greeting_is_not_near_to_everything_with_its_words():
    """Short texts would else crowd out those that answer: the reason for the last place."""
    asked = "Is there a way to raise the timeout of the build?"
    answer = "There is a build timeout of ten minutes; raise it in the settings of the runner."
    assert nearness(asked, answer) > nearness(asked, "Is there a way?")
    assert nearness(asked, answer) > nearness(asked, "Build!")


@pytest.mark.parametrize("text", ["", "   ", "???", "—…“”", "\n\t", "🎉"])
def test_a_text_without_letters_or_digits_has_no_vector(text):
    assert MODEL.documents([text]) == [None]
    assert MODEL.query(text) is None


@pytest.mark.parametrize(
    "text", ["a\0b", "\ud800 x", "a" * 1_000_000, "é́́", "_" * 50 + "x", "½ ² Ⅷ", "1", "\u202eabc"]
)
def test_no_text_makes_it_fail(text):
    (vector,) = MODEL.documents([text])
    assert len(vector) == MODEL.dimension
    assert max(map(abs, vector[:-1])) == 127


def test_vectors_are_the_same_in_every_process():
    """They are stored: another hash seed, or Python, must not make strangers of them."""
    text = "fetchUserName naïve 知识图谱 over and over, over"
    code = (
        "import hashlib, json, sys; from hypatia_mem.memory.vectors.lexical import Lexical;"
        "print(hashlib.sha256(json.dumps(Lexical().documents([sys.argv[1]])).encode()).hexdigest())"
    )
    seen = set()
    for seed in ("0", "1", "random"):
        done = subprocess.run(
            [sys.executable, "-c", code, text],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        seen.add(done.stdout.strip())
    assert seen == {PINNED}


def test_many_words_do_not_change_vectors_or_fill_the_memory(monkeypatch):
    """What is kept of words seen before is bounded, and only saves time."""
    from hypatia_mem.memory.vectors import lexical

    before = MODEL.documents(["fetchUserName over 知识"])
    monkeypatch.setattr(lexical, "_CACHED", 8)
    small = Lexical()
    for number in range(50):
        small.documents([f"word{number} other{number}"])
    assert small.documents(["fetchUserName over 知识"]) == before
    assert len(small._cache) <= 8
    assert len(small._cut) <= 8
