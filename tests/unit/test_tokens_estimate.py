"""The estimate of the base installation: never below the exact count over a context, and not far above it."""

import base64
import json
import os
import random
import statistics
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prefold.conversation import prepare_turn
from prefold.tokens import TokenCounter, load_counter
from prefold.tokens.at_hand import counter_at_hand
from prefold.tokens.estimate import EstimatingCounter

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("PREFOLD_DATA", ROOT.parent / "shared" / "data"))
HELD_OUT = sorted([*(ROOT / "bench" / "recall" / "heldout").glob("*.jsonl"), ROOT / "examples" / "support.jsonl"])
"""Conversations of the repository, on which nothing was fitted."""
LEAST = 1_000
"""Tokens of the smallest context that a limit allows."""


def ratios(path: Path) -> Iterator[float]:
    """Of each context of the conversation from so many tokens on: the estimate by the exact count."""
    counters: list[TokenCounter] = [EstimatingCounter(), load_counter()]
    totals = [0, 0]
    for line in path.read_text("utf-8").splitlines():
        turn = {
            name: value for name, value in json.loads(line).items() if name in ("id", "role", "content", "tool_calls")
        }
        for place, counter in enumerate(counters):
            totals[place] += prepare_turn(turn, 0, counter, lambda: "x").tokens
        if totals[1] >= LEAST:
            yield totals[0] / totals[1]


@pytest.mark.parametrize("path", HELD_OUT, ids=lambda path: path.stem)
def test_no_context_of_a_conversation_is_estimated_below_its_count(path: Path) -> None:
    found = list(ratios(path))
    assert min(found) >= 1
    assert statistics.median(found) < 1.5


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_same_of_real_conversations_of_many_kinds() -> None:
    if not DATA.is_dir():
        pytest.skip(f"no conversations in {DATA}: PREFOLD_DATA names their folder")
    by_file = {path.name: list(ratios(path)) for path in sorted(DATA.glob("*.jsonl"))}
    below = {name: min(found) for name, found in by_file.items() if found and min(found) < 1}
    assert by_file
    assert below == {}
    middle = statistics.median(one for found in by_file.values() for one in found)
    print(f"estimate / exact: median {middle:.3f}, least {min(map(min, filter(None, by_file.values()))):.3f}")  # noqa: T201
    assert middle < 1.10


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(random.Random(1).randbytes(900)).decode(),
        f"The key is {base64.b64encode(random.Random(2).randbytes(96)).decode()}, please keep it safe for me.",
        random.Random(3).randbytes(400).hex(),
        "\n".join(str(uuid.UUID(int=random.Random(number).getrandbits(128))) for number in range(20)),
        "wo3 jin1 tian1 qu4 le bei3 jing1 de da4 xue2 kan4 peng2 you3, ta1 men2 shuo1 zhong1 wen2 hen3 nan2 xue2. " * 5,
    ],
    ids=["base64", "a key", "hexadecimal", "ids", "pinyin with tones"],
)
def test_letters_that_are_no_words_are_not_estimated_below_their_count(text: str) -> None:
    assert 1 <= EstimatingCounter().count(text) / load_counter().count(text) < 1.25


LANGUAGES = {
    "Dutch": "Ik zou graag willen weten waarom mijn bestelling nog steeds niet is bezorgd, terwijl dit was toegezegd. ",
    "Italian": "Vorrei sapere per quale motivo il mio ordine non sia ancora stato consegnato, come mi era stato promesso. ",
    "Danish": "Jeg vil gerne vide, hvorfor min ordre stadig ikke er leveret, selvom den var lovet til i aftes. ",
    "Finnish": "Haluaisin tietää, miksi tilaustani ei ole vieläkään toimitettu, vaikka lupasitte tuoda sen eilen illalla. ",
    "Indonesian": "Saya ingin mengetahui mengapa pesanan saya belum dikirimkan padahal dijanjikan kemarin sore. ",
    "Swahili": "Ningependa kujua kwa nini agizo langu halijafikishwa bado ingawa mliahidi kulileta jana jioni. ",
    "Hindi in Latin letters": "Mera order abhi tak kyun nahi aaya, aapne kal shaam tak bhejne ka vaada kiya tha, jaldi batao. ",
}
"""On none of which anything of the English part was fitted."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_languages_in_latin_letters_are_not_estimated_below_their_count(language: str) -> None:
    text = LANGUAGES[language] * 5
    assert 1 <= EstimatingCounter().count(text) / load_counter().count(text) < 1.8


HOSTILE: list[Any] = [
    ("", 0),
    ("a", 1),
    ("    " * 400, 1),
    ("\n" * 5000, 1),
    ("\ud800 lone", 1),
    ("漢字" * 2000, 2000),
    ("👩‍👩‍👧" * 300, 300),
    ("x" * 100_000, 10_000),
]


@pytest.mark.parametrize(("text", "least"), HOSTILE, ids=range(len(HOSTILE)))
def test_any_text_has_a_count_that_grows_with_it(text: str, least: int) -> None:
    assert EstimatingCounter().count(text) >= least
    assert EstimatingCounter().count(text + " and more") >= EstimatingCounter().count(text)


def test_with_every_package_installed_tokens_are_counted_exactly() -> None:
    counter, kind = counter_at_hand()
    assert kind == "exact"
    assert counter.count("Hello there") == 2
