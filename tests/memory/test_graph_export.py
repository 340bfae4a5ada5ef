"""Each format read back by another program's reader, with names that try to break it."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from datetime import datetime

import networkx as nx
import pytest

from hypatia_mem.memory.graph.export import (
    FORMATS,
    as_data,
    dot,
    format_of,
    graphml,
    mermaid,
    render,
)
from hypatia_mem.memory.graph.selecting import Subgraph
from hypatia_mem.store.edges import Edge, Node
from tests.memory.graphs import HOSTILE

AT = datetime(2026, 5, 10, 12)
# What a terminal would act on, or a reader be led astray by.
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def subgraph(names=HOSTILE, *, content="some\ntext <b>&amp;</b>") -> Subgraph:
    nodes = {name: Node(name, "knowledge", content, ("t",), ("app", ""), (), AT) for name in names}
    nodes[names[0]] = Node(names[0])
    edges = [
        Edge(f"{place}", a, b, c, b, ("app",), "asserted", AT)
        for place, (a, b, c) in enumerate(
            zip(names, [*names[1:], names[0]], [*names[2:], *names[:2]], strict=True)
        )
    ]
    return Subgraph(nodes, edges)


GRAPH = subgraph()
ENDS = sorted((edge.subject, edge.object) for edge in GRAPH.edges)


def test_json_is_read_by_networkx_as_it_was():
    """Names, predicates and texts, character by character."""
    data = json.loads(render(GRAPH, "json", ""))
    graph = nx.node_link_graph(data, edges="edges")
    assert set(graph) == set(HOSTILE)
    assert sorted(graph.edges()) == ENDS
    assert {key for _, _, key in graph.edges(keys=True)} == {edge.predicate for edge in GRAPH.edges}
    assert graph.nodes[HOSTILE[1]]["content"] == "some\ntext <b>&amp;</b>"
    assert data == as_data(GRAPH)


def test_graphml_is_read_by_networkx_as_it_was():
    """But for the few characters that XML cannot hold, which are written as escapes."""
    graph = nx.read_graphml(io.BytesIO(graphml(GRAPH).encode()), force_multigraph=True)
    names = {"esc\x1b[2Jape": "esc\\x1b[2Jape", "\ufffe": "\\ufffe"}
    assert set(graph) == {names.get(name, name) for name in HOSTILE}
    assert sorted(graph.edges()) == sorted((names.get(a, a), names.get(b, b)) for a, b in ENDS)
    told = {(a, b, data["predicate"]) for a, b, data in graph.edges(data=True)}
    assert told == {
        tuple(names.get(one, one) for one in (e.subject, e.object, e.predicate))
        for e in GRAPH.edges
    }
    assert graph.nodes[HOSTILE[1]]["content"] == "some\ntext <b>&amp;</b>"
    assert graph.nodes[HOSTILE[1]]["scopes"] == "app, (global)"


def test_names_that_xml_cannot_tell_apart_stay_two():
    """The escape of one may be the name of another."""
    graph = nx.read_graphml(io.BytesIO(graphml(subgraph(("a\x1bb", "a\\x1bb", "c"))).encode()))
    assert set(graph) == {"a\\x1bb", "a\\x1bb#2", "c"}


def test_dot_holds_every_name_as_one_string():
    """Read by the rules of the language: a quoted string ends at the first quote not escaped."""
    lines = dot(GRAPH).splitlines()
    assert (lines[0], lines[-1]) == ("digraph memory {", "}")
    string = r'"((?:[^"\\\n]|\\.)*)"'
    nodes = [
        re.fullmatch(rf"  (n\d+) \[label={string}, shape=\w+(, style=dashed)?\];", one)
        for one in lines[3 : 3 + len(HOSTILE)]
    ]
    edges = [
        re.fullmatch(rf"  (n\d+) -> (n\d+) \[label={string}\];", one)
        for one in lines[3 + len(HOSTILE) : -1]
    ]
    assert all(nodes)
    assert all(edges)
    ids = {found[1]: name for found, name in zip(nodes, HOSTILE, strict=True)}
    assert sorted((ids[found[1]], ids[found[2]]) for found in edges) == ENDS
    labels = {name: found[2] for found, name in zip(nodes, HOSTILE, strict=True)}
    assert labels["back\\slash \\n"] == "back\\\\slash \\\\n"
    assert labels["line\nbreak"] == "line\\nbreak"
    assert labels["知识图谱"] == "知识图谱"


def test_mermaid_holds_every_name_as_text():
    """Nothing in a label that Mermaid, Markdown or HTML would take for its own."""
    lines = mermaid(GRAPH).splitlines()
    assert lines[0] == "flowchart LR"
    label = r'"([^"<>{}\[\]|\\`&$*\n]+)"'
    nodes = [
        re.fullmatch(rf"  (n\d+)[\[(]{label}[\])]", one) for one in lines[1 : 1 + len(HOSTILE)]
    ]
    edges = [
        re.fullmatch(rf"  (n\d+) -->\|{label}\| (n\d+)", one) for one in lines[1 + len(HOSTILE) :]
    ]
    assert all(nodes)
    assert all(edges)
    ids = {found[1]: name for found, name in zip(nodes, HOSTILE, strict=True)}
    assert sorted((ids[found[1]], ids[found[3]]) for found in edges) == ENDS

    def read(text):
        return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)

    for found, name in zip(nodes, HOSTILE, strict=True):
        if name.isprintable():
            assert read(found[2]) == " ".join(name.split())


@pytest.mark.parametrize("format_", ["json", "graphml", "dot", "mermaid"])
def test_nothing_that_is_printed_drives_a_terminal(format_):
    """Whatever a name is."""
    assert ACTIVE.search("".join(HOSTILE))
    assert not ACTIVE.search(render(GRAPH, format_, "").replace("\n", " "))


@pytest.mark.parametrize("format_", list(FORMATS))
def test_an_empty_graph_is_a_file_too(format_):
    """One that its readers can read."""
    text = render(Subgraph({}, []), format_, "nothing")
    assert text.strip()
    if format_ == "graphml":
        assert len(nx.read_graphml(io.BytesIO(text.encode()))) == 0


def test_what_has_no_entry_looks_different():
    """In the two formats that show shapes."""
    graph = subgraph(("free", "kept", "other"))
    assert 'label="free", shape=ellipse, style=dashed' in dot(graph)
    assert 'label="kept", shape=box]' in dot(graph)
    assert '("free")' in mermaid(graph)
    assert '["kept"]' in mermaid(graph)


def test_the_attributes_are_named_in_graphml():
    """A viewer shows them by name."""
    root = ET.fromstring(graphml(GRAPH))
    space = "{http://graphml.graphdrawing.org/xmlns}"
    keys = {(one.get("for"), one.get("attr.name")) for one in root.iter(f"{space}key")}
    assert {("node", "kind"), ("node", "tags"), ("node", "content"), ("edge", "predicate")} <= keys
    assert len({one.get("id") for one in root.iter(f"{space}key")}) == len(keys)


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("g.html", "html"), ("g.HTM", "html"), ("g.graphml", "graphml"), ("g.xml", "graphml"),
        ("a.b/g.gv", "dot"), ("g.dot", "dot"), ("g.mmd", "mermaid"), ("g.json", "json"),
        ("g.txt", None), ("html", "html"), ("g", None),
    ],
)  # fmt: skip
def test_a_file_name_tells_the_format(name, format_):
    """By its suffix alone."""
    assert format_of(name) == format_
