"""Names, filters and fusion: the parts of recall that need no server."""

import math
import uuid
from dataclasses import replace
from typing import Any, cast

import pytest

from prefold.errors import InvalidInputError
from prefold.recall import CollectionSpec, collection_name, turn_point_id
from prefold.recall.fuse import WORD_WEIGHT, WordScale, fused, highest_idf
from prefold.recall.names import turn_place
from prefold.recall.scope import Scope, TurnRange
from prefold.storage.types import SessionRef

REF = SessionRef("acme", "s1", "i1")


def test_a_collection_is_named_by_embedder_and_dimension() -> None:
    assert CollectionSpec("minilm-l6-int8", 384).name == "turns_minilm-l6-int8_384"
    assert collection_name("BAAI/bge-small: v1.5 ", 512) == "turns_baai-bge-small-v1.5_512"


def test_a_points_id_is_a_uuid5_and_never_changes() -> None:
    assert turn_point_id(REF, 7, 0) == "7c19eb3f-8f8e-5b0d-8e2a-4bbd14d6cbfa"
    assert uuid.UUID(turn_point_id(REF, 7, 0)).version == 5


@pytest.mark.parametrize(
    ("ref", "seq", "revision"),
    [
        (SessionRef("acme2", "s1", "i1"), 7, 0),
        (SessionRef("acme", "s2", "i1"), 7, 0),
        (SessionRef("acme", "s1", "i2"), 7, 0),
        (REF, 8, 0),
        (REF, 7, 1),
        (SessionRef("acme\x00s1", "", "i1"), 7, 0),
        (SessionRef('acme","s1', "s1", "i1"), 7, 0),
    ],
)
def test_another_turn_has_another_id(ref: SessionRef, seq: int, revision: int) -> None:
    assert turn_point_id(ref, seq, revision) != turn_point_id(REF, 7, 0)


def test_neighbours_have_neighbouring_places_and_other_lives_others() -> None:
    here = turn_place("s1", "i1", 7)
    assert 0 <= here < 2**63
    assert (turn_place("s1", "i1", 8) - here) % 2**63 == 1
    assert len({here, turn_place("s2", "i1", 7), turn_place("s1", "i2", 7), turn_place("s1i1", "", 7)}) == 4


def test_a_place_is_asked_for_by_its_number_and_admitted_by_its_names() -> None:
    scope = Scope(tenant="acme", places=frozenset({("s1", "i1", 7), ("s1", "i1", 9)}))
    wanted = [turn_place("s1", "i1", 7), turn_place("s1", "i1", 9)]
    assert scope.filter()["must"][1:] == [{"key": "place", "match": {"any": wanted}}]
    there = {"tenant": "acme", "session": "s1", "incarnation": "i1", "seq": 7}
    assert scope.admits(there)
    for other in ({"seq": 8}, {"session": "s2"}, {"incarnation": "i2"}, {"tenant": "other"}):
        assert not scope.admits({**there, **other})


def test_every_filter_begins_with_the_tenant() -> None:
    whole = Scope(tenant="acme").filter()
    ranges = (TurnRange(3, 9), TurnRange(12, 12, below_revision=2))
    part = Scope(tenant="acme", user="u", session="s", incarnation="i", turns=ranges).filter()
    tenant = {"key": "tenant", "match": {"value": "acme"}}
    assert whole == {"must": [tenant]}
    assert part["must"][0] == tenant
    assert [condition["key"] for condition in part["must"][:-1]] == ["tenant", "user", "session", "incarnation"]
    assert part["must"][-1] == {
        "should": [
            {"must": [{"key": "seq", "range": {"gte": 3, "lte": 9}}]},
            {"must": [{"key": "seq", "range": {"gte": 12, "lte": 12}}, {"key": "revision", "range": {"lt": 2}}]},
        ]
    }


def test_a_filter_without_a_tenant_cannot_be_written() -> None:
    with pytest.raises(TypeError):
        Scope()  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["tenant", "user", "session", "incarnation"])
def test_an_empty_name_is_refused_because_it_would_not_narrow(name: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        replace(Scope(tenant="acme"), **cast("dict[str, Any]", {name: ""}))
    assert raised.value.field == name


def test_no_ranges_at_all_are_refused_because_they_would_read_like_every_turn() -> None:
    with pytest.raises(InvalidInputError):
        Scope(tenant="acme", session="s", turns=())


def test_a_payload_is_admitted_only_within_the_ranges() -> None:
    scope = Scope(tenant="acme", turns=(TurnRange(3, 4), TurnRange(7, 7, below_revision=2)))
    admitted = [
        (seq, revision)
        for seq in range(2, 9)
        for revision in range(3)
        if scope.admits({"tenant": "acme", "seq": seq, "revision": revision})
    ]
    assert admitted == [(3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2), (7, 0), (7, 1)]


def test_a_payload_of_another_tenant_is_not_admitted() -> None:
    scope = Scope(tenant="acme", session="s1")
    assert scope.admits({"tenant": "acme", "session": "s1", "user": "anyone"})
    assert not scope.admits({"tenant": "other", "session": "s1"})
    assert not scope.admits({"tenant": "acme", "session": "s2"})
    assert not scope.admits({})


def test_a_full_match_of_words_is_worth_the_whole_weight_and_never_more() -> None:
    scale = WordScale.of([2.0, 3.0], unknown_words=0, turns=0)
    assert scale.share(0.6 * 1.9 * 5.0) == pytest.approx(1.0)
    assert scale.share(1000) == 1.0
    assert fused(0.5, 1.0) == pytest.approx(0.5 + WORD_WEIGHT)


def test_words_that_nobody_used_weaken_those_that_somebody_did() -> None:
    alone = WordScale.of([2.0], unknown_words=0, turns=100).share(1.0)
    among_unknown = WordScale.of([2.0], unknown_words=4, turns=100).share(1.0)
    assert among_unknown < alone / 5


def test_without_words_the_cosine_stands_alone() -> None:
    scale = WordScale.of([], unknown_words=0, turns=0)
    assert scale.share(0.0) == 0.0
    assert fused(0.7, scale.share(0.0)) == 0.7
    assert fused(None, 0.5) == pytest.approx(0.4)


def test_the_highest_idf_is_the_stores_for_a_word_of_no_turn() -> None:
    assert highest_idf(100) == pytest.approx(math.log(1 + 100.5 / 0.5))
