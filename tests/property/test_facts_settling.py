"""What was said decides what holds: not the order in which it was learnt, nor how often, nor what was taken back."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from prefold.facts import Fact, Stated
from prefold.facts.changing import Turns, with_evidence, without_turns
from prefold.facts.evidence import MOST_EVIDENCE, Evidence, Key, Row, decode_row, encode_row, evidence_of
from prefold.facts.rows import CATEGORIES
from prefold.facts.settling import settled
from prefold.storage.memory_types import TurnSpan
from tests.support.facts import START_MS, content, said, source

NOW_MS = START_MS + 1_000
RELATIONS = [
    "lives_in",
    "moved_to",
    "email",
    "likes",
    "dislikes",
    "hates",
    "eats",
    "does_not_eat",
    "motto",
    "no_longer_lives_in",
]
OBJECTS = ["Rome", "rome", "the Rome", "Oslo", "OSLO ", "tea", "罗马"]


def _statement(
    relation: str, obj: str, at: tuple[int, str, int], said_at: int, how: tuple[bool, bool, bool, bool], **members: Any
) -> Stated:
    """Of few words, so that statements meet."""
    seq, session, revision = at
    retracts, of_anything, is_single, is_entity = how
    return said(
        relation,
        "" if retracts and of_anything else obj,
        seq,
        source=source(seq, session, revision=revision),
        said_at_ms=START_MS + said_at,
        retracts=retracts,
        is_single=is_single,
        is_entity=is_entity,
        **members,
    )


def statements(most: int = MOST_EVIDENCE, spread: int = 8) -> st.SearchStrategy[list[Stated]]:
    """Many at the same moment."""
    one = st.builds(
        _statement,
        st.sampled_from(RELATIONS),
        st.sampled_from(OBJECTS),
        st.tuples(st.integers(1, 12), st.sampled_from(["s1", "s2"]), st.integers(0, 1)),
        st.integers(0, spread),
        st.tuples(st.sampled_from([False, False, False, True]), st.booleans(), st.booleans(), st.booleans()),
        category=st.sampled_from(CATEGORIES),
        confidence=st.sampled_from([0.5, 0.8, 1.0]),
        origin=st.sampled_from(["extracted", "extracted", "model", "backend"]),
        said=st.sampled_from(["one", "two", "three"]),
    )
    return st.lists(one, max_size=most)


def learnt(told: Iterable[Stated], rows: Mapping[str, Row] | None = None) -> dict[str, Row]:
    accepted: list[tuple[Key, Evidence]] = []
    for one in told:
        made = evidence_of(one, NOW_MS)
        assert not isinstance(made, str), made
        accepted.append(made)
    return with_evidence(rows or {}, accepted)


def facts(rows: Mapping[str, Row]) -> list[Fact]:
    return list(settled(rows.values()).values())


@given(told=statements(), seed=st.integers(0, 1_000), pieces=st.integers(1, 6))
@settings(max_examples=25)
def test_what_holds_does_not_depend_on_the_order_of_learning(told: list[Stated], seed: int, pieces: int) -> None:
    whole = learnt(told)
    shuffled = random.Random(seed).sample(told, len(told))
    rows: dict[str, Row] = {}
    for piece in range(pieces):
        rows = learnt(shuffled[piece::pieces], rows)
    assert content(facts(rows)) == content(facts(whole))
    assert {(row.key, row.evidence) for row in rows.values()} == {(row.key, row.evidence) for row in whole.values()}


@given(told=statements(most=60, spread=40), seed=st.integers(0, 1_000))
@settings(max_examples=25)
def test_nor_does_it_where_more_was_said_than_a_row_keeps(told: list[Stated], seed: int) -> None:
    told = [*told, *(said("lives_in", "Rome", 100 + at, said_at_ms=START_MS + at % 31) for at in range(40))]
    one_by_one: dict[str, Row] = {}
    for statement in random.Random(seed).sample(told, len(told)):
        one_by_one = learnt([statement], one_by_one)
    assert content(facts(one_by_one)) == content(facts(learnt(told)))
    assert max(len(row.evidence) for row in one_by_one.values()) == MOST_EVIDENCE


@given(told=statements(), again=st.integers(1, 3))
@settings(max_examples=25)
def test_learning_again_changes_not_one_row(told: list[Stated], again: int) -> None:
    rows = learnt(told)
    for _ in range(again):
        assert learnt(told, rows) == rows


TURNS = st.builds(
    Turns,
    session=st.sampled_from(["s1", "s2"]),
    incarnation=st.sampled_from([None, "life1", "life2"]),
    spans=st.none() | st.lists(st.builds(TurnSpan, st.integers(1, 12), st.integers(1, 12)), max_size=3),
    below_revision=st.sampled_from([None, 0, 1, 2]),
)


@given(told=statements(), turns=TURNS)
@settings(max_examples=25)
def test_what_is_withdrawn_is_as_if_it_had_never_been_said(told: list[Stated], turns: Turns) -> None:
    kept = [one for one in told if not turns.have(one.source)]
    left = without_turns(learnt(told), turns)
    assert content(facts(left)) == content(facts(learnt(kept)))
    assert {(row.key, row.evidence) for row in left.values()} == {
        (row.key, row.evidence) for row in learnt(kept).values()
    }
    assert without_turns(left, turns) == left


@given(told=statements())
@settings(max_examples=25)
def test_a_row_is_read_as_it_was_written(told: list[Stated]) -> None:
    rows = learnt(told)
    assert {name: decode_row(name, encode_row(row)) for name, row in rows.items()} == rows


@given(told=statements())
@settings(max_examples=25)
def test_of_a_relation_with_one_object_at_most_one_holds_and_it_is_the_newest(told: list[Stated]) -> None:
    found = facts(learnt(told))
    for relation in ("lives_in", "email"):
        same = [one for one in found if one.relation == relation]
        live = [one for one in same if one.superseded_by is None]
        assert len(live) <= 1
        for one in live:
            assert one.last_confirmed_ms == max(other.last_confirmed_ms for other in same)
        for one in same:
            if one.superseded_by is not None:
                assert one.superseded_at_ms is not None
                assert one.superseded_at_ms >= one.last_confirmed_ms


@given(
    times=st.lists(st.integers(0, 2_000), min_size=2, max_size=12),
    objects=st.lists(st.sampled_from(["Rome", "Oslo", "Graz"]), min_size=12, max_size=12),
    retracted=st.sets(st.integers(0, 10)),
)
@settings(max_examples=50)
def test_of_one_session_what_was_said_last_holds_whatever_its_dates_say(
    times: list[int], objects: list[str], retracted: set[int]
) -> None:
    """Some are later than the time of learning, which they count as."""
    told = [
        said("lives_in", objects[seq], seq + 1, said_at_ms=START_MS + at, retracts=seq in retracted - {len(times) - 1})
        for seq, at in enumerate(times)
    ]
    live = [one.object for one in facts(learnt(told)) if one.superseded_by is None]
    assert live == [told[-1].object]


@given(told=statements())
@settings(max_examples=25)
def test_nobody_likes_and_dislikes_the_same_thing_now(told: list[Stated]) -> None:
    live = [one for one in facts(learnt(told)) if one.superseded_by is None]
    liked, disliked = (
        {one.object.lower().strip() for one in live if one.relation == name} for name in ("likes", "dislikes")
    )
    assert not liked & disliked


@given(told=statements())
@settings(max_examples=25)
def test_whatever_supersedes_is_there(told: list[Stated]) -> None:
    found = settled(learnt(told).values())
    for one in found.values():
        assert one.superseded_by is None or one.superseded_by in found
        assert one.first_seen_ms <= one.last_confirmed_ms
        assert 0 <= one.confidence <= 1
        assert len(one.sources) == len(set(one.sources)) <= MOST_EVIDENCE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "key", "evidence", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(stored=st.binary(max_size=60) | JSON.map(lambda value: repr(value).replace("'", '"').encode("utf-8", "replace")))
@settings(max_examples=25)
def test_what_is_no_row_is_none_whatever_it_is(stored: bytes) -> None:
    assert decode_row("name", stored) is None


@given(at=st.integers(0, 10**6), junk=st.binary(min_size=1, max_size=3))
@settings(max_examples=25)
def test_a_row_with_other_bytes_in_it_is_none_or_a_row(at: int, junk: bytes) -> None:
    name, row = next(iter(learnt([said("lives_in", "Rome", 1)]).items()))
    stored = encode_row(row)
    at %= len(stored)
    found = decode_row(name, stored[:at] + junk + stored[at + len(junk) :])
    assert found is None or settled([found])


ODD: Sequence[Any] = [
    None,
    5,
    {},
    [],
    b"x",
    float("nan"),
    -1,
    10**30,
    "",
    " ",
    "x" * 400,
    "x" * 1_000_000,
    "\ud800",
    "nobody",
    True,
]


@given(
    field=st.sampled_from(
        [
            "subject",
            "relation",
            "object",
            "category",
            "confidence",
            "said",
            "source",
            "said_at_ms",
            "origin",
            "is_entity",
        ]
    ),
    odd=st.sampled_from(ODD),
)
@settings(max_examples=25)
def test_a_malformed_statement_is_refused_by_a_code_or_becomes_a_row_that_can_be_read(field: str, odd: Any) -> None:
    made = evidence_of(
        said("lives_in", "Rome", 1, **{field: odd}) if field not in ("relation", "object") else _named(field, odd),
        NOW_MS,
    )
    if isinstance(made, str):
        assert made in ("empty", "too_long", "doubtful", "malformed")
        return
    rows = with_evidence({}, [made])
    assert {name: decode_row(name, encode_row(row)) for name, row in rows.items()} == rows
    assert settled(rows.values())


def _named(field: str, odd: Any) -> Stated:
    return said(odd, "Rome", 1) if field == "relation" else said("lives_in", odd, 1)
