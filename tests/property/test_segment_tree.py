"""Any growth of a session: what stands is within its cap, covers every turn once, and was merged few times and cheaply."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prefold.compaction.segments.planning import (
    LEAST_RUN_TOKENS,
    Piece,
    Run,
    SentTurn,
    known_pieces,
    plan_segments,
    runs_of,
    source_hash,
)
from prefold.compaction.segments.tree import (
    FAN,
    LEAST_TEXT,
    Node,
    Place,
    choose_nodes,
    is_aligned,
    leaf_cap,
    total_of,
)
from prefold.storage.types import StoredSegment
from tests.support.seeds import seed_of_run, tell


@dataclass
class Growth:
    """A session that gets leaf after leaf, with texts of any length within their caps."""

    random: random.Random
    shortest: float = 0.3
    """Share of its cap that a text has at least."""
    leaves: list[int] = field(default_factory=list)
    made: dict[Place, int] = field(default_factory=dict)
    source: int = 0
    merged: int = 0
    """Tokens that merges read."""
    calls: int = 0
    deepest: int = 0

    def add(self, source_tokens: int, cap: int) -> tuple[Node, ...]:
        self.source += source_tokens
        self.leaves.append(self._text(leaf_cap(source_tokens, len(self.leaves) + 1, cap)))
        return self.stand(cap)

    def stand(self, cap: int) -> tuple[Node, ...]:
        """What stands now, everything made."""
        nodes = choose_nodes(self.leaves, self.made, cap)
        assert total_of(nodes) <= cap
        real = tuple(self._made(node) for node in nodes)
        assert total_of(real) <= cap
        assert [leaf for node in real for leaf in range(node.start, node.end)] == list(range(len(self.leaves)))
        assert not any(node.parts for node in choose_nodes(self.leaves, self.made, cap)), "all is there already"
        self.deepest = max(self.deepest, *(node.level for node in real))
        return real

    def _made(self, node: Node) -> Node:
        if not node.parts:
            return node
        parts = [self._made(part) for part in node.parts]
        assert [part.start for part in parts] == [node.start, *(part.end for part in parts[:-1])]
        assert node.level == max(part.level for part in parts) + 1
        assert is_aligned(node.place) or all(part.level == 0 or is_aligned(part.place) for part in parts)
        self.merged += total_of(parts)
        self.calls += 1
        tokens = self._text(node.tokens)
        self.made[node.place] = tokens
        return Node(*node.place, tokens)

    def _text(self, most: int) -> int:
        return max(1, int(most * self.random.uniform(self.shortest, 1)))

    @property
    def deepest_allowed(self) -> int:
        """Aligned levels, and the crown's."""
        return ceil(log(max(2, len(self.leaves)), FAN)) + 1


def test_every_growth_stands_within_its_cap_covered_once_and_merged_log_many_times() -> None:
    seed = seed_of_run("the growths")
    for number in range(400):
        chance = random.Random(f"{seed} {number}")
        growth = Growth(chance, chance.choice((0.05, 0.3, 0.9)))
        caps = sorted(chance.randint(160, 4_000) for _ in range(chance.randint(1, 3)))
        most = chance.choice((300, 3_000, 30_000))
        for _ in range(chance.choice((1, 2, 5, 20, 60))):
            growth.add(chance.randint(50, most), chance.choice(caps))
            assert growth.deepest <= growth.deepest_allowed


@given(
    st.lists(st.tuples(st.integers(1, 60_000), st.integers(160, 4_000)), min_size=1, max_size=40),
    st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_any_leaves_under_any_caps_stand(steps: list[tuple[int, int]], seed: int) -> None:
    growth = Growth(random.Random(seed))
    for source, cap in steps:
        growth.add(source, cap)
    assert growth.deepest <= growth.deepest_allowed


def test_a_change_lets_the_rest_of_the_tree_stand() -> None:
    chance = random.Random(5)
    growth = Growth(chance)
    for _ in range(64):
        growth.add(3_000, 3_800)
    calls = growth.calls
    growth.leaves = growth.leaves[:50]
    growth.made = {place: tokens for place, tokens in growth.made.items() if place[2] <= 50}
    growth.stand(3_800)
    assert growth.calls - calls <= 4
    for _ in range(14):
        growth.add(3_000, 3_800)


@pytest.mark.parametrize("cap", [1_900, 3_800])
def test_merging_costs_a_share_of_the_source_however_long_a_session_grows(cap: int) -> None:
    """At a 32k limit: a refresh covers some 3,200 tokens of source, a summary has 1,900 to 3,800."""
    growth = Growth(random.Random(seed_of_run("the costs")), 0.8)
    shares = {}
    for number in range(1, 257):
        growth.add(growth.random.randint(2_500, 4_500), cap)
        if number in (16, 64, 128, 256):
            shares[number] = growth.merged / growth.source
    tell(f"cap {cap}: tokens that merges read per token of source, after so many segments: {shares}")
    assert max(shares.values()) <= 0.5
    assert shares[256] <= 1.5 * shares[64]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_twenty_thousand_growths_and_one_of_four_thousand_segments() -> None:
    seed = seed_of_run("the long growths")
    for number in range(20_000):
        chance = random.Random(f"long {seed} {number}")
        growth = Growth(chance, chance.choice((0.01, 0.3, 0.99)))
        low, high = sorted((chance.randint(160, 4_000), chance.randint(160, 4_000)))
        for _ in range(chance.randint(1, 80)):
            growth.add(chance.randint(1, 20_000), chance.randint(low, high))
        assert growth.deepest <= growth.deepest_allowed
    one = Growth(random.Random(seed), 0.8)
    for _ in range(4_000):
        one.add(one.random.randint(2_500, 4_500), 3_800)
    tell(f"4,000 segments: depth {one.deepest}, merges read {one.merged / one.source:.3f} per token of source")
    assert one.deepest <= one.deepest_allowed
    assert one.merged <= 0.6 * one.source


@given(st.lists(st.tuples(st.integers(0, 5_000), st.booleans()), max_size=60), st.integers(500, 6_000))
@example([(3, False), (500, True), *[(299, True)] * 9], 500)
@settings(max_examples=300, deadline=None)
def test_runs_hold_every_turn_once_end_at_cuts_and_keep_to_the_chunk_where_a_cut_allows(
    given_turns: list[tuple[int, bool]], chunk: int
) -> None:
    turns = [SentTurn(seq, 0, "", tokens, tokens, cut) for seq, (tokens, cut) in enumerate(given_turns, start=1)]
    runs = list(runs_of(turns, 0, chunk))
    assert [index for run in runs for index in range(run.start, run.end)] == list(range(len(turns)))
    for run in runs:
        assert run.start == 0 or turns[run.start].is_cut
        tokens = sum(turn.tokens for turn in turns[run.start : run.end])
        assert tokens <= chunk + 2 * LEAST_RUN_TOKENS or _has_large_group(turns[run.start : run.end], chunk)
        assert tokens >= LEAST_RUN_TOKENS or len(runs) == 1


def _has_large_group(turns: Sequence[SentTurn], chunk: int) -> bool:
    """Whether turns that no cut parts are over a chunk together."""
    size = 0
    for turn in turns:
        size = turn.tokens if turn.is_cut else size + turn.tokens
        if size > chunk:
            return True
    return False


def test_whatever_is_stored_the_pieces_of_a_build_hold_every_turn_once() -> None:
    seed = seed_of_run("the builds")
    for number in range(300):
        chance = random.Random(f"plans {seed} {number}")
        turns = [_turn(seq, chance) for seq in range(1, 80) if chance.random() > 0.1]
        stored: list[StoredSegment] = []
        for upto in sorted(chance.sample(range(1, len(turns) + 1), 6)):
            pieces = plan_segments(turns[:upto], known_pieces(turns[:upto], stored, "1"), 3_000)
            held = [index for piece in pieces for index in _places(turns, piece)]
            assert held == list(range(upto))
            made = [_segment(turns, piece) for piece in pieces if isinstance(piece, Run) and chance.random() < 0.7]
            stored = [one for one in [*stored, *made] if chance.random() < 0.9]
            edited = chance.randrange(len(turns))
            if chance.random() < 0.3:
                turns[edited] = replace(turns[edited], revision=turns[edited].revision + 1)
                if chance.random() < 0.5:
                    stored = [one for one in stored if one.last_seq < turns[edited].seq]


def _turn(seq: int, chance: random.Random) -> SentTurn:
    tokens = chance.choice((10, 200, 900, 5_000))
    return SentTurn(seq, 0, f"{chance.random()}", tokens, tokens, chance.random() < 0.7)


def _places(turns: Sequence[SentTurn], piece: Piece) -> range:
    """Where the turns of a piece are, each as it is now."""
    if isinstance(piece, Run):
        return range(piece.start, piece.end)
    seqs = [turn.seq for turn in turns]
    places = range(seqs.index(piece.first_seq), seqs.index(piece.last_seq) + 1)
    assert piece.source_hash == source_hash(turns[places.start : places.stop])
    return places


def _segment(turns: Sequence[SentTurn], run: Run) -> StoredSegment:
    held = turns[run.start : run.end]
    return StoredSegment(0, held[0].seq, held[-1].seq, source_hash(held), "1", "text", 1, 1)


def test_a_leaf_never_has_more_than_the_cap_nor_less_than_what_a_text_needs() -> None:
    for cap in (100, LEAST_TEXT, 500, 4_000):
        for source in (1, 500, 50_000):
            for leaves in (1, 2, 50):
                assert min(LEAST_TEXT, cap) <= leaf_cap(source, leaves, cap) <= cap
