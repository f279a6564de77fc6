"""The offline engine: quotes the sentences that carry most of a conversation. No model, same input, same bytes."""

import asyncio
from collections.abc import Sequence

from prefold.compaction.engine import Summary, SummaryInput, SummarySection
from prefold.compaction.extractive.candidates import Candidate, candidates_of, is_binding
from prefold.compaction.extractive.ranking import choose
from prefold.compaction.extractive.rendering import sections_of, single_line, text_of
from prefold.compaction.ledger.collect import is_person
from prefold.compaction.reading.cue import Cue
from prefold.compaction.reading.turns import TurnCache, TurnReading, terms_of
from prefold.tokens import TokenCounter

_MOST_OF_SOURCE = 0.5
"""A summary longer than this share of its source is no summary."""
_OPEN_SHARE = 0.15
_OPEN_TURNS = 2
_TITLES_TOKENS = 24
_CAP_FOR_TITLES = 120


class ExtractiveSummarizer:
    """See ``Summarizer``. ``cache`` may be shared with whatever else reads turns."""

    name = "extractive"
    prompt_version = "1"

    def __init__(self, cache: TurnCache, counter: TokenCounter) -> None:
        self._cache = cache
        self._counter = counter

    async def summarize(self, wanted: SummaryInput) -> Summary:
        """In a thread: the loop goes on."""
        return await asyncio.to_thread(self.summarize_now, wanted)

    def summarize_now(self, wanted: SummaryInput) -> Summary:
        """The same in the calling thread. Never raises, whatever was said."""
        readings = self._cache.read(wanted.ref, wanted.turns)
        candidates, pool = candidates_of(readings, wanted.ledger, wanted.carried)
        source_tokens = sum(reading.tokens for reading in readings)
        cap = min(wanted.cap_tokens, int(source_tokens * _MOST_OF_SOURCE))
        carried = [term for text in wanted.carried for term in terms_of(text)]
        titled = cap >= _CAP_FOR_TITLES
        chosen = [candidates[index] for index in choose(pool, cap - _TITLES_TOKENS * titled, carried)]
        chosen = chosen or candidates[-1:]
        sections, text, tokens = self._fitted(chosen, _open_turns(readings), cap, wanted.language, titled)
        quoted = sorted({candidate.reading.seq for candidate in chosen})
        return Summary(sections, text, tokens, (wanted.first_seq, wanted.last_seq), tuple(quoted))

    def _fitted(
        self, chosen: list[Candidate], last: set[int], cap: int, language: str, titled: bool
    ) -> tuple[tuple[SummarySection, ...], str, int]:
        """The rendered text. While it is over the cap the least of ``chosen``, which is in order of rank, goes."""
        while len(chosen) > 1:
            sections = sections_of(_parts(chosen, last) if titled else [("events", chosen)], language)
            text = text_of(sections, titled=titled)
            tokens = self._counter.count(text)
            if tokens <= cap:
                return sections, text, tokens
            del chosen[-_surplus(chosen, tokens - cap) :]
        section = single_line(chosen[0] if chosen else None, cap, language, self._counter)
        return (section,), section.lines[0], self._counter.count(section.lines[0])


def _surplus(chosen: Sequence[Candidate], excess: int) -> int:
    """How many from the end make up for ``excess`` tokens; never all."""
    for number, candidate in enumerate(reversed(chosen), start=1):
        excess -= candidate.tokens
        if excess <= 0:
            return min(number, len(chosen) - 1)
    return len(chosen) - 1


def _parts(chosen: Sequence[Candidate], last: set[int]) -> list[tuple[str, list[Candidate]]]:
    binding, events, still_open = [], [], []
    for candidate in chosen:
        if is_binding(candidate, by_person=is_person(candidate.reading)):
            binding.append(candidate)
        elif candidate.reading.seq in last and candidate.unit.cues & (Cue.OPEN | Cue.REQUEST | Cue.QUESTION):
            still_open.append(candidate)
        else:
            events.append(candidate)
    return [("binding", binding), ("events", events), ("open", still_open)]


def _open_turns(readings: Sequence[TurnReading]) -> set[int]:
    """Seqs of the last turns of people, and of what came after: a request there may still be open."""
    people = [index for index, reading in enumerate(readings) if is_person(reading)]
    first = max(people[-_OPEN_TURNS:][0] if people else 0, int(len(readings) * (1 - _OPEN_SHARE)))
    return {reading.seq for reading in readings[first:]}
