"""Every counter gives the reference's counts."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefold.tokens import TokenCounter, load_counter, load_reference
from prefold.tokens.counter import WHOLE_TEXT_CHARS
from prefold.tokens.fast import FastCounter, load_fast_counter
from prefold.tokens.reference import ReferenceCounter, load_reference_counter

REPOSITORY = Path(__file__).parents[2]

CORPUS = {
    "empty": "",
    "english": "It's the customer's 3rd order, isn't it? I'LL CHECK: #4711-22 for $1,299.95 (incl. VAT).",
    "code": 'def f(x):\n\treturn {k: v**2 for k, v in x.items()}  # 1+2+3==6\r\nif __name__ == "__main__":\n    f({})\n',
    "german": "Straße, Öl und Übergröße: Donaudampfschifffahrtsgesellschaftskapitän",
    "chinese": "你好，我叫张曼婷，很高兴认识你。我很喜欢绘画、弹钢琴和品茶。" * 20,
    "japanese and korean": "日本語のトークナイザー、ひらがな。한국어 텍스트도 있습니다.",
    "arabic and hebrew": "مرحبا بالعالم، كيف حالك اليوم؟ שלום עולם",
    "hindi and thai": "नमस्ते दुनिया, आप कैसे हैं? สวัสดีชาวโลก",
    "joined emoji": "👩\u200d👩\u200d👧\u200d👦 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f 👍🏽 🇩🇪🇫🇷 ❤️",
    "combining marks": "a\u0301\u0323 e\u0308 Z\u0351\u036b\u0343\u036a\u0302",
    "special tokens": "<|endoftext|> and <|endofprompt|><|im_start|>system <|fim_prefix|>",
    "controls": "a\x00b\x01c\x1fd\x7fe\u0085f\u2028g\ufeffh\ufffd",
    "white space": "  \t\n\n\r\n   \u00a0\u3000 x \n",
    "digits": "1234567890" * 50,
    "base64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ" * 40,
    "json": json.dumps({"a": [1, 2.5, None, {"b\\": '"\n'}]}) * 10,
    "100 KB of one letter": "a" * 100_000,
    "100 KB of spaces": " " * 100_000,
    "100 KB of one ideograph": "中" * 100_000,
    "100 KB of joined emoji": "👩\u200d" * 50_000,
    "long prose": "The parcel was sent on Monday, it says. " * 5_000,
    "long lines": ("x" * 5_000 + "\n") * 20,
}


@pytest.fixture(scope="module")
def reference() -> TokenCounter:
    return load_reference()


@pytest.fixture(scope="module")
def fast() -> FastCounter:
    counter = load_fast_counter()
    assert counter is not None, "quicktok is part of the development install"
    return counter


@pytest.fixture(scope="module", params=["reference", "fast"])
def counter(request: pytest.FixtureRequest) -> TokenCounter:
    made: TokenCounter = request.getfixturevalue(request.param)
    return made


@pytest.mark.parametrize("name", CORPUS)
def test_the_fast_counter_equals_the_reference(name: str, fast: FastCounter, reference: TokenCounter) -> None:
    assert fast.count(CORPUS[name]) == reference.count(CORPUS[name])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.characters(exclude_categories=()), max_size=300))
def test_the_fast_counter_equals_the_reference_on_any_text(
    text: str, fast: FastCounter, reference: TokenCounter
) -> None:
    assert fast.count(text) == reference.count(text)


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(
            [" ", "\n", "word", "'s", "WORD", "12345", "<|endoftext|>", "é", "\u0301", "中", "👩\u200d", "\t", "/"]
        )
    )
)
def test_the_fast_counter_equals_the_reference_where_pieces_meet(
    parts: list[str], fast: FastCounter, reference: TokenCounter
) -> None:
    text = "".join(parts)
    assert fast.count(text) == reference.count(text)


def test_the_fast_counter_equals_the_reference_on_real_conversations(
    fast: FastCounter, reference: TokenCounter
) -> None:
    folder = Path(os.environ.get("PREFOLD_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no conversation data in {folder} (set PREFOLD_DATA)")
    texts = list(_texts(folder))
    assert len(texts) > 500
    assert [text for text in texts if fast.count(text) != reference.count(text)] == []


def _texts(folder: Path) -> Iterator[str]:
    """Every twelfth line of every file, as it stands: JSON of chats, code and tool results in several languages."""
    for file in sorted(folder.glob("*.jsonl")):
        yield from file.read_text(encoding="utf-8").splitlines()[::12]


def test_text_that_spells_a_special_token_counts_as_text(counter: TokenCounter) -> None:
    assert counter.count("<|endoftext|>") > 1


@pytest.mark.parametrize(("text", "same"), [("a\ud800b", "a\ufffdb"), ("\udc00", "\ufffd"), ("\ud83d\ude00", "😀")])
def test_lone_surrogates_count_as_replacement_characters(counter: TokenCounter, text: str, same: str) -> None:
    assert counter.count(text) == counter.count(same)


def test_a_long_text_counts_as_in_one_piece_where_it_has_words(counter: TokenCounter) -> None:
    prose = "".join(
        f"Order {number} isn't here; it's {number * 7 % 1000} km away.\n\n  So what? " for number in range(2_500)
    )
    assert len(prose) > 3 * WHOLE_TEXT_CHARS
    whole = counter._count if isinstance(counter, ReferenceCounter | FastCounter) else None
    assert whole is not None
    assert counter.count(prose) == whole(prose)


@pytest.mark.parametrize("letter", ["a", " ", "\n", "中", "^", "\u0301"])
def test_a_megabyte_without_a_word_boundary_is_counted(counter: TokenCounter, letter: str) -> None:
    """tiktoken alone panics on a million spaces."""
    thousand = counter.count(letter * 10_000)
    assert 50 * thousand < counter.count(letter * 1_000_000) < 150 * thousand


def test_threads_get_the_same_counts(counter: TokenCounter) -> None:
    texts = [text for text in CORPUS.values() if len(text) < 20_000] * 10
    alone = [counter.count(text) for text in texts]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(counter.count, texts)) == alone


def test_the_process_has_one_counter(fast: FastCounter) -> None:
    assert load_counter() is load_counter()
    assert isinstance(load_counter(), FastCounter)


def test_the_reference_needs_no_network_and_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/nonexistent")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert load_reference_counter().count("hello world") == 2
