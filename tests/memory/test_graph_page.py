"""The page: one file, no network, harmless whatever a name is; in a browser where there is one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from datetime import datetime
from html.parser import HTMLParser

import pytest

from hypatia_mem.memory.graph.page import MAX_TEXT, page
from hypatia_mem.memory.graph.selecting import Subgraph
from hypatia_mem.store.edges import Edge, Node
from tests import browser
from tests.memory.graphs import HOSTILE, random_triples

AT = datetime(2026, 5, 10, 12)
BROWSER = browser.find()
in_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
# A flag in the page's own world, were any of these to run.
ATTACKS = (
    "</script><script>window.hacked = 1</script>", "<img src=x onerror='window.hacked = 1'>",
    "<!--<script>", "]]>", "</title><script>window.hacked = 1</script>", "\u2028window.hacked = 1\u2029",
    "javascript:window.hacked=1", "'\"><svg onload=window.hacked=1>", "</pre><iframe src=x>",
)  # fmt: skip


def graph_of(names, triples=(), *, kinds=("knowledge",), text="about it"):
    nodes = {
        name: Node(
            name, kinds[place % len(kinds)], f"{text} {name}", ("tag",), ("app", ""), ("also",), AT
        )
        for place, name in enumerate(names)
    }
    edges = [
        Edge(f"{place}", a, p, b, f"says {p}", ("app",), "asserted", AT)
        for place, (a, p, b) in enumerate(triples)
    ]
    return Subgraph(nodes, edges)


SMALL = graph_of(
    ["PostgreSQL", "retry queue", "api", "alone"],
    [("retry queue", "uses", "PostgreSQL"), ("api", "uses", "retry queue"), ("api", "calls", "retry queue"), ("api", "is", "api")],
    kinds=("knowledge", "rule", "name"),
)  # fmt: skip
EVIL = graph_of(
    [*HOSTILE, *ATTACKS], [(a, b, "end") for a, b in zip(ATTACKS, HOSTILE, strict=False)]
)


class Reader(HTMLParser):
    """Reads a page as a browser does: what stands in a script is text up to its end tag."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.open = [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(f"{tag}{dict(attrs).get('type', '')}")

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]] = self.texts.get(self.open[-1], "") + data


def read(subgraph, title="Memory"):
    return Reader(page(subgraph, title))


def data_of(reader):
    return json.loads(reader.texts["scriptapplication/json"])


# --- as a file ------------------------------------------------------------------------------------


def test_the_page_asks_nothing_of_anybody():
    """No address in it, and a policy that would let none be asked."""
    text = page(SMALL, "Memory")
    assert not re.search(r"""(src|href|url|action)\s*[=(]\s*["']?\s*\w+:""", text)
    assert not re.search(r"\b(https?|wss?|ftp):", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import|sendBeacon|eval)\s*\(", text)
    policy = next(
        attrs["content"]
        for tag, attrs in Reader(text).tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_policy_names_the_digest_of_the_script_and_of_the_style():
    """Else neither would run, or any other would."""
    text = page(SMALL, "Memory")
    for tag in ("script", "style"):
        body = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert len(body) == 1
        digest = base64.b64encode(hashlib.sha256(body[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in text


def test_no_name_gets_out_of_its_place():
    """The same elements with and without them, and every text back as it was."""
    evil, plain = read(EVIL, ATTACKS[4]), read(SMALL)
    assert evil.tags == plain.tags
    nodes = data_of(evil)["nodes"]
    assert [one["name"] for one in nodes] == [*HOSTILE, *ATTACKS]
    assert [one["text"] for one in nodes] == [f"about it {name}" for name in (*HOSTILE, *ATTACKS)]
    assert evil.texts["title"].strip() == ATTACKS[4] == evil.texts["h1"].strip()
    raw = page(EVIL, "x").split('id="graph">')[1].split("</script>")[0]
    assert raw.isascii()
    assert not set("<>&") & set(raw)


def test_a_name_that_looks_like_a_slot_stays_a_name():
    """What fills a slot is not looked at again."""
    reader = read(graph_of(["@SCRIPT@", "@DATA@", "@TITLE@"]), "@DATA@")
    assert [one["name"] for one in data_of(reader)["nodes"]] == ["@SCRIPT@", "@DATA@", "@TITLE@"]
    assert reader.texts["title"].strip() == "@DATA@"


def test_statements_point_at_their_names():
    """By their places in the list."""
    data = data_of(read(SMALL))
    names = [one["name"] for one in data["nodes"]]
    assert [(names[a], p, names[b], text) for a, b, p, text in data["edges"]] == [
        (edge.subject, edge.predicate, edge.object, edge.content) for edge in SMALL.edges
    ]


def test_a_long_text_is_cut_and_said_to_be():
    """Five hundred of the longest are a page of about a megabyte."""
    nodes = data_of(read(graph_of(["long"], text="x" * 3 * MAX_TEXT)))["nodes"]
    assert (len(nodes[0]["text"]), nodes[0]["cut"]) == (MAX_TEXT, True)
    names = [f"n{place}" for place in range(500)]
    triples = [(f"n{a}", "next", f"n{a + 1}") for a in range(499)]
    assert len(page(graph_of(names, triples, text="word " * 500), "x")) < 1_300_000
    assert len(page(graph_of(names, triples), "x")) < 200_000


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
def test_the_script_is_javascript():
    """Also where no browser can say so."""
    body = re.findall(r"<script>(.*?)</script>", page(SMALL, "x"), re.DOTALL)[0]
    done = subprocess.run(
        ["node", "--check", "-"], input=body.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """One browser for all of this file's pages."""
    if BROWSER is None:
        pytest.skip("no Chromium on this machine")
    with browser.Page(BROWSER, tmp_path_factory.mktemp("profile"), "--window-size=1280,800") as one:
        yield one


@pytest.fixture
def show(chromium, tmp_path):
    def call(subgraph, address="", title="Memory of app"):
        file = tmp_path / "graph.html"
        file.write_text(page(subgraph, title), "utf-8")
        chromium.events.clear()
        chromium.open(file, address)
        return chromium

    return call


def text_of(one, selector):
    return one.run(f"document.querySelector({selector!r}).innerText")


@in_browser
def test_the_page_opens_without_a_network_and_without_complaint(show):
    """It asks for itself alone, lists every name, and says what it shows."""
    one = show(SMALL)
    assert one.complaints() == []
    assert [address for address in one.requests() if not address.startswith("file:")] == []
    assert text_of(one, "#size") == "4 names, 4 statements"
    listed = one.run("[...document.querySelectorAll('#list button')].map((b) => b.innerText)")
    assert sorted(listed) == sorted(SMALL.nodes)
    legend = one.run("[...document.querySelectorAll('#legend button')].map((b) => b.innerText)")
    assert legend == ["Knowledge 2", "Rule 1", "Name without an entry 1"]


@in_browser
def test_the_picture_is_drawn_in_the_colours_of_its_kinds(show):
    """At the place of each name there is its colour."""
    one = show(SMALL)
    for name, kind in (("PostgreSQL", "knowledge"), ("retry queue", "rule")):
        pixel, wanted = one.run(f"""(() => {{
            const canvas = document.getElementById("view");
            const [x, y] = memoryGraph.onScreen({name!r});
            const ratio = devicePixelRatio;
            const seen = canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data;
            const probe = document.createElement("i");
            probe.style.color = "var(--{kind})";
            document.body.append(probe);
            const colour = getComputedStyle(probe).color;
            probe.remove();
            return [[...seen].slice(0, 3), colour.match(/\\d+/g).map(Number)];
        }})()""")
        assert pixel == wanted, name


@in_browser
def test_a_click_shows_the_text_of_a_name(show):
    """With its facts and its statements, and one of these leads on; a click beside it lets go."""
    one = show(SMALL)
    box = one.run(
        "(() => { const b = document.getElementById('view').getBoundingClientRect(); return [b.left, b.top]; })()"
    )
    x, y = one.run("memoryGraph.onScreen('retry queue')")
    one.click(box[0] + x, box[1] + y)
    one.until("!document.getElementById('entry').hidden")
    shown = text_of(one, "#entry")
    for word in (
        "retry queue",
        "about it retry queue",
        "Rule",
        "app, global",
        "2026-05-10",
        "also",
        "3 statements",
    ):
        assert word in shown
    assert one.run("decodeURIComponent(location.hash)") == "#retry queue"

    one.run(
        "[...document.querySelectorAll('#entry li button')].find((b) => b.innerText.includes('PostgreSQL')).click()"
    )
    assert text_of(one, "#entry h2") == "PostgreSQL"
    one.click(box[0] + 5, box[1] + 5)
    assert one.run("document.getElementById('entry').hidden")


@in_browser
def test_the_search_finds_in_names_and_texts(show):
    """Accents and case do not matter; Enter takes the first; Escape clears."""
    names = ["Café", "tea", "coffee house"]
    one = show(graph_of(names, [("tea", "beside", "Café")]))
    for typed, wanted in (
        ("cafe", ["Café"]),
        ("COFFEE", ["coffee house"]),
        ("about it", names),
        ("none", []),
    ):
        one.run(
            f"(() => {{ const s = document.getElementById('search'); s.value = {typed!r}; s.dispatchEvent(new Event('input')); }})()"
        )
        listed = one.run("[...document.querySelectorAll('#list button')].map((b) => b.innerText)")
        assert sorted(listed) == sorted(wanted)
    assert "0 of 3" in text_of(one, "#found")
    one.run("document.getElementById('search').focus()")
    one.key("Escape")
    assert one.run("document.getElementById('search').value") == ""
    one.run(
        "(() => { const s = document.getElementById('search'); s.value = 'tea'; s.dispatchEvent(new Event('input')); })()"
    )
    one.key("Enter")
    assert text_of(one, "#entry h2") == "tea"


@in_browser
def test_it_is_used_with_the_keys_alone(show):
    """From the search into the list, down it, and a name is chosen; the picture moves and zooms."""
    one = show(SMALL)
    one.key("/", "/")
    assert one.run("document.activeElement.id") == "search"
    assert one.run("document.activeElement.value") == ""
    one.key("ArrowDown")
    one.key("ArrowDown")
    name = one.run("document.activeElement.innerText")
    assert name == one.run("document.querySelectorAll('#list button')[1].innerText")
    one.run("document.activeElement.click()")  # what Enter on a button does
    assert text_of(one, "#entry h2") == name

    one.run("document.getElementById('view').focus()")
    before = one.run("memoryGraph.onScreen('api')")
    one.key("ArrowRight")
    after = one.run("memoryGraph.onScreen('api')")
    assert (round(after[0] - before[0]), round(after[1] - before[1])) == (-60, 0)
    span = "(() => { const [a] = memoryGraph.onScreen('api'); const [b] = memoryGraph.onScreen('PostgreSQL'); return Math.abs(a - b); })()"
    near = one.run(span)
    one.key("+", "+")
    assert one.run(span) == pytest.approx(near * 1.25)
    one.key("0", "0")
    assert one.run("memoryGraph.onScreen('api')") == pytest.approx(before, abs=1)


@in_browser
def test_a_kind_can_be_hidden(show):
    """And comes back."""
    one = show(SMALL)
    press = "[...document.querySelectorAll('#legend button')].find((b) => b.innerText.includes('Rule')).click()"
    one.run(press)
    assert "retry queue" not in text_of(one, "#list")
    one.run(press)
    assert "retry queue" in text_of(one, "#list")


@in_browser
def test_the_same_graph_stands_the_same_every_time(show):
    """Nothing of it is chance, and nothing of it waits for time to pass."""
    told = [(a, p, b) for a, p, b in random_triples(5, names=60, count=90)]
    names = sorted({name for a, _, b in told for name in (a, b)})
    first = show(graph_of(names, told)).run("memoryGraph.positions()")
    assert show(graph_of(names, told)).run("memoryGraph.positions()") == first
    assert len({(round(x), round(y)) for x, y in first}) == len(names)
    assert all(abs(x) < 5000 and abs(y) < 5000 for x, y in first)


@in_browser
def test_nothing_that_a_name_says_is_done(show):
    """Every attack is a text in the list, in the panel and in the picture, and is only that."""
    one = show(EVIL, title=ATTACKS[0])
    assert one.run("[...document.querySelectorAll('#list button')].length") == len(EVIL.nodes)
    one.run("for (const button of document.querySelectorAll('#list button')) button.click()")
    assert one.run("window.hacked === undefined")
    assert one.run("document.querySelectorAll('img, svg, iframe').length") == 0
    assert one.run("document.querySelectorAll('script').length") == 2
    assert one.complaints() == []
    assert [address for address in one.requests() if not address.startswith("file:")] == []
    listed = one.run("[...document.querySelectorAll('#list .words')].map((b) => b.textContent)")
    assert sorted(listed) == sorted(EVIL.nodes)


@in_browser
def test_were_a_script_to_get_in_it_would_not_run(show):
    """The twin of the attacks: the policy stops what escaping would have missed."""
    one = show(SMALL)
    one.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s); })()"
    )
    one.run(
        "(() => { const i = document.createElement('img'); i.src = 'x'; i.setAttribute('onerror', 'window.hacked = 1'); document.body.append(i); })()"
    )
    assert one.run("window.hacked === undefined")
    assert any("Content Security Policy" in text for text in one.complaints())


@in_browser
def test_an_address_with_a_name_opens_at_it(show):
    """So that a link can point at an entry."""
    one = show(SMALL, "#retry%20queue")
    assert text_of(one, "#entry h2") == "retry queue"


@pytest.mark.deep
@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_read_in_light_and_in_dark(show, chromium, scheme):
    """Contrast of text on its ground as the accessibility guidelines ask for it (4.5)."""
    chromium.ask(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    one = show(SMALL, "#api")
    ratio = """((selector) => {
        const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const one = document.querySelector(selector);
        let behind = one;
        while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
        const [a, b] = [light(getComputedStyle(one).color), light(getComputedStyle(behind).backgroundColor)];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    })"""
    for selector in (
        "h1",
        "#size",
        "#list .words",
        "#entry dt",
        "#entry pre",
        "#found",
        "#legend span:last-child",
    ):
        assert one.run(f"{ratio}({selector!r})") >= 4.5, selector
    ground = one.run(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    )
    assert (ground < 128) == (scheme == "dark")
    chromium.ask("Emulation.setEmulatedMedia", features=[])


@pytest.mark.deep
@in_browser
def test_five_hundred_names_are_there_in_a_moment(show):
    """The layout ends by itself, and the whole of it is in view."""
    told = random_triples(11, names=500, count=700)
    names = sorted({name for a, _, b in told for name in (a, b)})
    one = show(graph_of(names, told))
    box = one.run(
        "(() => { const b = document.getElementById('view').getBoundingClientRect(); return [b.width, b.height]; })()"
    )
    for x, y in one.run(f"{json.dumps(names)}.map((name) => memoryGraph.onScreen(name))"):
        assert 0 < x < box[0]
        assert 0 < y < box[1]
