"""One piece of a summary from the model: asked for, taken apart, held against its source, and asked for again.

A refused answer, by the model or by the gate, goes to the fallback model with the same input; without one, once more
to the same model with a stricter note. An answer that was cut off is asked for once more with more room. What then
still cannot be used is raised as it came: no third way is tried. Every other failure of a call is the caller's.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from prefold.compaction.engine import SummaryInput, SummarySection, Tally
from prefold.compaction.gate.checks import GateSource, check_written
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.segments.prompt import Prompt
from prefold.compaction.segments.texts import sections_together
from prefold.compaction.segments.written import Written, parse_written
from prefold.messages.asking import Ask, Reply
from prefold.messages.errors import AnswerRefusedError
from prefold.tokens import TokenCounter

_FORM_TOKENS = 1_000
"""Room for thinking and for the form, beside twice the text."""


class AsksModels(Protocol):
    """What is needed of ``prefold.messages.Messages``; see there."""

    model: str
    fallback_model: str | None

    async def ask(self, ask: Ask) -> Reply: ...


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what the answer is held against."""

    purpose: str
    """``segment`` or ``merge``."""
    prompt: Callable[[str], Prompt]
    """Of the code for which an earlier answer was refused; empty: the first time."""
    source: GateSource


@dataclass(frozen=True, slots=True)
class Answered:
    """What of one answer, or of several together, may stand, and whose it was."""

    sections: tuple[SummarySection, ...]
    dropped: int
    """Lines that the gate took out."""
    models: tuple[str, ...] = ()
    request_ids: tuple[str, ...] = ()
    because: str = ""
    """Code of the refusal for which it is no model's."""

    @classmethod
    def together(cls, several: Sequence["Answered"]) -> "Answered":
        """Section by section, in order."""
        return cls(
            sections_together([one.sections for one in several]),
            sum(one.dropped for one in several),
            tuple(dict.fromkeys(model for one in several for model in one.models)),
            tuple(request for one in several for request in one.request_ids),
        )


class Asker:
    """Asks for pieces. Any number at once."""

    def __init__(self, messages: AsksModels, counter: TokenCounter, most_output_tokens: int) -> None:
        self._messages = messages
        self._counter = counter
        self._most_output = most_output_tokens

    async def answer(self, wanted: SummaryInput, question: Question) -> Answered:
        """The piece. Raises ``AnswerRefusedError`` or ``GateRefusedError`` where no answer could be used."""
        try:
            return await self._with_room(wanted, question, None, "")
        except (AnswerRefusedError, GateRefusedError) as error:
            wanted.tally.refused.append(error.code)
            other, note = self._messages.fallback_model, error.code
        try:
            return await self._with_room(wanted, question, other, "" if other else note)
        except (AnswerRefusedError, GateRefusedError) as error:
            wanted.tally.refused.append(error.code)
            raise

    async def _with_room(self, wanted: SummaryInput, question: Question, model: str | None, refused: str) -> Answered:
        room = min(self._most_output // 2, 2 * question.source.cap_tokens + _FORM_TOKENS)
        try:
            return await self._once(wanted, question, model, refused, room)
        except AnswerRefusedError as error:
            if error.code != "answer_cut":
                raise
            wanted.tally.refused.append(error.code)
        return await self._once(wanted, question, model, refused, self._most_output)

    async def _once(
        self, wanted: SummaryInput, question: Question, model: str | None, refused: str, room: int
    ) -> Answered:
        prompt = question.prompt(refused)
        tokens = await asyncio.to_thread(lambda: self._counter.count(prompt.system) + self._counter.count(prompt.user))
        wanted.tally.sent_tokens += tokens
        ref = wanted.ref
        ask = Ask(
            tenant=ref.tenant,
            session=ref.session,
            incarnation=ref.incarnation,
            purpose=question.purpose,
            system=prompt.system,
            messages=[{"role": "user", "content": prompt.user}],
            max_tokens=room,
            input_tokens=tokens,
            model=model,
        )
        reply = await self._counted(wanted.tally, ask)
        written = await asyncio.to_thread(read_written, reply.text, question.source)
        return Answered(written.sections, written.dropped, (reply.model,), (reply.request_id,))

    async def _counted(self, tally: Tally, ask: Ask) -> Reply:
        try:
            reply = await self._messages.ask(ask)
        except AnswerRefusedError as error:
            if error.reply is not None:
                tally.add_call(error.reply.usage, error.reply.request_id)
            raise
        tally.add_call(reply.usage, reply.request_id)
        return reply


def read_written(text: str, source: GateSource) -> Written:
    """What of an answer may stand. Raises ``GateRefusedError``. CPU work."""
    return check_written(parse_written(text, source.language), source)
