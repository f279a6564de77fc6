"""Which runs of turns are summarised, and which stored segments are taken as they are."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from prefold.compaction.segments.planning import (
    LEAST_RUN_TOKENS,
    Piece,
    Run,
    SentTurn,
    halves_of,
    known_pieces,
    plan_segments,
    runs_of,
    source_hash,
)
from prefold.storage.types import StoredSegment


def turns_of(*tokens: int, not_cuts: tuple[int, ...] = (), holes: tuple[int, ...] = ()) -> list[SentTurn]:
    """Turns of so many tokens each; ``not_cuts`` and ``holes`` are seqs."""
    seqs = [seq for seq in range(1, len(tokens) + len(holes) + 1) if seq not in holes]
    return [
        SentTurn(seq, 0, f"d{seq}", size, size, seq not in not_cuts) for seq, size in zip(seqs, tokens, strict=True)
    ]


def segment(turns: list[SentTurn], start: int, end: int, **members: object) -> StoredSegment:
    """What stands for turns ``start`` to ``end`` (exclusive)."""
    run = turns[start:end]
    made = StoredSegment(0, run[0].seq, run[-1].seq, source_hash(run), "1 m", "text", 10, 100)
    return replace(made, **members)  # type: ignore[arg-type]


def spans(pieces: Iterable[Piece]) -> list[tuple[int, int]]:
    """Of the runs that are to be made."""
    return [(piece.start, piece.end) for piece in pieces if isinstance(piece, Run)]


def kept(pieces: Iterable[Piece]) -> list[StoredSegment]:
    return [piece for piece in pieces if isinstance(piece, StoredSegment)]


def taken(turns: list[SentTurn], stored: list[StoredSegment], prompt_version: str = "1 m") -> list[StoredSegment]:
    """Stored segments that a build would take."""
    return kept(known_pieces(turns, stored, prompt_version))


def test_stored_segments_are_taken_from_the_first_turn_on_as_far_as_they_match() -> None:
    turns = turns_of(*[100] * 9)
    stored = [segment(turns, 0, 3), segment(turns, 3, 5), segment(turns, 5, 9)]
    assert taken(turns, stored) == stored
    assert spans(known_pieces([*turns, *turns_of(*[100] * 12)[9:]], stored, "1 m")) == [(9, 12)]


def test_segments_after_one_that_is_missing_are_taken_all_the_same() -> None:
    turns = turns_of(*[100] * 12)
    stored = [segment(turns, 0, 3), segment(turns, 6, 9), segment(turns, 9, 12)]
    pieces = known_pieces(turns, stored, "1 m")
    assert pieces == [stored[0], Run(3, 6), stored[1], stored[2]]
    assert plan_segments(turns, pieces, 1000) == pieces


def test_a_gap_that_is_a_crumb_takes_the_segment_after_it_along() -> None:
    turns = turns_of(*[100] * 12)
    stored = [segment(turns, 0, 3), segment(turns, 4, 7), segment(turns, 7, 12)]
    assert known_pieces(turns, stored, "1 m") == [stored[0], Run(3, 7), stored[2]]


@pytest.mark.parametrize("member", ["revision", "digest", "seq"])
def test_a_turn_that_changed_ends_the_chain_before_its_segment(member: str) -> None:
    turns = turns_of(*[100] * 6)
    stored = [segment(turns, 0, 2), segment(turns, 2, 4), segment(turns, 4, 6)]
    changed = {"revision": 1, "digest": "other", "seq": 30}[member]
    turns[3] = replace(turns[3], **{member: changed})  # type: ignore[arg-type]
    assert taken(turns, stored) == stored[:1]


def test_a_turn_that_is_gone_ends_the_chain_before_its_segment() -> None:
    turns = turns_of(*[100] * 6)
    stored = [segment(turns, 0, 2), segment(turns, 2, 4), segment(turns, 4, 6)]
    assert taken([turn for turn in turns if turn.seq != 3], stored) == stored[:1]
    assert taken([turn for turn in turns if turn.seq != 4], stored) == stored[:1]


def test_another_prompt_or_model_makes_everything_anew() -> None:
    turns = turns_of(100, 100)
    assert taken(turns, [segment(turns, 0, 2)], "2 m") == []


def test_merged_segments_are_no_part_of_the_chain() -> None:
    turns = turns_of(100, 100)
    assert taken(turns, [segment(turns, 0, 2, level=1)]) == []


def test_of_two_segments_that_begin_together_the_longer_is_taken_but_not_beyond_what_is_covered() -> None:
    turns = turns_of(*[100] * 6)
    stored = [segment(turns, 0, 2), segment(turns, 0, 4), segment(turns, 0, 6)]
    assert taken(turns, stored) == [stored[2]]
    assert taken(turns[:5], stored) == [stored[1]]


def test_the_seqs_that_a_rewind_left_empty_are_no_gap() -> None:
    turns = turns_of(*[100] * 4, holes=(3, 4))
    stored = [segment(turns, 0, 2), segment(turns, 2, 4)]
    assert [one.first_seq for one in stored] == [1, 5]
    assert taken(turns, stored) == stored


def test_new_turns_are_cut_into_even_runs_within_a_chunk() -> None:
    turns = turns_of(*[100] * 10)
    assert spans(plan_segments(turns, [Run(0, 10)], 400)) == [(0, 3), (3, 7), (7, 10)]


def test_runs_end_at_cuts_only() -> None:
    turns = turns_of(*[400] * 8, not_cuts=(3, 5, 6))
    runs = runs_of(turns, 0, 1_200)
    assert all(turns[run.start].is_cut for run in runs)
    assert [run.end for run in runs[:-1]] == [run.start for run in runs[1:]]


def test_turns_that_belong_together_stay_together_beyond_the_size_of_a_chunk() -> None:
    turns = turns_of(*[400] * 6, not_cuts=(2, 3, 4, 5))
    assert spans(runs_of(turns, 0, 800)) == [(0, 5), (5, 6)]


@pytest.mark.parametrize("tokens", [(900, 20), (20, 900), (900, 20, 900), (10, 10, 10)])
def test_no_run_is_a_crumb_where_there_is_more(tokens: tuple[int, ...]) -> None:
    turns = turns_of(*tokens)
    runs = runs_of(turns, 0, 900)
    assert [index for run in runs for index in range(run.start, run.end)] == list(range(len(turns)))
    sizes = [sum(tokens[run.start : run.end]) for run in runs]
    assert min(sizes) >= min(LEAST_RUN_TOKENS, sum(tokens))


def test_a_small_last_segment_is_made_anew_with_the_turns_that_follow() -> None:
    turns = turns_of(*[100] * 9)
    stored = [segment(turns, 0, 4), segment(turns, 4, 6)]
    assert plan_segments(turns, [*stored, Run(6, 9)], 1000) == [stored[0], Run(4, 9)]


def test_a_small_last_segment_stays_when_it_has_more_source_than_is_new() -> None:
    turns = turns_of(*[100] * 7)
    pieces: list[Piece] = [segment(turns, 0, 4), Run(4, 7)]
    assert plan_segments(turns, pieces, 1000) == pieces


def test_a_large_last_segment_stays_whatever_is_new() -> None:
    turns = turns_of(*[100] * 12)
    pieces: list[Piece] = [segment(turns, 0, 6), Run(6, 12)]
    assert plan_segments(turns, pieces, 1000) == pieces


def test_without_new_turns_nothing_is_made() -> None:
    turns = turns_of(100, 100)
    assert plan_segments(turns, known_pieces(turns, [segment(turns, 0, 2)], "1 m"), 1000) == [segment(turns, 0, 2)]


def test_a_run_is_halved_at_the_cut_nearest_its_middle_unless_a_half_is_a_crumb() -> None:
    turns = turns_of(*[100] * 8, not_cuts=(5,))
    assert halves_of(turns, Run(0, 8)) in [(Run(0, 3), Run(3, 8)), (Run(0, 5), Run(5, 8))]
    assert halves_of(turns, Run(3, 5)) is None
    assert halves_of(turns, Run(4, 8)) is None


def test_growing_by_any_steps_reads_no_token_more_than_twice_in_the_mean() -> None:
    for step in (1, 2, 3, 5, 8, 13):
        turns = turns_of(*[100 + 7 * (number % 5) for number in range(240)])
        chain: list[StoredSegment] = []
        read = 0
        for upto in range(step, len(turns) + 1, step):
            seen = turns[:upto]
            plan = plan_segments(seen, known_pieces(seen, chain, "1 m"), 2_000)
            read += sum(turn.tokens for start, end in spans(plan) for turn in seen[start:end])
            chain = [one if isinstance(one, StoredSegment) else segment(seen, one.start, one.end) for one in plan]
            covered = [(one.first_seq, one.last_seq) for one in chain]
            assert (covered[0][0], covered[-1][1]) == (1, upto)
            assert all(before[1] + 1 == after[0] for before, after in pairwise(covered))
        assert read <= 2 * sum(turn.tokens for turn in turns)
