"""The price table: packaged, and an operator's file before it."""

import math
import re
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from prefold.errors import ConfigurationError

__all__ = ["PACKAGED", "BilledTokens", "Price", "PriceTable", "Rates", "load_prices"]

PACKAGED = "the packaged table"
_DATE = re.compile(r"-(20\d{6}|latest)$")

Usd = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class BilledTokens:
    """Tokens of one call, as a provider bills them."""

    input_tokens: int = 0
    """Neither read from nor written to the prompt cache."""
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    output_tokens: int = 0
    """Thinking included."""

    @property
    def cache_write_tokens(self) -> int:
        return self.cache_write_5m_tokens + self.cache_write_1h_tokens

    @property
    def prompt_tokens(self) -> int:
        """The whole input, which price steps go by."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class Rates(BaseModel):
    """USD per million tokens, which is millionths of a USD per token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Usd
    cache_write_5m: Usd
    cache_write_1h: Usd
    cache_read: Usd
    output: Usd

    def micro_usd(self, tokens: BilledTokens) -> float:
        """Millionths of a USD, not rounded."""
        return (
            tokens.input_tokens * self.input
            + tokens.cache_write_5m_tokens * self.cache_write_5m
            + tokens.cache_write_1h_tokens * self.cache_write_1h
            + tokens.cache_read_tokens * self.cache_read
            + tokens.output_tokens * self.output
        )


class Step(Rates):
    """Rates of every token of a call whose prompt is longer."""

    input_tokens: Annotated[int, Field(ge=1, le=100_000_000)]


class Price(Rates):
    """One row. The first one whose pattern fits a model holds."""

    model: Annotated[str, Field(min_length=1, max_length=256)]
    """A name, or a pattern with ``*``, ``?`` and ``[…]``. A date at the end of a model's name does not matter."""
    above: Step | None = None
    assumed: bool = False
    """True: nobody has looked it up."""

    def rates_for(self, prompt_tokens: int) -> Rates:
        """Those of a call with so long a prompt."""
        return self.above if self.above is not None and prompt_tokens > self.above.input_tokens else self

    def cost(self, tokens: BilledTokens) -> int:
        """Millionths of a USD, rounded up: a budget never gets a call for nothing."""
        return math.ceil(round(self.rates_for(tokens.prompt_tokens).micro_usd(tokens), 6))


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    models: tuple[Price, ...] = Field(min_length=1, max_length=1_000)
    source: str = Field("", max_length=1_000)
    as_of: date | None = None
    note: str = Field("", max_length=1_000)

    @model_validator(mode="after")
    def _no_pattern_twice(self) -> Self:
        seen: set[str] = set()
        for row in self.models:
            if row.model in seen:
                raise ValueError(f"{row.model!r} stands twice; only the first would ever hold")
            seen.add(row.model)
        return self


@dataclass(frozen=True)
class PriceTable:
    """All rows in the order in which they are tried."""

    rows: tuple[tuple[Price, str], ...]
    """With where each comes from."""
    source: str
    as_of: date | None
    """Of the packaged rows."""

    def find(self, model: str) -> Price | None:
        """The row that holds for ``model``; None: its price is not known."""
        if model not in self._found:
            plain = _DATE.sub("", model)
            fits = (row for row, _ in self.rows if fnmatchcase(model, row.model) or fnmatchcase(plain, row.model))
            if len(self._found) >= 1_000:
                self._found.clear()
            self._found[model] = next(fits, None)
        return self._found[model]

    @cached_property
    def _found(self) -> dict[str, Price | None]:
        return {}


def load_prices(path: Path | None = None) -> PriceTable:
    """The packaged table, with the rows of ``path`` before it. ``ConfigurationError`` says what is wrong where."""
    packaged = _parse((files("prefold.pricing") / "prices.json").read_bytes(), PACKAGED)
    own: list[tuple[Price, str]] = []
    if path is not None:
        try:
            text = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"PREFOLD_PRICES_FILE: cannot read {path}: {error.strerror}") from error
        own = [(row, str(path)) for row in _parse(text, str(path)).models]
    rows = (*own, *((row, PACKAGED) for row in packaged.models))
    return PriceTable(rows, packaged.source, packaged.as_of)


def _parse(text: bytes, name: str) -> _Document:
    try:
        return _Document.model_validate_json(text)
    except ValidationError as error:
        raise ConfigurationError(f"PREFOLD_PRICES_FILE: {name}: {_told(error)}") from error


def _told(error: ValidationError) -> str:
    """``models[2].input: …; …``, five at most."""
    problems = []
    for item in error.errors()[:5]:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"]).lstrip(".")
        message = item["msg"].removeprefix("Value error, ")
        problems.append(f"{place}: {message}" if place else message)
    return "; ".join(problems)
