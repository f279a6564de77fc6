"""Which summaries stand for a session within a number of tokens, and which of them have to be merged first.

The leaves are the segments in order. While they fit they stand as they are. Beyond that the oldest are merged: four
neighbours of one level, aligned so that a node always has the same leaves, make a node of the next. Aligned nodes
are made once and never change, so all merges together cost a share of what making the leaves did, and a detail of
a leaf passes at most log4(n) of them. When even the fewest aligned nodes do not fit, the oldest of them are merged
into one more, the crown, as small as need be: one more step, from aligned nodes and never from an older crown. A
crown leaves room for later leaves and is used again while it fits.

Everything is a function of the leaves, of what is stored and of the cap: the same again gives the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

FAN = 4
"""Nodes merged into one. Fewer mean more lossy steps, more mean more tokens that stand while they wait."""
LEAST_TEXT = 200
"""Tokens below which a model writes no summary of many turns."""
_NODE_SHARE = 6
"""A node has at most a sixth of the cap."""
_ROOM_SHARE = 4
"""A new crown leaves a quarter of the cap free for what comes."""

Place = tuple[int, int, int]
"""Level, first leaf, and the leaf after the last."""


@dataclass(frozen=True, slots=True)
class Node:
    """A summary of the leaves ``start`` to ``end`` (exclusive)."""

    level: int
    """Merges between it and the source."""
    start: int
    end: int
    tokens: int
    """Of its text; the most that it may have while ``parts`` says that it has to be made."""
    parts: tuple["Node", ...] = ()
    """Of which it has to be merged; empty: it is there."""

    @property
    def place(self) -> Place:
        return self.level, self.start, self.end


def choose_nodes(leaves: Sequence[int], made: Mapping[Place, int], cap: int) -> tuple[Node, ...]:
    """Nodes that stand for all ``leaves``, in order, with at most ``cap`` tokens together.

    ``leaves`` and ``made`` hold the tokens of each text with what stands beside it. ``made``: merged nodes that are
    stored. Nodes of the answer may have to be made, and so may their parts.
    """
    nodes = _merged(leaves, made, 0, cap, cap)
    crowned = [(one, *_merged(leaves, made, one.end, cap - one.tokens, cap)) for one in _crowns(leaves, made)]
    fitting = [tuple(one) for one in (nodes, *crowned) if total_of(one) <= cap]
    if not fitting:
        return _crowned(nodes, cap)
    # What is there already, whatever else would do: else the same again might ask for more.
    return next((one for one in fitting if not any(node.parts for node in one)), fitting[0])


def leaf_cap(source_tokens: int, leaves: int, cap: int) -> int:
    """Most tokens for the text of a leaf with so much source, in a session of so many leaves."""
    share = max(cap // _NODE_SHARE, cap // (leaves + 1))
    return min(max(LEAST_TEXT, min(source_tokens // 5, share)), cap)


def total_of(nodes: Sequence[Node]) -> int:
    """Tokens of all."""
    return sum(node.tokens for node in nodes)


def is_aligned(place: Place) -> bool:
    """Whether it is a node of the tree; otherwise it is a crown."""
    level, start, end = place
    return end - start == FAN**level and start % (end - start) == 0


def _merged(leaves: Sequence[int], made: Mapping[Place, int], first: int, most: int, cap: int) -> list[Node]:
    """Leaves from ``first`` on, the oldest merged by alignment until all have at most ``most`` tokens, or all are."""
    nodes: list[Node] = []
    total = sum(leaves[first:])
    for index in range(first, len(leaves)):
        nodes.append(Node(0, index, index + 1, leaves[index]))
        while total > most and _is_group(nodes[-FAN:]):
            parent = _parent(nodes[-FAN:], made, cap)
            total += parent.tokens - total_of(nodes[-FAN:])
            nodes[-FAN:] = [parent]
    return nodes


def _is_group(nodes: Sequence[Node]) -> bool:
    level = nodes[-1].level
    return len(nodes) == FAN and all(one.level == level for one in nodes) and nodes[0].start % FAN ** (level + 1) == 0


def _parent(parts: Sequence[Node], made: Mapping[Place, int], cap: int) -> Node:
    """Of ``parts``, stored or to be made. A stored one that is no smaller than its parts is made anew."""
    most = _merged_cap(total_of(parts), cap)
    node = Node(parts[0].level + 1, parts[0].start, parts[-1].end, most, tuple(parts))
    there = made.get(node.place)
    return node if there is None or there >= total_of(parts) else replace(node, tokens=there, parts=())


def _merged_cap(tokens: int, cap: int) -> int:
    """Half of what is merged, within a node's share; less than what is merged in any case."""
    return min(max(LEAST_TEXT, min(tokens // 2, cap // _NODE_SHARE)), tokens * 3 // 4)


def _crowns(leaves: Sequence[int], made: Mapping[Place, int]) -> list[Node]:
    """Stored crowns, the one that stands for most leaves first."""
    places = [place for place in made if place[1] == 0 and place[2] <= len(leaves) and not is_aligned(place)]
    ordered = sorted(places, key=lambda place: (-place[2], place[0]))
    return [Node(*place, made[place]) for place in ordered]


def _crowned(nodes: Sequence[Node], cap: int) -> tuple[Node, ...]:
    """``nodes`` with the fewest of the oldest merged into a crown that leaves room for later leaves."""
    room = cap // _ROOM_SHARE
    rest_most = min(cap // 2, cap - room - LEAST_TEXT)
    count = next(number for number in range(1, len(nodes) + 1) if _rest(nodes, number) <= max(0, rest_most))
    oldest, rest = nodes[:count], nodes[count:]
    left = cap - total_of(rest)
    tokens = min(left, max(LEAST_TEXT, left - room), max(1, total_of(oldest) * 3 // 4))
    level = max(node.level for node in oldest) + 1
    return Node(level, 0, oldest[-1].end, tokens, tuple(oldest)), *rest


def _rest(nodes: Sequence[Node], number: int) -> int:
    return total_of(nodes[number:])
