"""What counts as seen."""

import pytest

from prefold.evaluation.filler import at_length, small_talk
from prefold.evaluation.seen import Seen, fault_of
from prefold.evaluation.shapes import Expectation

SEEN = Seen(
    {"summary": "The user moved to\n  Oslo in May.", "window": "user: Now Bergen, please", "recall": "May I? oslo"},
    kinds=["turn", "fact"],
    tokens=120,
)


@pytest.mark.parametrize(
    "expected",
    [
        {"holds": "moved to oslo"},
        {"holds": ["Bergen", "May"]},
        {"holds": "Bergen", "section": "window"},
        {"holds_any": ["Narvik", "Oslo"]},
        {"lacks": "Narvik"},
        {"lacks": "Bergen", "section": "summary"},
        {"lacks": "Bergen", "section": "no such section"},
        {"verbatim": "moved to\n  Oslo"},
        {"in_order": ["Oslo", "Bergen"]},
        {"recalled": ["fact"]},
        {"most_tokens": 120},
    ],
)
def test_what_is_as_expected_has_no_fault(expected: dict[str, object]) -> None:
    assert fault_of(Expectation.model_validate(expected), SEEN) is None


@pytest.mark.parametrize(
    ("expected", "fault"),
    [
        ({"holds": "Narvik"}, "'Narvik' is not there"),
        ({"holds": ["Oslo", "Narvik"]}, "'Narvik' is not there"),
        ({"holds": "Bergen", "section": "summary"}, "'Bergen' is not there, but in window"),
        ({"holds_any": ["Narvik", "Lund"]}, "'Narvik' is not there; 'Lund' is not there"),
        ({"lacks": ["Narvik", "oslo"]}, "'oslo' stands in summary, recall"),
        ({"verbatim": "moved to Oslo"}, "'moved to Oslo' is not there as it was written (but in other letters or spaces in summary)"),
        ({"in_order": ["Bergen", "moved"]}, "'moved' comes before 'Bergen'"),
        ({"in_order": ["Bergen", "Narvik"]}, "'Narvik' is not there"),
        ({"recalled": ["turn", "segment", "summary"]}, "no segment and no summary among turn, fact"),
        ({"most_tokens": 119}, "120 tokens"),
    ],
)  # fmt: skip
def test_what_is_not_as_expected_is_told_with_where_it_stands_instead(expected: dict[str, object], fault: str) -> None:
    assert fault_of(Expectation.model_validate(expected), SEEN) == fault


def test_a_bound_on_tokens_fails_where_nothing_counts_them() -> None:
    assert fault_of(Expectation(most_tokens=10), Seen({"health": "no words"})) == "no tokens are counted here"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_small_talk_is_the_same_for_a_seed_and_hardly_repeats_itself(language: str) -> None:
    def talk(seed: str) -> list[tuple[str, str]]:
        made = small_talk(seed, "zh" if language == "zh" else "en")
        return [next(made) for _ in range(100)]

    assert talk("1") == talk("1")
    assert talk("1") != talk("2")
    assert len({answer for _, answer in talk("1")}) >= 95


def test_long_small_talk_has_answers_several_times_as_long() -> None:
    short, long = small_talk("1", "en"), small_talk("1", "en")
    answers = [next(short)[1] for _ in range(60)]

    assert sum(len(at_length(long, "en")[1]) for _ in range(10)) >= sum(map(len, answers))
    assert max(map(len, answers)) * 2 < len(at_length(long, "en")[1])


def test_small_talk_says_nothing_about_anybody() -> None:
    made = small_talk("1", "en")
    words = {word.strip("?.,;").lower() for _ in range(500) for text in next(made) for word in text.split()}

    assert words.isdisjoint({"i", "my", "me", "i'm", "we", "our", "you", "your", "name", "live", "prefer", "allergic"})
