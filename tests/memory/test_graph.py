"""What part of the graph a question sees: scopes, messages, labels, limits, names."""

from __future__ import annotations

import time
from dataclasses import replace

import networkx as nx
import pytest

from hypatia_mem.errors import NotFound, Refused, UsageError
from hypatia_mem.memory.graph import rank as graph_rank
from hypatia_mem.memory.graph import walk as graph_walk
from hypatia_mem.memory.graph.selecting import Selection, resolve, select
from hypatia_mem.model import Entry, Statement, Trust, normal_predicate
from hypatia_mem.store.connection import open_store
from tests.memory.graphs import HOSTILE, NOW, PERSON, fill, random_triples, talk

HERE = Selection(scopes=("app", ""))


def selected(home, selection=HERE, **how):
    with open_store(home, write=False) as store:
        return select(store, selection, **how)


def near(home, name, **options):
    with open_store(home, write=False) as store:
        return graph_walk.neighbours(store, replace(HERE, **options), name)[1]


def way(home, a, b, most=1, **options):
    with open_store(home, write=False) as store:
        return graph_walk.paths(store, replace(HERE, **options), a, b, most=most).paths


def triples(found):
    return [(edge.subject, edge.predicate, edge.object) for edge in found.edges]


# --- against networkx -----------------------------------------------------------------------------


def oracle(triples_, direction):
    graph = nx.DiGraph()
    for a, _, b in triples_:
        if direction in ("out", "both"):
            graph.add_edge(a, b)
        if direction in ("in", "both"):
            graph.add_edge(b, a)
    return graph


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_walks_are_those_of_networkx(home, seed):
    """Every distance, every shortest length, every simple path, in each direction."""
    told = random_triples(seed, names=14, count=18 + 4 * seed)
    fill(home, told)
    for direction in ("out", "in", "both"):
        graph = oracle(told, direction)
        for depth in (1, 2, 30):
            wanted = nx.single_source_shortest_path_length(graph, told[0][0], cutoff=depth)
            found = near(home, told[0][0], depth=depth, direction=direction)
            assert {one.node.name: one.hop for one in found} == {
                name: hop for name, hop in wanted.items() if hop
            }
            assert [one.hop for one in found] == sorted(one.hop for one in found)
        a, b = told[0][0], next(name for name in graph if name != told[0][0])
        wanted = sorted(len(path) - 1 for path in nx.all_simple_paths(graph, a, b))
        found = way(home, a, b, most=1000, direction=direction)
        assert [len(path.steps) for path in found] == wanted[:1000]
        assert len({path.names for path in found}) == len(found)
        assert [len(path.steps) for path in way(home, a, b, direction=direction)] == wanted[:1]


@pytest.mark.deep
@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_every_step_is_proved_by_its_statements(home, direction):
    """The proof are the stored triples between the two names, and all of them."""
    told = random_triples(7, names=10, count=30)
    fill(home, told)
    names = sorted({name for a, _, b in told for name in (a, b)})
    for path in way(home, names[0], names[-1], most=5, direction=direction):
        for step in path.steps:
            ways = {"out": [(step.start, step.end)], "in": [(step.end, step.start)]}
            both = {(step.start, step.end), (step.end, step.start)}
            between = [(a, p, b) for a, p, b in told if (a, b) in ways.get(direction, both)]
            assert [(e.subject, e.predicate, e.object) for e in step.proof] == between
            assert between


def test_each_neighbour_says_by_which_statement_it_was_reached(home):
    """From one hop nearer, never from one as far away."""
    fill(
        home, [("a", "p", "b"), ("c", "q", "a"), ("b", "r", "c"), ("b", "s", "d"), ("c", "t", "d")]
    )
    found = {one.node.name: one for one in near(home, "a", depth=2)}
    assert [edge.predicate for edge in found["b"].via] == ["p"]
    assert [edge.predicate for edge in found["c"].via] == ["q"]
    assert [edge.predicate for edge in found["d"].via] == ["s", "t"]


@pytest.mark.parametrize("seed", range(5))
def test_pagerank_is_that_of_networkx(seed):
    """Parallel edges, loops and dead ends among them."""
    from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

    told = random_triples(seed, names=40, count=30 + 30 * seed)
    names = sorted({name for a, _, b in told for name in (a, b)})
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((a, b) for a, _, b in told)
    wanted = _pagerank_python(nx.DiGraph(_weighted(graph)), tol=1e-12, max_iter=500)
    number = {name: place for place, name in enumerate(names)}
    found = graph_rank.pagerank(len(names), [(number[a], number[b]) for a, _, b in told])
    assert found == pytest.approx([wanted[name] for name in names], abs=1e-8)
    assert sum(found) == pytest.approx(1)


def _weighted(graph):
    plain = nx.DiGraph()
    plain.add_nodes_from(graph)
    for a, b in graph.edges():
        weight = plain.edges[a, b]["weight"] + 1 if plain.has_edge(a, b) else 1
        plain.add_edge(a, b, weight=weight)
    return plain


def test_no_names_have_no_ranks(home):
    """An empty store is an answer too, for every question."""
    fill(home)
    nothing = selected(home)
    assert graph_rank.central(nothing) == [] == graph_rank.communities(nothing)
    assert graph_rank.pagerank(0, []) == []


def test_what_belongs_together_is_found_and_named(home):
    """Two clusters that one statement joins, each under words of its own."""
    clusters = {"database": "postgres index vacuum", "kitchen": "oven flour dough"}
    told, entries = [], []
    for topic, words in clusters.items():
        names = [f"{topic} {n}" for n in range(6)]
        entries += [Entry(name, f"the {words} of it", scopes=("app",)) for name in names]
        told += [(a, "near", b) for a in names for b in names if a < b]
    fill(home, [*told, ("database 0", "near", "kitchen 0")], entries)
    found = graph_rank.communities(selected(home))
    assert [len(one.members) for one in found] == [6, 6]
    for one in found:
        topic = one.members[0].name.split()[0]
        assert {node.name.split()[0] for node in one.members} == {topic}
        assert set(one.terms) <= {topic, *clusters[topic].split()}
        assert one.edges == 15
    assert found == graph_rank.communities(selected(home))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_communities_share_all_names_out(home, seed):
    """Each name with a statement is in one of them, whatever the graph."""
    told = random_triples(seed, names=60, count=70)
    fill(home, told, ["alone"])
    found = graph_rank.communities(selected(home, alone=True))
    members = [node.name for one in found for node in one.members]
    assert sorted(members) == sorted({name for a, _, b in told for name in (a, b)})
    graph = nx.Graph((a, b) for a, _, b in told)
    parts = [{node.name for node in one.members} for one in found]
    assert nx.community.modularity(graph, parts) > 0.3


def test_a_statement_about_itself_is_no_vote(home):
    """Else whatever says something about itself would be the centre of everything."""
    fill(home, [("a", "p", "b"), ("d", "self", "d")])
    assert graph_rank.central(selected(home))[0].node.name == "b"


# --- what is seen ---------------------------------------------------------------------------------


def test_another_projects_statements_are_not_seen(home):
    """Nor its entry's text at an end of ours; with all projects both are."""
    fill(home, [("ours", "links", "theirs")], ["ours"])
    fill(home, [("theirs", "hides", "secret")], ["theirs"], scopes=("other",))
    found = selected(home)
    assert triples(found) == [("ours", "links", "theirs")]
    assert found.nodes["theirs"].kind == "name"
    assert found.nodes["theirs"].content == ""
    assert [one.node.name for one in near(home, "ours", depth=9)] == ["theirs"]
    with pytest.raises(NotFound):
        near(home, "secret")

    everywhere = replace(HERE, scopes=None)
    assert set(selected(home, everywhere).nodes) == {"ours", "theirs", "secret"}
    assert selected(home, everywhere).nodes["theirs"].content == "about theirs"
    assert [one.node.name for one in near(home, "ours", depth=9, scopes=None)] == [
        "theirs",
        "secret",
    ]


def test_the_global_scope_is_seen_from_every_project(home):
    """And is the element ``""``, no wildcard."""
    fill(home, [("a", "p", "b")], scopes=("",))
    fill(home, [("c", "p", "d")], scopes=("ap",))
    assert triples(selected(home)) == [("a", "p", "b")]
    assert triples(selected(home, replace(HERE, scopes=("",)))) == [("a", "p", "b")]
    assert triples(selected(home, replace(HERE, scopes=("ap",)))) == [("c", "p", "d")]


@pytest.mark.deep
@pytest.mark.parametrize("how", [{"trust": Trust.CANDIDATE}, {"suppressed": True}])
def test_what_is_withheld_is_never_an_end(home, how):
    """Neither as a neighbour nor on a path nor as an alias, in any scope."""
    hidden = Entry("hidden", "x", scopes=("app",), synonyms=("ghost",), **how)
    fill(home, [("a", "p", "hidden"), ("hidden", "p", "b"), ("a", "p", "c")], ["a", hidden])
    for selection in (HERE, replace(HERE, scopes=None, messages=True, labels=True)):
        assert set(selected(home, selection, alone=True).nodes) == {"a", "c"}
    assert [one.node.name for one in near(home, "a", depth=5)] == ["c"]
    for name in ("hidden", "ghost", "b"):
        with pytest.raises(NotFound):
            way(home, "a", name)


def test_a_rejected_statement_is_no_edge(home):
    """The ends stay, the way between them does not."""
    fill(home, [("a", "p", "b")])
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        txn.put_statement(Statement("a", "p", "c", scopes=("app",), trust=Trust.REJECTED))
    assert triples(selected(home)) == [("a", "p", "b")]


def test_messages_are_left_out_unless_asked_for(home):
    """They and what only they are linked by; a message that is asked about is seen."""
    talk(home)
    fill(home, [("wu", "derivedFrom", "msg-s-1-2"), ("wu", "about", "pool")], ["wu"])
    assert triples(selected(home)) == [("wu", "about", "pool")]
    assert set(selected(home, alone=True).nodes) == {"wu", "pool"}
    full = selected(home, replace(HERE, messages=True))
    assert {name for name in full.nodes if name.startswith("msg-")} == {
        "msg-s-1-1", "msg-s-1-2", "msg-s-1-3",
    }  # fmt: skip
    assert len(full.edges) == 5

    assert [one.node.name for one in near(home, "wu")] == ["pool"]
    assert [one.node.name for one in near(home, "session-s-1")] == []
    assert len(near(home, "session-s-1", messages=True)) == 3
    part = selected(home, replace(HERE, near=("msg-s-1-2",)))
    assert set(part.nodes) == {"msg-s-1-2", "wu", "session-s-1"}
    about = {one.node.name for one in near(home, "msg-s-1-2")}
    assert about == {"wu", "session-s-1"}
    assert [path.names for path in way(home, "msg-s-1-2", "pool")] == [("msg-s-1-2", "wu", "pool")]


def test_an_entry_whose_name_only_looks_like_a_messages_is_seen(home):
    """Messages are known by what they are."""
    fill(home, [("msg-queue-2", "part_of", "broker")], ["msg-queue-2"])
    assert triples(selected(home)) == [("msg-queue-2", "part_of", "broker")]


def test_labels_join_nothing_unless_asked_for(home):
    """Two rules have no more in common than that they are rules; a real is_a is seen."""
    told = [("r1", "is_a", "rule"), ("r2", "is_a", "rule"), ("Rust", "is_a", "language")]
    fill(home, told, ["r1", "r2"])
    assert triples(selected(home)) == [("Rust", "is_a", "language")]
    assert way(home, "r1", "r2") == ()
    assert [path.names for path in way(home, "r1", "rule")] == [("r1", "rule")]
    assert len(way(home, "r1", "r2", labels=True)) == 1
    assert len(selected(home, replace(HERE, labels=True)).edges) == 3
    assert set(selected(home, alone=True).nodes) == {"Rust", "language", "r1", "r2"}


def test_entries_without_statements_come_when_asked_for(home):
    """For a picture of all there is; algorithms do without. Also those whose statements are hid."""
    talk(home)
    fill(home, [("a", "p", "b"), ("wu", "derivedFrom", "msg-s-1-1")], ["a", "alone", "wu"])
    assert set(selected(home).nodes) == {"a", "b"}
    assert set(selected(home, alone=True).nodes) == {"a", "b", "alone", "wu"}
    without = replace(HERE, without=("p",))
    assert set(selected(home, without, alone=True).nodes) == {"a", "alone", "wu"}
    only = replace(HERE, predicates=("p",))
    assert set(selected(home, only, alone=True).nodes) == {"a", "b"}


@pytest.mark.deep
@pytest.mark.parametrize(
    "asked", [("works_at",), ("worksAt",), ("works at",), ("WORKS-AT", "works_at")]
)
def test_a_predicate_is_found_however_it_is_spelt(home, asked):
    """All its spellings, and no other predicate."""
    fill(home, [("a", "works_at", "b"), ("c", "worksAt", "d"), ("e", "works", "f")])
    found = selected(home, replace(HERE, predicates=asked))
    assert triples(found) == [("a", "works_at", "b"), ("c", "works_at", "d")]
    assert triples(selected(home, replace(HERE, without=asked))) == [("e", "works", "f")]


def test_an_unknown_predicate_is_an_error_that_names_those_there_are(home):
    """Nothing found would look like an answer."""
    fill(home, [("a", "works_at", "b")])
    with pytest.raises(NotFound, match="works_in") as refused:
        selected(home, replace(HERE, predicates=("works_in",)))
    assert "works_at" in refused.value.hint


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("works_at", "works_at"), ("worksAt", "works_at"), ("Works At", "works_at"),
        ("works-at", "works_at"), ("WORKS_AT", "works_at"), ("HTTPServer of", "http_server_of"),
        ("belongTo", "belongTo"), ("belong_to", "belongTo"), ("belongs_to", "belongs_to"),
        ("derivedFrom", "derivedFrom"), ("derived from", "derivedFrom"), ("is_a", "is_a"),
        ("属于", "属于"), ("_", "_"), (" uses ", "uses"), ("is  a", "is_a"),
    ],
)  # fmt: skip
def test_predicates_have_one_normal_spelling(written, normal):
    """Snake case, but for the two fixed ones; and it is its own normal spelling."""
    assert normal_predicate(written) == normal
    assert normal_predicate(normal) == normal


# --- sizes ----------------------------------------------------------------------------------------


def test_a_part_that_is_too_large_is_refused_with_the_ways_to_a_smaller_one(home):
    """Before anything of it is read; a part that fits exactly is taken."""
    fill(home, [("hub", "p", f"n{n}") for n in range(10)])
    assert len(selected(home, replace(HERE, max_nodes=11)).nodes) == 11
    for one, ways in ((HERE, ("--near",)), (replace(HERE, near=("hub",)), ("--depth",))):
        with pytest.raises(Refused, match="at most 10") as refused:
            selected(home, replace(one, max_nodes=10))
        for remedy in (*ways, "--predicate", "--except", "--scope", "--max-nodes"):
            assert remedy in refused.value.hint
    with pytest.raises(Refused):
        near(home, "hub", max_nodes=10)
    with pytest.raises(Refused):
        way(home, "n1", "n2", most=2, max_nodes=10)


def test_entries_alone_count_too(home):
    """The limit is on what is taken, wherever it comes from."""
    fill(home, [("a", "p", "b")], ["c", "d"])
    assert len(selected(home, replace(HERE, max_nodes=4), alone=True).nodes) == 4
    with pytest.raises(Refused):
        selected(home, replace(HERE, max_nodes=3), alone=True)


@pytest.mark.deep
def test_a_long_chain_is_walked_to_its_end(home):
    """Two thousand hops, from both sides and from one, in no time worth naming."""
    fill(home, [(f"n{n}", "next", f"n{n + 1}") for n in range(2000)])
    begun = time.perf_counter()
    assert len(way(home, "n0", "n2000", direction="out")[0].steps) == 2000
    assert way(home, "n2000", "n0", direction="out") == ()
    assert len(way(home, "n2000", "n0", most=2, direction="in")[0].steps) == 2000
    assert [one.hop for one in near(home, "n0", depth=100)] == list(range(1, 101))
    assert time.perf_counter() - begun < 15  # a statement a hop took a minute


@pytest.mark.parametrize(("a", "b", "direction"), [("hub", "end", "out"), ("end", "hub", "in")])
def test_a_hub_at_one_end_does_not_make_a_path_too_large(home, a, b, direction):
    """It is sought from both ends, and the small one does most of the work."""
    told = [("hub", "p", f"x{n}") for n in range(60)]
    told += [(f"x{n}", "p", f"y{n}-{m}") for n in range(60) for m in range(5)]
    fill(home, [*told, ("y7-3", "p", "m1"), ("m1", "p", "m2"), ("m2", "p", "end")])
    wanted = ("hub", "x7", "y7-3", "m1", "m2", "end")
    found = way(home, a, b, direction=direction, max_nodes=70)[0].names
    assert found == (wanted if a == "hub" else wanted[::-1])


# --- neighbourhoods -------------------------------------------------------------------------------


def test_a_neighbourhood_has_the_statements_among_its_names(home):
    """Also those between two names at the rim."""
    fill(
        home, [("a", "p", "b"), ("a", "p", "c"), ("b", "q", "c"), ("c", "p", "d"), ("d", "p", "e")]
    )
    found = selected(home, replace(HERE, near=("a",)))
    assert triples(found) == [("a", "p", "b"), ("a", "p", "c"), ("b", "q", "c")]
    assert found.seeds == ("a",)
    assert set(selected(home, replace(HERE, near=("a",), depth=2)).nodes) == {"a", "b", "c", "d"}
    assert triples(selected(home, replace(HERE, near=("a", "b", "e"), depth=0))) == [
        ("a", "p", "b")
    ]


def test_rows_that_cannot_be_seen_from_here_are_counted(home):
    """A query may name other projects; the answer says so instead of showing them."""
    fill(home, [("a", "p", "b")])
    fill(home, [("x", "p", "y")], scopes=("other",))
    found = selected(home, replace(HERE, named_by=("a", "x", "nowhere")))
    assert found.seeds == ("a",)
    assert found.unseen == 2
    assert triples(found) == [("a", "p", "b")]
    nothing = selected(home, replace(HERE, named_by=()))
    assert not nothing.nodes
    assert not nothing.edges


# --- names ----------------------------------------------------------------------------------------


def meant(home, name, scopes=("app", "")):
    with open_store(home, write=False) as store:
        return resolve(store, name, scopes)


def test_a_synonym_means_its_entry(home):
    """By the whole word, never by a part of it, and only in these scopes."""
    fill(home, [("api", "uses", "PostgreSQL")], [
        Entry("PostgreSQL", "", scopes=("app",), synonyms=("postgres", "pg")),
        Entry("Foreign", "", scopes=("other",), synonyms=("alien",)),
    ])  # fmt: skip
    assert meant(home, "pg").name == "PostgreSQL"
    assert [one.node.name for one in near(home, "pg")] == ["api"]
    assert way(home, "api", "postgres")[0].names == ("api", "PostgreSQL")
    for other in ("p", "postgre", "PG", "alien"):
        with pytest.raises(NotFound):
            meant(home, other)
    assert meant(home, "alien", None).name == "Foreign"


def test_a_synonym_of_a_statement_means_that_end(home):
    """As the published statement-create stores it."""
    with open_store(home, write=True) as store, store.transaction(PERSON, now=NOW) as txn:
        words = {"subject": ["Al"], "object": ["Robert"]}
        txn.put_statement(Statement("Alice", "knows", "Bob", scopes=("app",), synonyms=words))
    assert meant(home, "Al").name == "Alice"
    assert meant(home, "Robert").name == "Bob"


def test_an_ambiguous_synonym_is_refused_with_what_it_may_mean(home):
    """Nothing is guessed."""
    fill(home, (), [
        Entry("Mercury (planet)", "", scopes=("app",), synonyms=("Mercury",)),
        Entry("Mercury (metal)", "", scopes=("app",), synonyms=("Mercury",)),
    ])  # fmt: skip
    with pytest.raises(Refused, match=r"'Mercury \(metal\)' and 'Mercury \(planet\)'"):
        meant(home, "Mercury")


def test_a_name_of_its_own_comes_before_a_synonym(home):
    """And what else it could mean is told."""
    fill(home, [("pg", "p", "x")], [Entry("PostgreSQL", "", scopes=("app",), synonyms=("pg",))])
    found = meant(home, "pg")
    assert (found.name, found.also) == ("pg", ("PostgreSQL",))


def test_a_name_that_is_not_there_brings_those_like_it(home):
    """Of these scopes only."""
    fill(home, [("PostgreSQL", "p", "x")])
    fill(home, [("PostgreSQLs", "p", "x")], scopes=("other",))
    with pytest.raises(NotFound, match=r"nothing called 'postgresql'.*mean 'PostgreSQL'\?"):
        meant(home, "postgresql")


def test_two_names_of_one_thing_have_no_path(home):
    """They are told to be the same."""
    fill(home, (), [Entry("PostgreSQL", "", scopes=("app",), synonyms=("pg",))])
    with pytest.raises(UsageError, match="the same thing"):
        way(home, "pg", "PostgreSQL")


@pytest.mark.deep
def test_hostile_names_are_names(home):
    """Whatever stands in them, they are looked up, walked and shown as they are."""
    fill(home, list(zip(HOSTILE, HOSTILE[1:], HOSTILE[2:], strict=False)), HOSTILE)
    found = selected(home, alone=True)
    assert set(found.nodes) == set(HOSTILE)
    with open_store(home, write=False) as store:
        for subject, predicate, object_ in triples(found):
            steps = graph_walk.paths(store, replace(HERE, direction="out"), subject, object_).paths
            assert len(steps[0].steps) == 1
            assert predicate in {edge.predicate for edge in steps[0].steps[0].proof}
