"""Job arguments and ids."""

import json
import re

import pytest

from prefold.errors import InvalidInputError
from prefold.jobs import TO_HEAD, decode_sessions, decode_spans, encode_sessions, encode_spans, job_id
from prefold.storage.embed_types import EmbedSpan
from prefold.storage.types import SessionRef

SPANS = [EmbedSpan("acme", "s:1 {x}", "a1b2", 3, 9), EmbedSpan("acme", "s2", "c3", 1, TO_HEAD)]
REFS = [SessionRef("acme", "é\ud83d\ude00", "a1"), SessionRef("b", "s", "c3")]


def test_spans_come_back_as_they_were_after_a_trip_through_json() -> None:
    assert decode_spans(json.loads(json.dumps(encode_spans(SPANS)))) == SPANS


def test_sessions_come_back_as_they_were_after_a_trip_through_json() -> None:
    refs = [SessionRef("acme", "s:1 {x}", "a1"), SessionRef("b", "日本", "c3")]
    assert decode_sessions(json.loads(json.dumps(encode_sessions(refs)))) == refs


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "abc",
        {"tenant": "a"},
        ["abc"],
        [["a", "s", "i", 1]],
        [["a", "s", "i", 1, 2, 3]],
        [["a", "s", "i", "1", 2]],
        [["a", "s", "i", 0, 2]],
        [["a", "s", "i", 5, 4]],
        [["a", "s", "i", True, 4]],
        [["a", "s", "i", 1.5, 4]],
        [["", "s", "i", 1, 2]],
        [["a", 7, "i", 1, 2]],
    ],
)
def test_a_malformed_span_is_refused_for_good(payload: object) -> None:
    with pytest.raises(InvalidInputError):
        decode_spans(payload)


@pytest.mark.parametrize("payload", [None, [["a", "s"]], [["a", "s", None]], [["a", "s", "i", 1]], [["a", "", "i"]]])
def test_a_malformed_session_is_refused_for_good(payload: object) -> None:
    with pytest.raises(InvalidInputError):
        decode_sessions(payload)


def test_a_refusal_names_the_place() -> None:
    with pytest.raises(InvalidInputError) as caught:
        decode_spans([["a", "s", "i", 1, 2], ["a", "s", "i", 0, 2]])
    assert caught.value.field == "spans[1][3]"


def test_an_id_has_only_the_letters_that_rq_takes_whatever_the_session_is_called() -> None:
    for ref in REFS:
        assert re.fullmatch(r"[A-Za-z0-9_-]+", job_id("compact", encode_sessions([ref]), "7"))


def test_the_same_work_on_the_same_occasion_has_the_same_id() -> None:
    assert job_id("embed", encode_spans(SPANS), "events") == job_id("embed", encode_spans(list(SPANS)), "events")


def test_other_work_or_another_occasion_has_another_id() -> None:
    ids = {
        job_id("embed", encode_spans(SPANS), "events"),
        job_id("embed", encode_spans(SPANS[:1]), "events"),
        job_id("embed", encode_spans(SPANS), "due-1"),
        job_id("compact", encode_sessions(REFS), "events"),
    }
    assert len(ids) == 4


def test_moving_a_letter_from_one_field_to_the_next_changes_the_id() -> None:
    one, two = EmbedSpan("ab", "c", "d", 1, 2), EmbedSpan("a", "bc", "d", 1, 2)
    assert job_id("embed", encode_spans([one]), "") != job_id("embed", encode_spans([two]), "")
