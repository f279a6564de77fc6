"""Faithful summaries pass the gate: the share of refusals over the development conversations, measured."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from prefold.compaction.gate.checks import GateSource, check_written
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.reading.sentences import split_sentences
from prefold.compaction.reading.turns import language_of
from prefold.compaction.segments.prompt import segment_prompt
from prefold.compaction.segments.transcript import render_transcript
from prefold.compaction.segments.written import parse_written
from prefold.storage.types import StoredTurn
from tests.support.compaction import DATA, REF, data_talk, new_cache
from tests.support.messages_api.brains.faithful import faithful
from tests.support.messages_api.brains.form import written
from tests.support.messages_api.catalogue import MODELS
from tests.support.messages_api.wanted import Wanted
from tests.support.seeds import tell

CAP = 800
CHUNK_TOKENS = 6_000
SAMPLE = ("trip-90", "tau-airline-0-0", "memorybank-zh-frank", "memorybank-en-frank", "code-sweagent-marshmallow")
MOST_REFUSED = 0.01


@pytest.mark.parametrize("name", SAMPLE)
def test_a_faithful_summary_passes(name: str) -> None:
    turns, _ = data_talk(name)
    codes, kept, dropped = _judged(turns)
    assert set(codes) == {"passed"}, codes
    assert kept > dropped


@pytest.mark.long
@pytest.mark.timeout(600)
def test_hardly_any_faithful_summary_of_all_conversations_is_refused() -> None:
    names = sorted(path.stem for path in DATA.glob("*.jsonl"))
    if not names:
        pytest.skip(f"no development data: {DATA} (set PREFOLD_DATA)")
    total, lines = Counter[str](), [0, 0]
    for name in names:
        codes, kept, dropped = _judged(data_talk(name)[0])
        total.update(codes)
        lines = [lines[0] + kept, lines[1] + dropped]
    tell(
        f"{len(names)} conversations, {total.total()} summaries: {dict(total)}; lines kept {lines[0]}, taken {lines[1]}"
    )
    assert total.total() - total["passed"] <= MOST_REFUSED * total.total()


@pytest.mark.long
def test_summaries_that_a_model_wrote_in_its_own_words_pass() -> None:
    """LoCoMo's session summaries: third person, abstractive."""
    paths = sorted(DATA.glob("*.memory.json"))
    if not paths:
        pytest.skip(f"no development data: {DATA} (set PREFOLD_DATA)")
    passed, kept, dropped = 0, 0, 0
    for path in paths:
        turns, seqs = data_talk(path.name.split(".")[0])
        for one in json.loads(path.read_text())["session_summaries"]:
            covered = [turn for turn in turns if seqs[one["first_id"]] <= turn.seq <= seqs[one["last_id"]]]
            said = [one["text"][span.start : span.end].strip() for span in split_sentences(one["text"])]
            if len(said) > 2:
                answer = written({"intent": said[:1], "decisions": said[1:-1], "state": said[-1:]})
                stands = check_written(parse_written(answer), _source(covered, "en"))
                passed, kept, dropped = passed + 1, kept + len(stands.lines), dropped + stands.dropped
    tell(f"{passed} summaries of a model, all passed; lines kept {kept}, taken {dropped}")
    assert dropped < 0.1 * kept


def _judged(turns: Sequence[StoredTurn]) -> tuple[Counter[str], int, int]:
    """Outcomes of the summaries of all chunks, lines kept and lines taken out."""
    codes, kept, dropped = Counter[str](), 0, 0
    for chunk in _chunks(turns):
        language = language_of(new_cache().read(REF, chunk))
        prompt = segment_prompt(render_transcript(chunk), language, CAP, "a1b2")
        messages = [{"role": "user", "content": prompt.user}]
        body = {"messages": messages, "system": prompt.system, "max_tokens": 2 * CAP}
        answer = faithful(Wanted(body, MODELS["claude-haiku-5-5"], 0, 1))
        try:
            stands = check_written(parse_written(answer, language), _source(chunk, language))
        except GateRefusedError as error:
            codes[error.code] += 1
        else:
            codes["passed"] += 1
            kept, dropped = kept + len(stands.lines), dropped + stands.dropped
    return codes, kept, dropped


def _source(turns: Sequence[StoredTurn], language: str) -> GateSource:
    return GateSource(turns, language, CAP, sum(turn.tokens for turn in turns))


def _chunks(turns: Sequence[StoredTurn]) -> Iterator[list[StoredTurn]]:
    run: list[StoredTurn] = []
    for turn in turns:
        if run and sum(one.tokens for one in run) + turn.tokens > CHUNK_TOKENS:
            yield run
            run = []
        run.append(turn)
    yield run
