"""Facts as a graph: entities are nodes, facts about them edges. Pure, made anew from a user's rows when it is wanted."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from prefold.facts.names import USER, WIDE, has_wide, normal_name, normal_subject, normal_text
from prefold.facts.rows import Fact

__all__ = ["Edge", "Graph", "Node", "entities_in", "graph_of", "neighbours"]

_MOST_WORDS: Final = 8
"""Of a name that is looked for in a text."""
_LEAST_CHARACTERS: Final = 2
_WORD: Final = re.compile(f"[{WIDE}]+|[^\\s{WIDE}]+")


@dataclass(frozen=True, slots=True)
class Node:
    """One entity, however it was written."""

    id: str
    """The normalised name."""
    name: str
    """As it was written last."""
    facts: tuple[str, ...]
    """Ids of the facts about it, edges and what is told of it alone."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact between two entities."""

    fact: str
    source: str
    """Id of the subject's node."""
    relation: str
    target: str
    """Id of the object's node."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes by id. A fact whose object is no entity belongs to its subject's node and is no edge."""

    nodes: Mapping[str, Node]
    edges: tuple[Edge, ...]
    facts: Mapping[str, Fact]
    spoken: Mapping[str, str]
    """Id of a node by its name's words, as they are met in a text."""


def graph_of(facts: Iterable[Fact]) -> Graph:
    """The graph of these facts (give the live ones). Order does not matter."""
    ordered = sorted(facts, key=lambda one: (one.last_confirmed_ms, one.id))
    names: dict[str, str] = {}
    about: dict[str, list[str]] = defaultdict(list)
    edges: list[Edge] = []
    for fact in ordered:
        source, target = _ends(fact)
        if fact.is_entity:
            edges.append(Edge(fact.id, source, fact.relation, target))
        for node, name in ((source, fact.subject), (target, fact.object)):
            if node and fact.id not in about[node]:
                about[node].append(fact.id)
                names[node] = name
    nodes = {node: Node(node, names[node], tuple(ids)) for node, ids in about.items() if ids}
    return Graph(nodes, tuple(edges), {fact.id: fact for fact in ordered}, _spoken(nodes, ordered))


def _spoken(nodes: Iterable[str], facts: Iterable[Fact]) -> dict[str, str]:
    """Whole names, and the first names of a user's people where only one of them has it."""
    whole = [node for node in sorted(nodes) if len(node) >= _LEAST_CHARACTERS]
    spoken = {" ".join(word for _, word in _words(node)): node for node in whole}
    people = {_ends(fact)[1] for fact in facts if fact.category == "family" and fact.is_entity}
    by_first_name = defaultdict(set)
    for node in people:
        by_first_name[node.split(" ", 1)[0]].add(node)
    for name, same in by_first_name.items():
        if len(same) == 1 and len(name) > _LEAST_CHARACTERS:
            spoken.setdefault(name, *same)
    spoken.pop(USER, None)
    return spoken


def _ends(fact: Fact) -> tuple[str, str]:
    """Nodes of subject and object; the object's is empty when it is no entity."""
    return normal_subject(fact.subject), normal_name(fact.object) if fact.is_entity else ""


def neighbours(graph: Graph, names: Iterable[str], hops: Literal[1, 2] = 1) -> list[Fact]:
    """Facts about the named entities, then with 2 hops those about the entities next to them; the newest first in each.

    The user is next to everything, so no way leads through them, unless they are named.
    """
    seen: set[str] = set()
    found: list[Fact] = []
    front = {normal_subject(name) for name in names} & set(graph.nodes)
    for _ in range(hops):
        seen |= front
        ids = {fact for node in front for fact in graph.nodes[node].facts} - {fact.id for fact in found}
        fresh = sorted((graph.facts[one] for one in ids), key=lambda one: (-one.last_confirmed_ms, one.id))
        found += fresh
        front = {end for fact in fresh for end in _ends(fact) if end in graph.nodes} - seen - {USER}
    return found


def entities_in(text: str, graph: Graph) -> list[str]:
    """Names of nodes that the text has, in the order in which it has them, the longest where they overlap; not the user.

    Whole words, but CJK names anywhere. What is given back are the nodes' ids.
    """
    plain = normal_text(text)
    return list(dict.fromkeys(node for _, node in sorted(_spaced(plain, graph) + _wide(plain, graph))))


def _spaced(plain: str, graph: Graph) -> list[tuple[int, str]]:
    words = list(_words(plain))
    longest = min(_MOST_WORDS, max((name.count(" ") + 1 for name in graph.spoken), default=0))
    found: list[tuple[int, str]] = []
    at = 0
    while at < len(words):
        for size in range(min(longest, len(words) - at), 0, -1):
            node = graph.spoken.get(" ".join(word for _, word in words[at : at + size]))
            if node is not None:
                found.append((words[at][0], node))
                at += size - 1
                break
        at += 1
    return found


def _words(plain: str) -> list[tuple[int, str]]:
    """Words with their places; CJK characters and others next to each other are words of their own."""
    pieces = [(found.start(), normal_name(found[0])) for found in _WORD.finditer(plain)]
    return [(at, word) for at, word in pieces if any(char.isalnum() for char in word)]


def _wide(plain: str, graph: Graph) -> list[tuple[int, str]]:
    names = [one for one in graph.spoken.values() if has_wide(one)]
    places = sorted((plain.find(name), -len(name), name) for name in names if name in plain)
    found: list[tuple[int, str]] = []
    covered = 0
    for at, size, name in places:
        if at >= covered:
            found.append((at, name))
            covered = at - size
    return found
