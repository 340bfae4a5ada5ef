"""A part of the graph as one page that opens in any browser and never asks a network.

The page's own style and script are files of the package; the graph stands in it as JSON of plain
ASCII, in which no name can end the script or begin a tag. A content policy lets run only the script
whose digest it names, so that nothing a name could smuggle in would be executed, and lets nothing
be fetched from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from typing import Any

from hypatia_mem.memory.graph.selecting import Subgraph
from hypatia_mem.store.edges import Edge, Node

__all__ = ["MAX_TEXT", "page"]

MAX_TEXT = 2_000  # characters of an entry; five hundred of them are a page of a megabyte


def page(subgraph: Subgraph, title: str) -> str:
    """Return the page; texts longer than ``MAX_TEXT`` are cut, and the page says so."""
    style = _part("page.css")
    script = _part("layout.js") + _part("page.js")
    number = {name: place for place, name in enumerate(subgraph.nodes)}
    data = {
        "nodes": [_node(node) for node in subgraph.nodes.values()],
        "edges": [_edge(edge, number) for edge in subgraph.edges],
    }
    slots = {
        "STYLE_DIGEST": _digest(style),
        "SCRIPT_DIGEST": _digest(script),
        "TITLE": html.escape(title),
        "STYLE": style,
        "DATA": _harmless(data),
        "SCRIPT": script,
    }
    first, *rest = _part("page.html").split("@")
    made = [first]
    for piece in rest:  # one pass: what fills a slot is never looked at again
        made.append(slots.get(piece, piece))
    return "".join(made)


def _part(name: str) -> str:
    return files("hypatia_mem.memory.graph").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _harmless(data: dict[str, Any]) -> str:
    """Return JSON that can stand inside a script element, whatever the texts in it are."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _node(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": node.kind,
        "text": node.content[:MAX_TEXT],
        "cut": len(node.content) > MAX_TEXT,
        "tags": list(node.tags),
        "scopes": list(node.scopes),
        "synonyms": list(node.synonyms),
        "since": node.created_at.strftime("%Y-%m-%d") if node.created_at else "",
    }


def _edge(edge: Edge, number: dict[str, int]) -> list[Any]:
    return [number[edge.subject], number[edge.object], edge.predicate, edge.content[:MAX_TEXT]]
