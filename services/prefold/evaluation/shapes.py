"""What a case file says, as checked data. How it is written for people: docs/evaluation.md."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

__all__ = ["ACTIONS", "CHECKS", "AnyStep", "CaseFile", "Expectation", "Session", "Step", "Table"]

Table = dict[str, Any]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]
Texts = Text | Annotated[list[Text], Field(min_length=1)]
Language = Literal["en", "zh"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


class Session(_Strict):
    """A session that the steps of a case name. Its real name gets an ending of its own in each run."""

    user: Text | None = None
    tenant: Text = "a"
    hard_limit_tokens: int = Field(100_000, ge=1_000, le=10_000_000)
    keep_recent_turns: int | None = Field(None, ge=0, le=1_000)
    system: Text | None = None


CHECKS: Final = ("holds", "holds_any", "lacks", "verbatim", "in_order", "recalled", "most_tokens")


class Expectation(_Strict):
    """One thing that must be so. Case and white space count in ``verbatim`` alone."""

    holds: Texts | None = None
    """All of these."""
    holds_any: Annotated[list[Text], Field(min_length=1)] | None = None
    lacks: Texts | None = None
    """None of these."""
    verbatim: Texts | None = None
    in_order: Annotated[list[Text], Field(min_length=2)] | None = None
    """The first place of each comes before the first place of the next."""
    recalled: Annotated[list[Text], Field(min_length=1)] | None = None
    """Kinds of which at least one was recalled or found: turn, segment, summary, fact."""
    most_tokens: int | None = Field(None, ge=1)
    section: Text | None = None
    """Only there: a section of the context, the category of a fact, the kind of a hit."""

    @model_validator(mode="after")
    def _has_one_check(self) -> "Expectation":
        given = [name for name in CHECKS if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"must have one of {', '.join(CHECKS)}; it has {' and '.join(given) or 'none'}")
        return self

    @property
    def check(self) -> str:
        """Which of ``CHECKS`` it is."""
        return next(name for name in CHECKS if getattr(self, name) is not None)

    @property
    def texts(self) -> list[str]:
        """The texts or kinds that are looked for, one or many."""
        value = getattr(self, self.check)
        if isinstance(value, int):
            return []
        return [value] if isinstance(value, str) else list(value)


Expectations = Annotated[tuple[Expectation, ...], Field(strict=False)]


class Step(_Strict):
    """What every step can say."""

    session: Text | None = None
    """May be left out where the case has one session."""


class UserTurn(Step):
    user: Text
    id: Text | None = None
    at: Text | None = None


class AssistantTurn(Step):
    assistant: Text
    id: Text | None = None
    at: Text | None = None


class SmallTalk(Step):
    """Turns about nothing that any user could be known by."""

    language: Language = "en"
    long: bool = False
    """Answers of some 150 tokens instead of 30."""


class Fill(SmallTalk):
    fill: int = Field(ge=1, le=5_000)


class FillToTurn(SmallTalk):
    fill_to_turn: int = Field(ge=1, le=5_000)


class FillToSwaps(SmallTalk):
    """Until summaries took the place of older turns so many times."""

    fill_to_swaps: int = Field(ge=1, le=100)


class Close(Step):
    close: Literal[True]


class Edit(Step):
    edit: Text
    """Id of the turn."""
    text: Text


class Remove(Step):
    remove: Text
    """Id of the turn."""


class State(Step):
    state: Table
    """The pinned state, whole."""


class DeleteFact(Step):
    delete_fact: Text
    """Words of the fact; one at least must have them."""


class CorrectFact(Step):
    correct_fact: Text
    to: Text
    """The object that it has then."""


class EraseUser(Step):
    """Erases the session's user, with every session of theirs."""

    erase_user: Literal[True]


class Ask(Step):
    """Publishes the question as a user turn and reads the context for it."""

    ask: Text
    query: str | None = None
    """What is recalled for; the question itself if it is left out, nothing if it is empty."""
    publish: bool = True
    budget_tokens: int | None = Field(None, ge=1)
    expect: Expectations = Field(min_length=1)


class Facts(Step):
    facts: Literal["current", "history"]
    expect: Expectations = Field(min_length=1)


class Search(Step):
    search: Text
    scope: Literal["session", "user", "tenant"] = "user"
    kinds: list[Literal["turn", "segment", "summary", "fact"]] | None = None
    limit: int = Field(10, ge=1, le=100)
    expect: Expectations = Field(min_length=1)


AnyStep = (
    UserTurn | AssistantTurn | Fill | FillToTurn | FillToSwaps | Close | Edit | Remove | State
    | DeleteFact | CorrectFact | EraseUser | Ask | Facts | Search
)  # fmt: skip

ACTIONS: Final[dict[str, type[AnyStep]]] = {
    "user": UserTurn,
    "assistant": AssistantTurn,
    "fill": Fill,
    "fill_to_turn": FillToTurn,
    "fill_to_swaps": FillToSwaps,
    "close": Close,
    "edit": Edit,
    "remove": Remove,
    "state": State,
    "delete_fact": DeleteFact,
    "correct_fact": CorrectFact,
    "erase_user": EraseUser,
    "ask": Ask,
    "facts": Facts,
    "search": Search,
}
"""What a step does is told by the one of these keys that it has."""


class CaseFile(_Strict):
    """The whole file, with steps not yet looked at."""

    about: Text
    sessions: dict[str, Session] = Field(min_length=1)
    steps: list[Table] = Field(min_length=1)
