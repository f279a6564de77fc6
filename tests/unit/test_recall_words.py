"""By which words a text is found."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from prefold.recall.sparse import AVERAGE_WORDS, K1, MAX_QUERY_WORDS, document_words, query_words, word_id
from prefold.recall.stopwords import STOP_WORDS
from prefold.recall.words import words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The travellers were travelling", ["travel", "travel"]),
        ("Flights, FLIGHT; flight!", ["flight", "flight", "flight"]),
        ("Melanie's and O'Brien’s dogs don't", ["melani", "obrien", "dog"]),
        ("a state-of-the-art plan", ["state", "art", "plan"]),
        ("Café, naïve, ЁЖ", ["cafe", "naiv", "еж"]),
        ("May 5th", ["mai", "5th", "th"]),
        ("order id 7", ["order", "id", "7"]),
        ("", []),
        ("the of and", []),
        ("... !!! --- 👍", []),
    ],
)
def test_prose_gives_stems_without_stop_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("mia_li_3668", "mia_li_3668", {"mia", "li", "3668"}),
        ("HAT136", "hat136", {"hat", "136"}),
        ("JG7FMM", "jg7fmm", {"jg", "fmm"}),
        ("parseUserName", "parseusername", {"pars", "user", "name"}),
        ("HTTPServer", "httpserver", {"http", "server"}),
        ("foo.bar@example.com", "foo.bar@example.com", {"foo", "bar", "exampl", "com"}),
        ("src/app/main.py:12", "src/app/main.py:12", {"src", "app", "main", "py", "12"}),
        ("2024-05-15", "2024-05-15", {"2024", "05", "15"}),
        ("v1.2.3", "v1.2.3", set()),
        ("MAX_RETRIES", "max_retries", {"max", "retri"}),
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(text: str, whole: str, parts: set[str]) -> None:
    found = words_of(f"see {text}.")
    assert whole in found
    assert parts <= set(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$3,000", ["3000"]),
        ("1,234,567.50", ["1234567.50"]),
        ("3.5 10", ["3.5", "10"]),
        ("3000", ["3000"]),
    ],
)
def test_a_number_is_one_word_however_it_is_grouped(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我叫张曼婷", ["我叫", "叫张", "张曼", "曼婷"]),
        ("猫", ["猫"]),
        ("hello世界ok2", ["hello", "世界", "ok2"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("안녕하세요", ["안녕", "녕하", "하세", "세요"]),
    ],
)
def test_scripts_without_spaces_give_pairs_of_characters(text: str, words: list[str]) -> None:
    assert [word for word in words_of(text) if word != "ok"] == words


def test_marks_belong_to_the_letter_before_them() -> None:
    assert words_of("हिन्दी में") == ["हिन्दी", "में"]


def test_composed_and_decomposed_letters_are_the_same_word() -> None:
    assert words_of("Zu\u0308rich") == words_of("Z\u00fcrich") == ["zurich"]


def test_a_long_run_is_one_word_and_has_no_parts() -> None:
    assert words_of("aGVsbG8_" * 40) == ["agvsbg8_" * 40]


def test_of_a_huge_text_only_the_beginning_counts() -> None:
    assert len(words_of("tea " * 1_000_000)) == 8192


def test_a_stop_word_is_written_as_words_come_out() -> None:
    assert all(words_of(word) == [] for word in STOP_WORDS)


def test_threads_stem_without_disturbing_each_other() -> None:
    texts = [f"{stem}ing {stem}ed {stem}s" for stem in ("walk", "jump", "paint", "want", "rest", "call")] * 50
    expected = [[text.split()[0][:-3]] * 3 for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(words_of, texts)) == expected


def test_an_id_of_a_word_never_changes() -> None:
    assert word_id("october") == 1307242438


@pytest.mark.parametrize(("word", "is_odd"), [("october", False), ("hat136", True), ("136", True), ("٣", True)])
def test_an_id_tells_whether_the_word_has_a_digit(word: str, is_odd: bool) -> None:
    assert word_id(word) % 2 == is_odd
    assert 0 <= word_id("") < 2**32


def test_ids_are_the_same_in_another_process() -> None:
    code = "from prefold.recall.sparse import word_id; print(word_id('mia_li_3668'))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(shown.stdout) == word_id("mia_li_3668")


def test_a_query_has_every_word_once_with_weight_one() -> None:
    assert query_words("tea, tea and more tea with milk").values == (1.0, 1.0)
    assert len(query_words(" ".join(f"w{n}" for n in range(500))).indices) == MAX_QUERY_WORDS


def test_a_text_without_words_has_no_vector() -> None:
    assert not document_words("the 👍")
    assert not query_words("")


def test_weights_are_bm25s() -> None:
    words = document_words("tea tea milk")
    weights = dict(zip(words.indices, words.values, strict=True))
    damping = K1 * (0.6 + 0.4 * 3 / AVERAGE_WORDS)
    assert weights[word_id("tea")] == pytest.approx(2 * 1.9 / (2 + damping))
    assert weights[word_id("milk")] == pytest.approx(1.9 / (1 + damping))


def test_no_weight_exceeds_what_the_fusion_counts_with() -> None:
    weights = document_words("tea " * 5000).values
    assert math.isclose(max(weights), 1.9, rel_tol=0.6)
    assert max(weights) < K1 + 1
