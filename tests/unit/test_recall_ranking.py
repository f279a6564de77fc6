"""Bags, questions and the ranking: what the recipe promises, without a server."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefold.recall.bag import EMPTY, Bag, columns, joined, packed, unpacked
from prefold.recall.fuse import WordScale
from prefold.recall.matrix import WordMatrix
from prefold.recall.question import NamedDate, Question, dates_in
from prefold.recall.ranking import Ranking
from prefold.recall.retrieval import Candidate
from prefold.recall.same import best_without_copies, body_of, say_the_same, texts_say_the_same
from prefold.recall.sparse import K1, ONE_PASSAGE_WORDS, damping, document_words, query_words

MAY_8 = int(datetime(2023, 5, 8, 13, tzinfo=UTC).timestamp() * 1000)
counts = st.dictionaries(st.integers(0, 2**32 - 1), st.integers(1, 255), max_size=8)
few = st.dictionaries(st.integers(0, 9), st.integers(1, 3), max_size=5)
bags = st.lists(
    st.builds(lambda heading, passages: unpacked(packed(heading, passages)), few, st.lists(few, max_size=3)),
    max_size=4,
)


@given(counts, st.lists(counts, max_size=4))
def test_a_bag_is_what_was_packed(heading: dict[int, int], passages: list[dict[int, int]]) -> None:
    bag = unpacked(packed(heading, passages))
    parts = [heading, *passages]
    assert bag.distinct == tuple(map(len, parts))
    assert bag.lengths == tuple(sum(part.values()) for part in parts)
    assert list(zip(bag.ids.tolist(), bag.counts.tolist(), strict=True)) == [
        item for part in parts for item in part.items()
    ]


@pytest.mark.parametrize("stored", [None, "", 7])
def test_a_point_without_a_bag_has_no_words(stored: object) -> None:
    assert unpacked(stored) is EMPTY


def test_a_long_text_is_as_good_as_its_best_passage_and_its_vector_never_promises_less() -> None:
    filler = " ".join(f"filler{n}" for n in range(2 * ONE_PASSAGE_WORDS))
    together, apart = f"{filler} passport expired", f"passport {filler} expired"
    idf = dict.fromkeys(query_words("passport expired").indices, 2.0)
    near, far = WordMatrix.of(columns([unpacked(document_words(text).bag) for text in (together, apart)]), idf).bm25
    assert near == pytest.approx(2 * far, rel=0.05)
    for text, bm25 in ((together, near), (apart, far)):
        stored = document_words(text)
        weights = dict(zip(stored.indices, stored.values, strict=True))
        assert sum(2.0 * weights[word] for word in idf) >= bm25 - 1e-4


def test_a_heading_counts_with_every_passage_and_never_as_one() -> None:
    words = document_words(" ".join(f"w{n}" for n in range(200)), "Ada (8 May 2023)")
    matrix = WordMatrix.of(columns([unpacked(words.bag)]), dict.fromkeys(query_words("Ada w199").indices, 1.0))
    assert matrix.bm25[0] > 1.5
    heading = columns([unpacked(document_words("", "Ada").bag)])
    assert WordMatrix.of(heading, dict.fromkeys(query_words("Ada").indices, 1.0)).bm25.tolist() == [0.0]


@settings(max_examples=50)
@given(bags, bags, st.dictionaries(st.integers(0, 9), st.floats(0.1, 9), max_size=5))
def test_texts_read_in_two_parts_are_as_those_read_at_once(
    some: list[Bag], more: list[Bag], idf: dict[int, float]
) -> None:
    both = joined(columns(some), columns(more))
    whole = columns([*some, *more])
    assert [column.tolist() for column in both] == [column.tolist() for column in whole]
    matrix = WordMatrix.of(columns(some), idf).joined(WordMatrix.of(columns(more), idf))
    expected = WordMatrix.of(whole, idf)
    assert np.array_equal(matrix.counts, expected.counts)
    assert np.array_equal(matrix.lengths, expected.lengths)
    assert np.array_equal(matrix.are_short, expected.are_short)
    assert np.allclose(matrix.bm25, expected.bm25)


@settings(max_examples=50)
@given(bags, st.dictionaries(st.integers(0, 9), st.floats(0.1, 9), max_size=5))
def test_a_text_reaches_what_its_best_passage_reaches_with_its_heading(texts: list[Bag], idf: dict[int, float]) -> None:
    reached = WordMatrix.of(columns(texts), idf).bm25
    for bag, bm25 in zip(texts, reached.tolist(), strict=True):
        assert bm25 == pytest.approx(best_of(bag, idf), rel=1e-5, abs=1e-6)


def best_of(bag: Bag, idf: dict[int, float]) -> float:
    """One passage after the other, word by word."""
    items = iter(zip(bag.ids.tolist(), bag.counts.tolist(), strict=True))
    heading, *passages = [dict(itertools.islice(items, distinct)) for distinct in bag.distinct]
    found = []
    for passage, length in zip(passages, bag.lengths[1:], strict=True):
        beside = damping(length + bag.lengths[0])
        counts = {word: heading.get(word, 0) + passage.get(word, 0) for word in idf}
        found.append(sum(idf[word] * tf * (K1 + 1) / (tf + beside) for word, tf in counts.items()))
    return max(found, default=0.0)


@settings(max_examples=50)
@given(st.data(), bags.filter(bool), st.dictionaries(st.integers(0, 9), st.floats(0.1, 9), max_size=5))
def test_a_window_reaches_what_all_that_take_part_in_it_reach_together(
    data: st.DataObject, texts: list[Bag], idf: dict[int, float]
) -> None:
    matrix = WordMatrix.of(columns(texts), idf)
    size = len(texts)
    takes_part = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    beside = np.array([data.draw(st.tuples(*[st.integers(-1, size - 1)] * 3)) for _ in texts])
    reached = matrix.windows(beside, takes_part)
    for place in range(size):
        together = [place, *(other for other in beside[place] if other >= 0)]
        counts = sum(matrix.counts[one] for one in together if takes_part[one])
        length = sum(float(matrix.lengths[one]) for one in together if takes_part[one])
        expected = (
            float((counts * (K1 + 1) / (counts + damping(length / 4))) @ matrix.idf) if takes_part[place] else 0.0
        )
        assert reached[place] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("What happened on 8 May 2023?", [NamedDate(2023, 5, 8)]),
        ("on May 8th, 2023", [NamedDate(2023, 5, 8)]),
        ("2023-05-08", [NamedDate(2023, 5, 8)]),
        ("in May", [NamedDate(None, 5, None)]),
        ("May I ask? You may.", []),
        ("in October or in december 2022", [NamedDate(None, 10, None), NamedDate(2022, 12, None)]),
        ("2023年5月8日去了哪里", [NamedDate(2023, 5, 8)]),
        ("10月有什么安排", [NamedDate(None, 10, None)]),
        ("since 2022", [NamedDate(2022, None, None)]),
        ("order 20231 of 13 items", []),
    ],
)
def test_the_dates_that_a_question_names_are_read(text: str, dates: list[NamedDate]) -> None:
    assert list(dates_in(text)) == dates


@given(st.text())
def test_any_text_is_a_question(text: str) -> None:
    for date in Question.of(text).dates:
        assert isinstance(date.fits(MAY_8), bool)


def test_a_date_fits_what_was_said_in_it() -> None:
    assert NamedDate(2023, 5, 8).fits(MAY_8)
    assert NamedDate(None, 5, None).fits(MAY_8)
    assert not NamedDate(2023, 5, 9).fits(MAY_8)
    assert not NamedDate(None, 5, None).fits(None)


def candidate(seq: int, text: str, *, cosine: float = 0.2, name: str = "", **payload: Any) -> Candidate:
    base = {"session": "s", "incarnation": "i", "seq": seq, "revision": 0, "ts": None, "role": "user", "voice": "user"}
    speaker = query_words(name).indices
    return Candidate({**base, "speaker": speaker, **payload}, cosine, unpacked(document_words(text, name).bag))


def scores(query: str, candidates: Sequence[Candidate]) -> list[float]:
    question = Question.of(query)
    idf = dict.fromkeys(question.words.indices, 2.0)
    words = WordMatrix.of(columns([one.bag for one in candidates]), idf)
    ranking = Ranking(question, candidates, words, WordScale.of(idf.values(), 0, 0))
    return [float(score) for score in ranking.scores(ranking.word_shares())]


def test_an_answer_beside_its_question_is_better_than_the_same_words_alone() -> None:
    said = [candidate(1, "Which hospital was it?"), candidate(2, "The one by the river.")]
    alone = candidate(9, "The one by the river.")
    _, beside, apart = scores("Which hospital?", [*said, alone])
    assert beside > apart + 0.1


def test_turns_of_another_sitting_or_session_are_no_neighbours() -> None:
    question = candidate(1, "Which hospital was it?", ts=MAY_8)
    answers = [
        candidate(2, "The one by the river.", ts=MAY_8),
        candidate(2, "The one by the river.", ts=MAY_8, session="t"),
        candidate(2, "The one by the river.", ts=MAY_8 + 86_400_000 * 3),
    ]
    assert scores("hospital", [question, answers[0]])[1] > scores("hospital", [question, answers[1]])[1] + 0.1
    assert scores("hospital", [question, answers[0]])[1] > scores("hospital", [question, answers[2]])[1] + 0.1


def test_the_one_speaker_that_the_question_names_is_favoured() -> None:
    said = [candidate(1, "I paint", name="Ada"), candidate(9, "I paint", name="Ben")]
    ada, ben = scores("What does Ada do?", said)
    assert ada > ben + 0.1
    ada, ben = scores("What do Ada and Ben do?", said)
    assert ada == pytest.approx(ben, abs=1e-3)


def test_a_turn_of_the_date_in_question_is_favoured() -> None:
    then, later = scores("in May 2023", [candidate(1, "x", ts=MAY_8), candidate(2, "x", ts=MAY_8 + 86_400_000 * 90)])
    assert then > later + 0.05


def test_what_the_user_said_counts_more_than_what_the_assistant_made_of_it_and_names_switch_that_off() -> None:
    user, assistant = scores("tea", [candidate(1, "tea"), candidate(9, "tea", voice="assistant")])
    assert user > assistant + 0.05
    user, assistant = scores(
        "tea", [candidate(1, "tea", name="Ada"), candidate(9, "tea", name="Ben", voice="assistant")]
    )
    assert user == pytest.approx(assistant, abs=1e-3)


def test_of_texts_that_say_the_same_the_best_stays_and_counts_the_others() -> None:
    texts = [
        "Should I get the oven insured?",
        "Should I get the oven insured?",
        "Order 4471 is late",
        "Order 4472 is late",
    ]
    candidates = [candidate(seq, text) for seq, text in enumerate(texts, 1)]
    bags = columns([one.bag for one in candidates])
    kept = best_without_copies(candidates, bags, np.array([0.9, 0.8, 0.7, 0.6], np.float32), 10)
    assert kept == [(0, (1,)), (2, ()), (3, ())]


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8), max_size=9), st.integers(1, 9))
def test_copies_are_those_that_a_comparison_of_all_pairs_finds(texts: list[list[str]], limit: int) -> None:
    candidates = [candidate(seq, " ".join(f"{word}ord" for word in words)) for seq, words in enumerate(texts, 1)]
    scores = -np.arange(len(texts), dtype=np.float32)
    bodies = [body_of(one.bag) for one in candidates]
    expected: dict[int, list[int]] = {}
    for n in range(min(len(texts), 3 * limit)):
        twin = next((other for other in expected if say_the_same(bodies[n], bodies[other])), None)
        if twin is not None:
            expected[twin].append(n)
        elif len(expected) < limit:
            expected[n] = []
    found = best_without_copies(candidates, columns([one.bag for one in candidates]), scores, limit)
    assert found == [(n, tuple(others)) for n, others in expected.items()]


def test_different_numbers_are_never_the_same() -> None:
    long = (
        "the parcel with the number {} left the warehouse in the north of the town on its way to the south of the city"
    )
    one, other = (body_of(unpacked(document_words(long.format(n)).bag)) for n in (4471, 4472))
    assert not say_the_same(one, other)
    assert say_the_same(one, one)
    assert not texts_say_the_same(frozenset(long.format(1).split()), frozenset(long.format(2).split()))
    assert texts_say_the_same(frozenset(long.split()), frozenset(long.split()))
    assert not say_the_same(frozenset(), frozenset())
