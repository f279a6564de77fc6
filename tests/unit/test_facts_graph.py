"""Facts as a graph: who is next to whom, and which of them a text names."""

from dataclasses import replace

import pytest

from prefold.facts import Fact, entities_in, graph_of, neighbours
from prefold.facts.names import USER
from tests.support.facts import START_MS, source


def fact(name: str, subject: str, relation: str, obj: str, *, is_entity: bool = True, at: int = 0) -> Fact:
    return Fact(
        id=name,
        subject=subject,
        relation=relation,
        object=obj,
        category="other",
        confidence=0.9,
        sources=(source(at),),
        origin="extracted",
        said="",
        is_entity=is_entity,
        is_single=False,
        first_seen_ms=START_MS + at,
        last_confirmed_ms=START_MS + at,
        expires_at_ms=None,
    )


FACTS = [
    fact("f1", "user", "dog", "Rex", at=1),
    fact("f2", "Rex", "allergic_to", "chicken", is_entity=False, at=2),
    fact("f3", "user", "sister", "Anna Müller", at=3),
    fact("f4", "Anna Müller", "lives_in", "New York, USA", at=4),
    fact("f5", "user", "likes", "tea", is_entity=False, at=5),
    fact("f6", "Rex's", "vet", "Dr. Wu", at=6),
    fact("f7", "user", "works_at", "字节跳动", at=7),
    fact("f8", "字节跳动", "located_in", "北京", at=8),
    fact("f9", "Dr. Wu", "lives_in", "北京", at=9),
]
GRAPH = graph_of(FACTS)


def ids(facts: list[Fact]) -> list[str]:
    return [one.id for one in facts]


def test_nodes_are_the_entities_and_edges_the_facts_between_them() -> None:
    assert set(GRAPH.nodes) == {"user", "rex", "anna muller", "new york, usa", "dr. wu", "字节跳动", "北京"}
    assert [edge.fact for edge in GRAPH.edges] == ["f1", "f3", "f4", "f6", "f7", "f8", "f9"]
    rex = GRAPH.nodes["rex"]
    assert rex.facts == ("f1", "f2", "f6")
    assert (GRAPH.edges[0].source, GRAPH.edges[0].relation, GRAPH.edges[0].target) == ("user", "dog", "rex")


def test_the_order_of_the_facts_does_not_matter() -> None:
    assert graph_of(reversed(FACTS)) == GRAPH


def test_one_hop_brings_what_is_known_of_an_entity_with_its_sources() -> None:
    found = neighbours(GRAPH, ["REX’s"], 1)
    assert ids(found) == ["f6", "f2", "f1"]
    assert [one.sources for one in found] == [(source(6),), (source(2),), (source(1),)]


def test_the_second_hop_leads_on_but_not_through_the_user() -> None:
    assert ids(neighbours(GRAPH, ["rex"], 2)) == ["f6", "f2", "f1", "f9"]
    assert ids(neighbours(GRAPH, ["dr. wu"], 2)) == ["f9", "f6", "f8", "f2", "f1"]


def test_the_user_is_an_entity_when_named() -> None:
    assert ids(neighbours(GRAPH, [USER], 1)) == ["f7", "f5", "f3", "f1"]
    assert set(ids(neighbours(GRAPH, ["I"], 2))) == {"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"}


def test_a_name_that_nobody_has_brings_nothing() -> None:
    assert neighbours(GRAPH, ["Bello", ""], 2) == []
    assert neighbours(graph_of([]), ["rex"], 2) == []


def test_a_fact_comes_once_whatever_ways_lead_to_it() -> None:
    loop = graph_of([fact("a", "X1", "knows", "X2"), fact("b", "X2", "knows", "X1"), fact("c", "X1", "knows", "X1")])
    found = ids(neighbours(loop, ["X1", "x2", "X1"], 2))
    assert sorted(found) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What may Rex eat?", ["rex"]),
        ("what does REX’S vet say, dr. wu I mean", ["rex", "dr. wu"]),
        ("is anna muller in new york usa?", ["anna muller", "new york, usa"]),
        ("Is Anna Müller in New York, USA?", ["anna muller", "new york, usa"]),
        ("ＲＥＸ and rex", ["rex"]),
        ("我在字节跳动工作，想去北京", ["字节跳动", "北京"]),
        ("字节跳动的Rex在北 京", ["字节跳动", "rex", "北京"]),
        ("Is Anna in New York?", []),
        ("T-rexes are extinct", []),
        ("the user I am", []),
        ("", []),
    ],
)
def test_entities_are_found_in_a_text_whole_and_in_any_form(text: str, names: list[str]) -> None:
    assert entities_in(text, GRAPH) == names


def test_the_longest_name_counts_where_names_overlap() -> None:
    graph = graph_of(
        [
            fact("a", "user", "visited", "York"),
            fact("b", "user", "visited", "New York"),
            fact("c", "user", "in", "东京"),
            fact("d", "user", "in", "东京塔"),
        ]
    )
    assert entities_in("from New York to York", graph) == ["new york", "york"]
    assert entities_in("我想去东京塔", graph) == ["东京塔"]


def test_people_are_found_by_their_first_name_unless_two_have_it() -> None:
    people = [
        replace(fact("a", "user", "sister", "Anna Müller"), category="family"),
        replace(fact("b", "user", "friend", "Max Wu"), category="family"),
        replace(fact("c", "user", "brother", "Max Li"), category="family"),
        fact("d", "user", "visited", "New York"),
    ]
    assert entities_in("What do ANNA and Max do in New?", graph_of(people)) == ["anna muller"]
    assert entities_in("and Max Wu?", graph_of(people)) == ["max wu"]


def test_a_name_of_one_character_is_not_looked_for() -> None:
    assert entities_in("a b 猫", graph_of([fact("a", "user", "has", "b"), fact("c", "user", "has", "猫")])) == []


def test_a_node_shows_the_name_that_was_written_last() -> None:
    later = replace(FACTS[0], id="f20", object="REX", last_confirmed_ms=START_MS + 100)
    assert graph_of([*FACTS, later]).nodes["rex"].name == "REX"
