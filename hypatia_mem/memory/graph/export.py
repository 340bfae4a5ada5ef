"""A part of the graph as a file: GraphML, JSON, DOT, Mermaid, or a page (``page``).

Names are anybody's words, so every format escapes them by its own rules; characters that could
drive a terminal are never written as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape

from hypatia_mem.memory.graph.selecting import Subgraph
from hypatia_mem.store.edges import Edge, Node

__all__ = ["FORMATS", "as_data", "dot", "edge_data", "format_of", "graphml", "mermaid", "render"]

# By XML 1.0 these characters cannot stand in a document, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# C0 but for tab and newline, DEL, C1, and the marks that turn the direction of what follows.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
_SHORT = {"gml": "graphml", "xml": "graphml", "gv": "dot", "mmd": "mermaid", "htm": "html"}
_SHAPES = {
    "rule": "box", "taboo": "octagon", "memory": "note", "session": "folder", "message": "plain",
    "summary": "tab", "work-unit": "component", "name": "ellipse", "knowledge": "box",
}  # fmt: skip


def format_of(file_name: str) -> str | None:
    """Return the format that a file name's suffix stands for, None when it stands for none.

    >>> format_of("a/graph.gv"), format_of("graph.html"), format_of("graph.txt")
    ('dot', 'html', None)
    """
    suffix = file_name.rpartition(".")[2].lower()
    suffix = _SHORT.get(suffix, suffix)
    return suffix if suffix in FORMATS else None


def render(subgraph: Subgraph, format_: str, title: str) -> str:
    """Return the subgraph in one of ``FORMATS``; ``title`` heads the page."""
    return FORMATS[format_](subgraph, title)


def as_data(subgraph: Subgraph) -> dict[str, Any]:
    """Return the node-link form that ``networkx.node_link_graph(data, edges="edges")`` reads."""
    return {
        "directed": True,
        "multigraph": True,
        "graph": {},
        "nodes": [node_data(node) for node in subgraph.nodes.values()],
        "edges": [
            {"source": edge.subject, "target": edge.object, "key": edge.predicate} | edge_data(edge)
            for edge in subgraph.edges
        ],
    }


def node_data(node: Node) -> dict[str, Any]:
    """Return a node for JSON, with its whole text."""
    return {
        "id": node.name,
        "kind": node.kind,
        "content": node.content,
        "tags": list(node.tags),
        "scopes": list(node.scopes),
        "synonyms": list(node.synonyms),
        "created_at": _time(node),
    }


def edge_data(edge: Edge) -> dict[str, Any]:
    """Return a statement for JSON."""
    return {
        "triple": edge.triple,
        "subject": edge.subject,
        "predicate": edge.predicate,
        "object": edge.object,
        "content": edge.content,
        "scopes": list(edge.scopes),
        "trust": edge.trust,
        "created_at": _time(edge),
    }


def graphml(subgraph: Subgraph) -> str:
    """Return GraphML; a node's id is its name, escaped where XML has no such character."""
    ids = _ids(subgraph.nodes)
    nodes = (_xml_node(ids[node.name], node) for node in subgraph.nodes.values())
    edges = (_xml_edge(ids, place, edge) for place, edge in enumerate(subgraph.edges))
    keys = [
        f'  <key id="{kind}_{name}" for="{kind}" attr.name="{name}" attr.type="string"/>'
        for kind, names in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS))
        for name in names
    ]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
            *keys,
            '  <graph edgedefault="directed">',
            *nodes,
            *edges,
            "  </graph>",
            "</graphml>",
            "",
        ]
    )


def dot(subgraph: Subgraph) -> str:
    """Return a DOT digraph; what an entry is shows in the shape of its node."""
    ids = {name: f"n{place}" for place, name in enumerate(subgraph.nodes)}
    lines = ["digraph memory {", "  rankdir=LR;", '  node [fontname="sans-serif"];']
    for name, node in subgraph.nodes.items():
        shape = _SHAPES.get(node.kind, "box")
        style = ", style=dashed" if node.kind == "name" else ""
        lines.append(f"  {ids[name]} [label={_dot_text(name)}, shape={shape}{style}];")
    for edge in subgraph.edges:
        label = _dot_text(edge.predicate)
        lines.append(f"  {ids[edge.subject]} -> {ids[edge.object]} [label={label}];")
    return "\n".join([*lines, "}", ""])


def mermaid(subgraph: Subgraph) -> str:
    """Return a Mermaid flowchart; every character with a meaning there is an entity code."""
    ids = {name: f"n{place}" for place, name in enumerate(subgraph.nodes)}
    lines = ["flowchart LR"]
    for name, node in subgraph.nodes.items():
        left, right = ("(", ")") if node.kind == "name" else ("[", "]")
        lines.append(f'  {ids[name]}{left}"{_mermaid_text(name)}"{right}')
    for edge in subgraph.edges:
        label = _mermaid_text(edge.predicate)
        lines.append(f'  {ids[edge.subject]} -->|"{label}"| {ids[edge.object]}')
    return "\n".join([*lines, ""])


def shown(text: str) -> str:
    """Return text with characters that nobody sees, and that act, written as escapes.

    >>> shown("a\\x1b[2Jb\\u202ec")
    'a\\\\x1b[2Jb\\\\u202ec'
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


# ----------------------------------------------------------------------------------------------

_NODE_KEYS = ("label", "kind", "tags", "scopes", "content")
_EDGE_KEYS = ("predicate", "scopes", "content", "created_at")


def _ids(names: Iterable[str]) -> dict[str, str]:
    """Return an id for each name that XML can hold; two names never share one."""
    ids: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = _NOT_XML.sub(lambda found: repr(found[0])[1:-1], name)
        number = 2
        one = plain
        while one in taken:
            one = f"{plain}#{number}"
            number += 1
        taken.add(one)
        ids[name] = one
    return ids


def _xml_node(id_: str, node: Node) -> str:
    values = {
        "label": id_,
        "kind": node.kind,
        "tags": ", ".join(node.tags),
        "scopes": ", ".join(scope or "(global)" for scope in node.scopes),
        "content": node.content,
    }
    return f"    <node id={_xml_attribute(id_)}>{_xml_values('node', values)}</node>"


def _xml_edge(ids: Mapping[str, str], place: int, edge: Edge) -> str:
    values = {
        "predicate": edge.predicate,
        "scopes": ", ".join(scope or "(global)" for scope in edge.scopes),
        "content": edge.content,
        "created_at": _time(edge) or "",
    }
    ends = f"source={_xml_attribute(ids[edge.subject])} target={_xml_attribute(ids[edge.object])}"
    return f'    <edge id="e{place}" {ends}>{_xml_values("edge", values)}</edge>'


def _xml_values(kind: str, values: Mapping[str, str]) -> str:
    return "".join(
        f'<data key="{kind}_{name}">{_xml_text(value)}</data>'
        for name, value in values.items()
        if value
    )


def _xml_text(text: str) -> str:
    """Escape for XML; line ends and unseen characters by number, so that they come back as is."""
    held = escape(_NOT_XML.sub(lambda found: repr(found[0])[1:-1], text))
    return re.sub(
        "[\r\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]",
        lambda found: f"&#{ord(found[0])};",
        held,
    )


def _xml_attribute(text: str) -> str:
    return '"' + _xml_text(text).replace('"', "&quot;").replace("\n", "&#10;").replace(
        "\t", "&#9;"
    ) + '"'  # fmt: skip


def _dot_text(text: str) -> str:
    """Return a quoted DOT string: its own escapes are backslash ones, so backslashes double."""
    return '"' + shown(text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) + '"'


def _mermaid_text(text: str) -> str:
    """Return a label without anything that Mermaid or the HTML behind it would read as its own.

    >>> _mermaid_text('a "b" <i>; 知')
    'a #34;b#34; #60;i#62;#59; 知'
    """
    one_line = " ".join(shown(text).split()) or " "
    return "".join(
        char
        if char.isalnum() or char in " .,:-_/'()+=!?@~" or ord(char) > 126
        else f"#{ord(char)};"
        for char in one_line
    )


def _json(subgraph: Subgraph, _title: str) -> str:
    text = json.dumps(as_data(subgraph), ensure_ascii=False, indent=1)
    return _UNSEEN.sub(lambda found: _json_escape(found[0]), text) + "\n"


def _json_escape(char: str) -> str:
    return char if char in "\n\t" else f"\\u{ord(char):04x}"


def _html(subgraph: Subgraph, title: str) -> str:
    from hypatia_mem.memory.graph.page import page

    return page(subgraph, title)


def _time(one: Node | Edge) -> str | None:
    return one.created_at.isoformat(sep=" ") if one.created_at else None


FORMATS: dict[str, Callable[[Subgraph, str], str]] = {
    "json": _json,
    "graphml": lambda subgraph, _: graphml(subgraph),
    "dot": lambda subgraph, _: dot(subgraph),
    "mermaid": lambda subgraph, _: mermaid(subgraph),
    "html": _html,
}
