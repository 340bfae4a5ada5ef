"""What summaries are made of: cleaned sources, grounded sentences, names, and what was lost."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypatia_mem.memory.summarise import facts, grounding, hygiene, loss, making, naming, windows
from hypatia_mem.memory.summarise import words as cutting
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import (
    FailureKind,
    Item,
    Request,
    Sentence,
    SummaryFailed,
)
from hypatia_mem.model import Entry

AT = datetime(2026, 11, 30, 9)


def item(text, name="m1", speaker="user", session="s-1"):
    return Item(name, hygiene.blank(text, spoken_by=speaker), speaker, session, AT)


def request(*texts, words=40):
    items = tuple(
        item(text, f"m{n}", "assistant" if n % 2 else "user") for n, text in enumerate(texts)
    )
    return Request(1, items, words, cutting.idf_of(texts))


# --- hygiene --------------------------------------------------------------------------------------

REASONING = {
    "plain": "<think>secret plan</think>The pool is too small.",
    "other name and case": "<Thoughts>secret plan</THOUGHTS>The pool is too small.",
    "attributes": '<thinking budget="1">secret plan</thinking>The pool is too small.',
    "nested": "<think>secret <think>deeper</think> plan</think>The pool is too small.",
    "several": "<think>secret</think>The pool <reasoning>plan</reasoning>is too small.",
    "never closed": "The pool is too small.\n<think>secret plan",
    "only closed": "secret plan</think>The pool is too small.",
    "fenced": "```thinking\nsecret plan\n```\nThe pool is too small.",
    "brackets": "[THINK]secret plan[/THINK]The pool is too small.",
    "triangles": "◁think▷secret plan◁/think▷The pool is too small.",
    "channels": "<|channel|>analysis<|message|>secret plan<|end|><|start|>assistant"
    "<|channel|>final<|message|>The pool is too small.",
}


@pytest.mark.parametrize("text", REASONING.values(), ids=REASONING)
def test_reasoning_never_reaches_a_summary_and_the_rest_does(text):
    """Whatever the tags look like; the words around them stay."""
    found = hygiene.cleaned(text)
    assert "secret" not in found
    assert "plan" not in found
    assert " ".join(found.split()) == "The pool is too small."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "<think>only this</think>",
        "<think>and never closed",
        "</think>",
        "...",
        "- \n- ",
    ],
)
def test_a_summary_of_nothing_is_refused(text):
    """Reasoning is stripped first, and only then is asked whether anything is left."""
    with pytest.raises(SummaryFailed) as caught:
        hygiene.cleaned(text)
    assert caught.value.failure is FailureKind.EMPTY


def test_a_person_who_writes_about_tags_is_heard():
    """A tag in code or in a prompt is somebody's words; only a pair around something is blanked."""
    text = "Strip the `<think>` tag, and <think> in prose too"
    assert hygiene.blank(text, spoken_by="user") == text
    assert "hidden" not in hygiene.blank("<think>hidden</think> shown", spoken_by="user")
    assert hygiene.strip_reasoning("Use `<think>` like this") == "Use `<think>` like this"


@pytest.mark.parametrize(
    ("text", "gone", "kept"),
    [
        ("see ![a cat](cat.png) here", "cat", "here"),
        ("see [Image #1] here", "Image", "here"),
        ("data:image/png;base64," + "iVBORw0KGgo" * 9 + " here", "iVBOR", "here"),
        ("A" * 60 + "b" * 120 + "9+/ here", "bbb", "here"),
        ("TRIGGER:extract\nwe use postgres", "TRIGGER", "postgres"),
        ("[hypatia-memory] Stored: x\nwe use postgres", "Stored", "postgres"),
        (
            "[hypatia-memory] Memory of app. Recorded\n- never mock\nMore: hypatia-mem search WORDS\n"
            "we use postgres",
            "mock",
            "postgres",
        ),
        ("hypatia-mem:internal\nwe use postgres", "internal", "postgres"),
    ],
)
def test_what_is_nobodys_words_is_blanked_at_the_same_length(text, gone, kept):
    """Pictures, encoded data and our own lines go; every offset stays that of the stored text."""
    found = hygiene.blank(text)
    assert gone not in found
    assert kept in found
    assert len(found) == len(text)
    assert found.index(kept) == text.rindex(kept)


def test_what_comes_out_is_redacted_again():
    """A secret that a model puts together does not reach the store."""
    key = "AKIA" + "QW3RTY7UIOP5ASDF"
    assert key not in hygiene.cleaned(f"The key is {key} and the pool has 20 connections.")


LONG = " ".join(f"word{n} number{n % 7} thing{n % 11}" for n in range(60))


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (LONG, True),
        (f"Before it. {LONG[40:280]} After it.", True),
        (f'They said "{LONG[40:280]}" and agreed.', False),
        (f"{LONG[:90]} was discussed, then {LONG[300:390]}.", False),
        ("The words are numbered.", False),
    ],
    ids=["whole", "a long run", "quoted", "two short runs", "own words"],
)
def test_the_sources_put_together_again_are_no_summary(text, refused):
    """More than 200 characters word for word are refused, unless they are quoted."""
    if not refused:
        hygiene.refuse_concatenation(text, [LONG, "another one"])
        return
    with pytest.raises(SummaryFailed) as caught:
        hygiene.refuse_concatenation(text, [LONG, "another one"])
    assert caught.value.failure is FailureKind.VERBATIM


def test_a_refusal_is_no_summary_but_a_summary_may_speak_of_one():
    """A model that declines has condensed nothing."""
    with pytest.raises(SummaryFailed) as caught:
        hygiene.cleaned("I'm sorry, but I can't help with that.")
    assert caught.value.failure is FailureKind.REFUSAL
    assert hygiene.cleaned("The user can't log in; the cookie expires at once.")


# --- the summariser without a model ---------------------------------------------------------------


def test_what_is_said_often_and_seldom_elsewhere_is_chosen():
    """The sentence that carries the talk beats the chatter; the same batch gives the same again."""
    texts = [
        "Hello there, how are you today?",
        "The retry queue loses jobs when redis restarts. Nice weather.",
        "Ok.",
        "So the retry queue must survive restarts of redis; we decided to write jobs to postgres.",
        "Thanks!",
    ]
    asked = request(*texts, words=18)
    first = Extractive().summarise(asked)
    assert first == Extractive().summarise(asked)
    said = " ".join(one.text for one in first.sentences)
    assert "postgres" in said
    assert "weather" not in said
    assert "Hello" not in said


def test_what_the_person_decided_is_kept_beside_long_answers():
    """A short sentence of the person's binds; long answers about the same words do not crowd it out."""
    answer = (
        "The join in the test waits for the child. The child died and the join never returned. "
        "I changed the join of the test in tests/test_lease.py and the timeout in lease.py. "
        "All 312 tests pass in 41 s, and the child of the test is joined as it was before."
    )
    said = Extractive().summarise(
        request(
            "the test hangs", answer, "From now on give every join a timeout.", answer, words=45
        )
    )
    assert any("From now on" in one.text and one.speaker == "user" for one in said.sentences)


TIES = """
from datetime import datetime
from hypatia_mem.memory.summarise import words
from hypatia_mem.memory.summarise.extractive import Extractive
from hypatia_mem.memory.summarise.protocol import Item, Request
texts = [
    f"Decided: {name} {n} uses a lock because of the race in src/{name}_{n}.py line {n}7."
    for name in ("gadget", "widget", "sprocket") for n in range(5)
]
at = datetime(2026, 11, 30)
items = tuple(Item(f"m{n}", text, "assistant", "s-1", at) for n, text in enumerate(texts))
draft = Extractive().summarise(Request(1, items, 60, words.idf_of(texts)))
print([sentence.text for sentence in draft.sentences])
"""


def test_another_process_chooses_the_same():
    """What a plan shows is what is done: neither depends on the order of a set."""
    told = {
        subprocess.run(
            [sys.executable, "-c", TIES],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in range(6)
    }
    assert len(told) == 1


def test_code_is_not_chosen_before_the_sentences_about_it():
    texts = ["```python\ntime.sleep(0.2)\nfoo_bar.baz_qux(17)\n```\nThe worker sleeps too briefly."]
    (first,) = Extractive().summarise(request(*texts, words=6)).sentences
    assert first.text == "The worker sleeps too briefly."


def test_every_sentence_stands_where_its_span_says():
    """Each sentence is, but for white space, the text of its span."""
    texts = ["- first point\n- second  point, with\ttabs", "# Title\n\nA sentence. Another one!"]
    asked = request(*texts, words=100)
    sentences = Extractive().summarise(asked).sentences
    assert len(sentences) == 5
    for one in sentences:
        (span,) = one.spans
        source = next(i for i in asked.items if i.name == span.item)
        assert " ".join(source.text[span.start : span.end].split()) == one.text


HOSTILE = {
    "one word of ten thousand letters": ["x" * 10_000] * 3,
    "ten thousand words in a line": ["word " * 10_000],
    "only code": ["```python\ndef f(x):\n    return x + 1\n```"] * 3,
    "only emoji": ["👍👍", "🎉", "👨‍👩‍👧‍👦"],
    "only marks": ["!!! ???", "---", "..."],
    "chinese": [
        "连接池太小了，我们决定把它增加到五十。",
        "好的，重试队列也要改。",
        "不要忘记测试。",
    ],
    "japanese": ["接続プールが小さすぎます。五十に増やすことにしました。", "テストを忘れないで。"],
    "german": [
        "Der Verbindungspool ist zu klein, wir nehmen fünfzig.",
        "Niemals ohne Test ausliefern!",
    ],
    "french": ["Le pool de connexions est trop petit; on garde cinquante.", "Jamais sans tests."],
    "hebrew": ["מאגר החיבורים קטן מדי ולכן הוחלט להגדיל אותו."],
    "no line ends": ["a" * 300 + " " + "b" * 300],
    "bare surroundings": ["\u200b\u200b", "   \n\t", "ok"],
}


@pytest.mark.parametrize("texts", HOSTILE.values(), ids=HOSTILE)
def test_anything_people_paste_can_be_condensed(texts):
    """There is a summary, it is short, it copies no long run, and it has a name."""
    made = making.make(Extractive(), request(*texts), {}, 30)
    assert made.content.strip()
    assert made.inferred == 0
    assert max(map(len, grounding.lines_of(made.content))) < 400
    assert naming.slug_of(made.name) or made.name.startswith("talk-")


def test_a_batch_without_any_words_says_so():
    """Pictures alone leave one honest line, tied to all of them."""
    made = making.make(Extractive(), request("[Image #1]", "![x](y.png)"), {}, 30)
    assert made.content.startswith("- 2 messages without words")
    assert made.inferred == 0


@settings(max_examples=60)
@given(st.lists(st.text(max_size=400), min_size=1, max_size=12), st.integers(12, 80))
def test_no_text_breaks_it_and_no_summary_outgrows_its_room(texts, room):
    """Whatever is typed: spans lie inside their items, and the length holds but for one unit."""
    asked = request(*texts, words=room)
    try:
        sentences = Extractive().summarise(asked).sentences
    except SummaryFailed:  # no text at all
        return
    lengths = [cutting.cost(one.text) + 1 for one in sentences]
    assert len(lengths) == 1 or sum(lengths) <= room
    by_name = {one.name: one.text for one in asked.items}
    for one in sentences:
        (span,) = one.spans
        assert 0 <= span.start < span.end <= len(by_name[span.item])


# --- what must not be lost ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("see https://docs.dev/a?b=1, please", "url", "https://docs.dev/a?b=1"),
        ("edit src/app/main.py now", "path", "src/app/main.py"),
        ("edit main.py now", "path", "main.py"),
        ("it is in /etc/hosts.", "path", "/etc/hosts"),
        ("call fetchUserName() first", "identifier", "fetchUserName()"),
        ("set MAX_RETRIES", "identifier", "MAX_RETRIES"),
        ("the `users` table", "identifier", "users"),
        ("see ABC-123", "identifier", "ABC-123"),
        ("pass --no-cache", "identifier", "--no-cache"),
        ("run `git push --force`", "command", "git push --force"),
        ("it takes 120 ms", "number", "120 ms"),
        ("version 3.11.2", "number", "3.11.2"),
    ],
)
def test_names_of_things_are_found(text, kind, word):
    assert (kind, word) in facts.of_kinds(text)


@pytest.mark.parametrize("text", ["We went home.", "and so on, e.g", "I think - maybe - not"])
def test_plain_talk_names_nothing(text):
    assert not facts.tokens(text)


@pytest.mark.parametrize(
    ("text", "decides", "negates"),
    [
        ("We decided to use postgres.", True, False),
        ("Never mock the database.", False, True),
        ("不要模拟数据库", False, True),
        ("改用 postgres", True, False),
        ("Wir nehmen Postgres.", True, False),
        ("The cat sleeps.", False, False),
    ],
)
def test_decisions_and_negations_are_found(text, decides, negates):
    assert facts.is_decision(text) is decides
    assert facts.is_negation(text) is negates


def test_names_that_did_not_fit_are_listed_at_the_end():
    """Below the floor the most frequent ones are added, tied to where they stand; above it not."""
    texts = [f"In src/part_{n}.py the function handle_{n}() took {n}00 ms." for n in range(10, 40)]
    asked = request(*texts, words=20)
    made = making.make(Extractive(), asked, {}, 90)
    also = grounding.lines_of(made.content)[-1]
    assert also.startswith("Also: ")
    assert also.count("`") >= 8
    assert made.inferred == 0
    assert "Also: " not in making.make(Extractive(), asked, {}, 0).content


def test_loss_counts_what_survived_and_names_what_did_not():
    items = [item("We decided to keep foo_bar in src/a.py. Never touch baz_qux, it took 120 ms.")]
    found = loss.measure(items, "- user: We decided to keep foo_bar in src/a.py.").classes
    assert (found["identifier"].kept, found["identifier"].total) == (1, 2)
    assert found["identifier"].dropped == ("baz_qux",)
    assert found["path"].share == 1.0
    assert found["number"].share == 0.0
    assert found["decision"].share == 1.0
    assert found["negation"].dropped == ("Never touch baz_qux, it took 120 ms.",)
    assert found["url"].share == 1.0  # of nothing, everything


TALK = (
    "We looked at the queue and its retry counters all morning, and the graphs are strange.",
    "Indeed the retry counters are strange: the queue retries 40 times in a minute.",
    "Never touch the migrations folder by hand.",
    "We decided to keep postgres for the queue. It is not slower than redis was.",
    "The retry counters of the queue look better, the graphs are smooth again.",
)
LACKING = "The retry counters of the queue were strange: it retries 40 times in a minute."


def bound(text=LACKING, floor=50, words=160, talk=TALK):
    """Return the lines of a submitted summary that were added to it."""
    made = making.submitted("queue", text, request(*talk, words=words), {}, floor)
    lines = grounding.lines_of(made.content)[len(text.splitlines()) :]
    return [line for line in lines if not line.startswith("Also: ")], made


def test_decisions_and_negations_are_kept_when_a_summary_has_too_few():
    """As they were said, tied to where; what a summary says in its own words is not said twice."""
    lines, made = bound()
    assert lines == [
        "user: Never touch the migrations folder by hand.",
        "assistant: We decided to keep postgres for the queue.",
    ]
    assert made.inferred == 0
    assert bound(floor=0)[0] == [], "the floor is the user's"
    enough = f"{LACKING}\nThey decided to keep postgres for the queue."
    assert bound(enough)[0] == ["user: Never touch the migrations folder by hand."]
    enough += "\nNever touch the migrations folder by hand."
    assert bound(enough)[0] == []


def test_what_is_kept_of_them_has_a_length_and_a_persons_own_come_first():
    said = [f"The shelf number {n} must not be moved to the other room again." for n in range(20)]
    lines, _ = bound(talk=(*TALK, *said), floor=100, words=240)
    assert len(lines) >= 2
    assert sum(len(line.split()) for line in lines) <= 240 / 8
    before = ("Is the reason known?", "We do not know the reason yet.")
    lines, _ = bound(talk=(*before, *TALK), floor=100)
    assert [line for line in lines if "decided" not in line] == [
        "user: Never touch the migrations folder by hand."
    ]


def test_what_is_kept_stands_with_its_session_and_an_inference_is_not_kept():
    items = (
        item("The retry queue is slow. We decided to keep it.", "m1", session="s-1"),
        item("The parser fails on tabs.", "m2", session="s-2"),
    )
    asked = Request(1, items, 80, {})
    made = making.submitted("queue", "The retry queue is slow.\nThe parser fails.", asked, {}, 50)
    assert made.content.splitlines() == [
        "## Session s-1, 2026-11-30",
        "- The retry queue is slow.",
        "- user: We decided to keep it.",
        "",
        "## Session s-2, 2026-11-30",
        "- The parser fails.",
    ]
    upper = Item("sum-1", "- The queue is slow.\n- We decided to sell it. [inferred]", "", "s", AT)
    made = making.submitted("queue", "The queue is slow.", Request(2, (upper,), 80, {}), {}, 100)
    assert "sell" not in made.content


@pytest.mark.parametrize(
    ("is_one", "texts"),
    [
        (
            facts.is_decision,
            "deciding; the decision; we'll use a; we will go a; let's keep it; lets drop; going with "
            "a; go with b; agreed; from now on; settled on; chose; instead of; switch to; switched "
            "to; root cause; entschieden; die Entscheidung; wir nehmen; ab jetzt; décidons; on "
            "garde; désormais; decidimos; a partir de ahora; usaremos; 决定; 改用; 采用; 從現在起; "
            "从现在起; 根因; 決定; 決めた; Aにする; ことにした",
        ),
        (
            facts.is_negation,
            "never; don't; dont; do not; does not; doesn't; doesnt; must not; mustn't; mustnt; "
            "cannot; can't; cant; should not; shouldn't; shouldnt; won't; wont; without; no longer; "
            "not; forbidden; avoid; niemals; nie; nicht; keinen; verboten; jamais; ne pas; "
            "n'est pas; interdit; nunca; jamás; sin; prohibido; 不要; 不能; 不得; 禁止; 别; "
            "決して; しない; ないで; ません",
        ),
    ],
)
def test_what_decides_or_negates_is_found_in_six_languages(is_one, texts):
    """Each by itself: a look for pieces goes before, and it must not miss one."""
    found = texts.split("; ")
    assert [text for text in found if not is_one(f"So {text}, yes.")] == []
    assert [text for text in found if not is_one(f"SO {text.upper()}, YES.")] == []
    assert not is_one("The notebook is a knotty thing, and the pass since then was decent.")


# --- grounding ------------------------------------------------------------------------------------

SOURCES = (
    item("The retry queue loses jobs when redis restarts, 14 were lost.", "m1"),
    item("I moved the queue to postgres in src/queue.py.", "m2", "assistant"),
)


@pytest.mark.parametrize(
    ("sentence", "tied"),
    [
        ("The retry queue lost jobs at restarts of redis.", {"m1"}),
        ("14 jobs were lost, so the queue was moved to postgres.", {"m1", "m2"}),
        ("The queue now lives in src/queue.py with postgres.", {"m2"}),
        ("The frontend was rewritten in another language.", set()),
        ("The retry queue lost 99 jobs when redis restarted.", set()),
        ("The queue moved to postgres in src/other.py.", set()),
    ],
)
def test_a_sentence_is_tied_to_what_says_it_and_an_invention_to_nothing(sentence, tied):
    """A wrong number or path is an invention, however much of the rest is true."""
    (found,) = grounding.tie(sentence, Request(1, SOURCES, 60, {}))
    assert {span.item for span in found.spans} == tied


def test_what_could_not_be_tied_is_marked_and_stays_marked_a_level_up():
    asked = Request(1, SOURCES, 60, {})
    text = "- The retry queue lost jobs.\n- Everybody was very happy about the whole affair."
    made = making.submitted("queue-move", text, asked, {}, 0)
    assert made.inferred == 1
    assert grounding.lines_of(made.content)[1].endswith("[inferred]")
    upper = Request(2, (Item("sum-1", made.content, "", "s-1", AT),), 60, {})
    again = making.make(Extractive(), upper, {}, 0)
    marked = [line for line in grounding.lines_of(again.content) if "happy" in line]
    assert len(marked) == 1
    assert marked[0].endswith("[inferred]")


def test_a_summary_of_which_no_source_says_a_word_is_none():
    """Whoever wrote it: with one true sentence the others are marked, with none it is refused."""
    asked = Request(1, SOURCES, 60, {})
    lie = "Everybody was very happy about the whole affair."
    with pytest.raises(SummaryFailed) as refused:
        making.submitted("happiness", lie, asked, {}, 0)
    assert refused.value.failure is FailureKind.INVENTED
    assert making.submitted("happy", f"{lie}\nThe retry queue lost jobs.", asked, {}, 0).inferred


def test_sessions_are_told_apart_in_a_summary_of_several():
    sentences = [
        Sentence("one", (), "user", "s-1"),
        Sentence("two", (), "user", "s-2"),
    ]
    items = [item("one"), item("two", "m2", session="s-2")]
    text = grounding.render(sentences, items)
    assert text.index("## Session s-1") < text.index("one") < text.index("## Session s-2")
    assert "## Session" not in grounding.render(sentences[:1], items[:1])


# --- names and windows ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Summary", "untitled", "session 12", "", "...", "the", "👍"])
def test_a_name_that_says_nothing_is_refused(name):
    from hypatia_mem.errors import UsageError

    with pytest.raises(UsageError):
        making.submitted(name, "The retry queue lost jobs.", Request(1, SOURCES, 60, {}), {}, 0)


def test_a_name_comes_from_the_content():
    made = making.make(Extractive(), request("The retry queue loses jobs in redis."), {}, 0)
    assert set(made.name.split("-")) <= {"retry", "queue", "loses", "jobs", "redis"}
    assert len(made.name.split("-")) >= 2


@pytest.mark.parametrize(
    ("model", "own", "tokens"),
    [
        ("claude-opus-9-20270101", {}, 200_000),
        ("claude-opus-9[1m]", {}, 1_000_000),
        ("deepseek-v4-pro", {}, 1_000_000),
        ("glm-5.1", {}, 200_000),
        ("unheard-of", {}, 200_000),
        ("claude-opus-9-20270101", {"claude-opus-9": 500_000}, 500_000),
        ("claude-other", {"claude-opus-9": 500_000}, 200_000),
    ],
)
def test_a_models_window(model, own, tokens):
    assert windows.window_of(model, own) == tokens


def test_the_user_extends_the_table_and_takes_rows_out_again(home):
    from hypatia_mem.errors import UsageError

    windows.set_window(home, "My-Model", 128_000)
    (home / "config.toml").write_text(
        (home / "config.toml").read_text() + '"by-hand" = 64000\n"broken" = "much"\n'
    )
    assert windows.own(home) == {"my-model": 128_000, "by-hand": 64_000}
    windows.set_window(home, "my-model", 0)
    assert windows.own(home) == {"by-hand": 64_000}
    with pytest.raises(UsageError):
        windows.set_window(home, "my-model", 0)


def test_a_stored_message_is_read_without_its_headings():
    entry = Entry(
        "msg-s-1",
        "## Role\nassistant\n\n## Timestamp\n2026-11-30T04:05:06Z\n\n## Content\nThe words.",
        session_id="s",
        scopes=("",),
    )
    found = making.item_of(entry, 1)
    assert found.speaker == "assistant"
    assert found.text.strip() == "The words."
    assert entry.content[found.text.index("The") :] == "The words."
