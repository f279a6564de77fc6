"""The segmenting engine with a model and a storage in memory: what is asked, kept, reused, and how it fails."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import orjson
import pytest

from prefold.compaction.engine import Summary, SummaryInput
from prefold.compaction.extractive.engine import ExtractiveSummarizer
from prefold.compaction.gate.checks import check_summary
from prefold.compaction.gate.refusals import GateRefusedError
from prefold.compaction.lease import LeaseLostError
from prefold.compaction.segments.plain import WritesPlainly
from prefold.compaction.segments.source import SentTurns, parts_of
from prefold.compaction.segments.transcript import render_transcript
from prefold.errors import RefusedError
from prefold.messages import (
    AnswerRefusedError,
    Ask,
    InputTooLongError,
    ModelAwayError,
    Reply,
)
from prefold.storage.types import SessionRef, StoredTurn
from prefold.tokens import load_counter
from tests.support.compaction import REF, call, new_cache, result, small_talk, stored, talk, wanted_of
from tests.support.segmenting import BrainMessages, Fails, MemorySegments, segmented
from tests.support.waiting import wait_until_async

CAP = 2_000
FACTS = ["My budget is $3000.", "I am allergic to shellfish.", "Order LF-4827 has to go to Utrecht by Friday."]


def chat(turns: int) -> list[StoredTurn]:
    """Turns of about 75 tokens each, with a fact now and then."""
    said = []
    for turn in small_talk(1, turns):
        words = f"Number {turn.seq}: the harbour of town {turn.seq % 17} has a blue crane and a red one. " * 3
        fact = FACTS[turn.seq % len(FACTS)] if turn.seq % 10 == 1 else ""
        said.append(stored(turn.seq, turn.role, f"{words}{fact}"))
    return said


CHAT = chat(160)


def listed(count: int) -> tuple[list[str], str]:
    """So many words, and a text of sentences that has them all."""
    words = [f"word{number}" for number in range(count)]
    return words, " ".join(f"The list has {' and '.join(words[at : at + 6])}." for at in range(0, count, 6))


@dataclass
class World:
    """One engine with what stands around it."""

    messages: BrainMessages
    storage: MemorySegments
    chunk_tokens: int = 2_000
    plain: WritesPlainly | None = None

    async def build(self, turns: Sequence[StoredTurn], cap: int = CAP) -> tuple[Summary, SummaryInput]:
        """A summary that passes the gate, and what was asked for."""
        wanted = wanted_of(turns, cap)
        engine = segmented(self.messages, self.storage, chunk_tokens=self.chunk_tokens, plain=self.plain)
        summary = await engine.summarize(wanted)
        check_summary(summary, wanted)
        return summary, wanted


def world(fails: Fails | None = None, **members: object) -> World:
    return World(BrainMessages(fails=fails, **members), MemorySegments())  # type: ignore[arg-type]


def once(error: Exception, number: int = 1) -> Fails:
    return lambda _ask, asked: error if asked == number else None


def when_over(tokens: int) -> Fails:
    """A model whose window is smaller than anybody said."""
    return lambda ask, _: InputTooLongError("too long") if ask.input_tokens > tokens else None


def sent(asked: Sequence[Ask]) -> str:
    return "\n".join(str(ask.messages[0]["content"]) for ask in asked)


async def test_the_first_build_sends_every_turn_once_and_keeps_what_was_made() -> None:
    one = world()
    summary, wanted = await one.build(CHAT[:100])
    said = sent(one.messages.asked)
    assert [said.count(f"Number {seq}:") for seq in range(1, 101)] == [3] * 100
    assert wanted.tally.made == len(one.storage.kept) == len(one.messages.asked) > 2
    assert summary.covered == (1, 100)
    records = [orjson.loads(segment.record) for segment in one.storage.kept.values()]
    assert sorted(request for record in records for request in record["request_ids"]) == sorted(
        wanted.tally.request_ids
    )
    assert {model for record in records for model in record["models"]} == {one.messages.model}
    assert wanted.tally.record()["model"]["request_ids"] == [f"req_{n}" for n in range(1, wanted.tally.calls + 1)]


def refuses(words: str) -> Fails:
    """A model that will not speak of that, however often it is asked."""

    def fails(ask: Ask, _: int) -> Exception | None:
        return AnswerRefusedError("no", code="answer_refusal") if words in str(ask.messages[0]["content"]) else None

    return fails


async def test_a_run_that_every_model_refuses_is_quoted_and_costs_its_calls_once() -> None:
    one = world(refuses("Number 50:"))
    one.plain = ExtractiveSummarizer(new_cache(), load_counter())
    summary, wanted = await one.build(CHAT[:100])
    assert summary.covered == (1, 100)
    plain = [one for one in one.storage.kept.values() if "because" in orjson.loads(one.record)]
    assert [orjson.loads(segment.record)["because"] for segment in plain] == ["answer_refusal"]
    assert plain[0].first_seq <= 50 <= plain[0].last_seq
    assert wanted.tally.refused == ["answer_refusal", "answer_refusal"]
    before = len(one.messages.asked)
    _, wanted = await one.build(CHAT[:108])
    assert wanted.tally.refused == []
    assert "Number 50:" not in sent(one.messages.asked[before:])


async def test_where_a_model_refuses_everything_the_other_engine_takes_the_build_and_no_run_is_asked_for_twice() -> (
    None
):
    one = world(refuses("Number"))
    one.plain = ExtractiveSummarizer(new_cache(), load_counter())
    with pytest.raises(RefusedError) as caught:
        await one.build(CHAT[:100])
    assert caught.value.code == "answer_refusal"
    before = len(one.messages.asked)
    with pytest.raises(RefusedError):
        await one.build(CHAT[:112])
    again = {seq for seq in range(1, 113) if f"Number {seq}:" in sent(one.messages.asked[before:])}
    assert again and min(again) > 80, "the last, small segment at most"


async def test_a_merge_that_every_model_refuses_stands_as_the_lines_of_its_parts() -> None:
    one = world(lambda ask, _: AnswerRefusedError("no", code="answer_refusal") if ask.purpose == "merge" else None)
    one.plain = ExtractiveSummarizer(new_cache(), load_counter())
    one.chunk_tokens = 700
    _, wanted = await one.build(CHAT, 420)
    assert wanted.tally.merged >= 1
    before = len(one.messages.asked)
    await one.build(CHAT, 420)
    assert len(one.messages.asked) == before, "kept like any other"


async def test_a_refresh_sends_the_new_turns_and_at_most_a_small_last_segment_once_more() -> None:
    one = world()
    await one.build(CHAT[:100])
    kept = sorted(one.storage.kept)
    before = len(one.messages.asked)
    summary, wanted = await one.build(CHAT[:108])
    said = sent(one.messages.asked[before:])
    assert [seq for seq in range(1, 121) if f"Number {seq}:" in said] == list(range(101, 109))
    assert summary.covered == (1, 108)
    assert (wanted.tally.made, wanted.tally.reused) == (1, before)
    await one.build(CHAT[:120])
    again = sent(one.messages.asked[before + 1 :])
    assert [seq for seq in range(1, 121) if f"Number {seq}:" in again] == list(range(101, 121))
    assert set(kept) < set(one.storage.kept)


async def test_the_same_again_asks_nothing_and_says_the_same() -> None:
    one = world()
    first, _ = await one.build(CHAT[:100])
    before = len(one.messages.asked)
    second, wanted = await one.build(CHAT[:100])
    assert len(one.messages.asked) == before
    assert second == first
    assert wanted.tally.record()["model"]["calls"] == 0


async def test_texts_stand_in_order_under_their_ranges() -> None:
    summary, _ = await world().build(CHAT[:60])
    ranges = [line for line in summary.text.split("\n") if line.startswith("[")]
    firsts = [int(line[1:].split("-")[0]) for line in ranges]
    assert firsts == sorted(firsts)
    assert firsts[0] == 1
    assert ranges[-1].endswith("-60]")


async def test_a_session_of_one_chunk_is_summarised_whole_from_its_source() -> None:
    one = world()
    summary, _ = await one.build(CHAT[:20])
    assert len(one.messages.asked) == 1
    assert not summary.text.startswith("[")


async def test_beyond_the_cap_the_oldest_are_merged_and_the_merged_are_kept() -> None:
    one = world()
    for upto in (60, 120, 160):
        assert (await one.build(CHAT[:upto], 500))[0].tokens <= 500
    assert one.storage.of_level(1)
    assert len(one.messages.of("merge")) == len([place for place in one.storage.kept if place[0]])
    before = len(one.messages.asked)
    await one.build(CHAT[:160], 500)
    assert len(one.messages.asked) == before


async def test_a_smaller_cap_merges_more_and_the_larger_one_finds_its_segments_again() -> None:
    one = world()
    large, _ = await one.build(CHAT[:160], 3_000)
    before = len(one.messages.asked)
    small, _ = await one.build(CHAT[:160], 400)
    assert small.tokens <= 400
    assert {ask.purpose for ask in one.messages.asked[before:]} == {"merge"}
    between = len(one.messages.asked)
    assert (await one.build(CHAT[:160], 3_000))[0] == large
    assert len(one.messages.asked) == between


async def test_a_changed_turn_costs_its_segment_and_the_later_ones_only() -> None:
    one = world()
    await one.build(CHAT[:100])
    kept = sorted(one.storage.kept)
    changed = [*CHAT[:100]]
    changed[60] = replace(stored(61, "user", "It is another town now, and it has no crane at all."), revision=1)
    one.storage.change(61)
    before = len(one.messages.asked)
    summary, _ = await one.build(changed)
    first = min(seq for seq in range(1, 101) if f"Number {seq}:" in sent(one.messages.asked[before:]))
    assert first in [place[1] for place in kept]
    assert 1 < first <= 61
    assert summary.covered == (1, 100)


async def test_segments_of_another_model_are_not_used() -> None:
    one = world()
    await one.build(CHAT[:60])
    other = World(BrainMessages(model="claude-opus-4-6"), one.storage)
    _, wanted = await other.build(CHAT[:60])
    assert wanted.tally.reused == 0


async def test_the_seqs_of_a_rewind_and_of_removed_turns_are_no_gap() -> None:
    turns = [turn for turn in CHAT[:100] if not 40 < turn.seq < 60]
    one = world()
    summary, _ = await one.build(turns)
    assert summary.covered == (1, 100)
    before = len(one.messages.asked)
    await one.build(turns)
    assert len(one.messages.asked) == before


async def test_a_turn_larger_than_a_chunk_is_read_in_parts_to_its_last_word() -> None:
    words, text = listed(3_000)
    turns = talk(("user", text), ("assistant", "I see, that is a long list of words that you have."))
    one = world()
    _, wanted = await one.build(turns)
    said = sent(one.messages.asked)
    assert all(word in said for word in words)
    assert all(ask.input_tokens < 2_000 + 1_500 for ask in one.messages.asked)
    assert len(one.storage.kept) == wanted.tally.made


async def test_a_large_tool_output_is_clipped_with_its_size_said() -> None:
    output = "\n".join(f"row {number} of the table" for number in range(3_000))
    turns = talk(
        ("user", "Please read the table and tell me whether it is complete, row by row."),
        ("assistant", call("read", "c1", path="table.csv")),
        ("user", result("c1", output)),
        ("assistant", "The table is complete, it has three thousand rows and nothing is missing from it."),
    )
    one = world()
    await one.build(turns, 600)
    said = sent(one.messages.asked)
    assert len(said) < 12_000
    assert str(len(output)) in said


async def test_parts_of_a_turn_leave_nothing_out_and_keep_within_their_size() -> None:
    counter = load_counter()
    text = "，".join(f"第{number}条规则不能改" for number in range(3_000))
    turns = [stored(1, "user", text), stored(2, "assistant", "好的，我记住了。")]
    parts = parts_of(turns, 1_500, counter)
    said = "".join(render_transcript(part).text for part in parts)
    assert all(f"第{number}条规则" in said for number in range(0, 3_000, 7))
    assert all(counter.count(render_transcript(part).text) <= 1_600 for part in parts)
    assert [turn.seq for part in parts for turn in part] == sorted(turn.seq for part in parts for turn in part)


async def test_what_is_too_long_for_the_model_is_asked_for_in_halves() -> None:
    one = world(when_over(2_400))
    one.chunk_tokens = 6_000
    summary, wanted = await one.build(CHAT[:80])
    answered = [ask for ask in one.messages.asked if ask.input_tokens <= 2_400]
    assert [sent(answered).count(f"Number {seq}:") for seq in range(1, 81)] == [3] * 80
    assert summary.covered == (1, 80)
    assert wanted.tally.made == len(answered)


async def test_a_single_turn_that_is_too_long_for_the_model_is_asked_for_in_parts() -> None:
    words, text = listed(1_500)
    one = world(when_over(2_600))
    one.chunk_tokens = 60_000
    await one.build(talk(("user", text), ("assistant", "Yes, I have read them all now.")))
    answered = sent([ask for ask in one.messages.asked if ask.input_tokens <= 2_600])
    assert all(word in answered for word in words)


async def test_a_model_that_finds_everything_too_long_is_not_asked_for_ever() -> None:
    one = world(when_over(0))
    with pytest.raises(InputTooLongError):
        await one.build(CHAT[:40])
    assert len(one.messages.asked) < 40


@pytest.mark.parametrize("code", ["answer_refusal", "answer_empty", "answer_stopped", "answer_malformed"])
async def test_a_refused_answer_goes_to_the_fallback_model_with_the_same_input(code: str) -> None:
    one = world(once(AnswerRefusedError("no", code=code)), fallback_model="claude-opus-4-6")
    _, wanted = await one.build(CHAT[:20])
    first, second = one.messages.asked
    assert (first.model, second.model) == (None, "claude-opus-4-6")
    assert first.system.split("transcript-")[0] == second.system.split("transcript-")[0]  # type: ignore[union-attr]
    assert wanted.tally.refused == [code]


async def test_without_a_fallback_model_a_stricter_note_is_added_once() -> None:
    one = world(once(AnswerRefusedError("no", code="answer_refusal")))
    await one.build(CHAT[:20])
    first, second = one.messages.asked
    assert second.model is None
    assert len(sent([second])) > len(sent([first]))


async def test_what_is_refused_twice_is_refused() -> None:
    def refuses(_ask: Ask, _number: int) -> Exception:
        return AnswerRefusedError("no", code="answer_refusal")

    one = world(refuses)
    with pytest.raises(AnswerRefusedError):
        await one.build(CHAT[:20])
    assert len(one.messages.asked) == 2


async def test_an_answer_that_was_cut_gets_more_room_once() -> None:
    one = world(once(AnswerRefusedError("cut", code="answer_cut")))
    await one.build(CHAT[:20])
    first, second = one.messages.asked
    assert second.max_tokens > first.max_tokens
    assert second.model is first.model is None


async def test_what_the_gate_refuses_goes_to_the_fallback_model() -> None:
    one = world(brain="continues_chat", fallback_model="other", brains={"other": "faithful"})
    _, wanted = await one.build(CHAT[:20])
    assert [ask.model for ask in one.messages.asked] == [None, "other"]
    assert wanted.tally.refused


@pytest.mark.parametrize("brain", ["continues_chat", "other_language"])
async def test_nothing_of_a_bad_answer_is_kept(brain: str) -> None:
    one = world(brain=brain)
    with pytest.raises((GateRefusedError, AnswerRefusedError)):
        await one.build(CHAT[:60])
    assert one.storage.kept == {}


async def test_what_is_made_before_a_failure_is_kept_and_not_paid_for_again() -> None:
    one = world(once(ModelAwayError("away"), 2))
    with pytest.raises(ModelAwayError):
        await one.build(CHAT[:100])
    kept, asked = len(one.storage.kept), len(one.messages.asked)
    assert kept == asked - 1
    _, wanted = await one.build(CHAT[:100])
    assert wanted.tally.made == 1
    assert len(one.messages.asked) == asked + 1


async def test_a_refusal_weighs_more_than_a_failure_that_may_pass() -> None:
    errors = {1: ModelAwayError("away"), 2: RefusedError("no", code="budget_spent")}
    with pytest.raises(RefusedError, match="no"):
        await world(lambda _ask, number: errors.get(number)).build(CHAT[:100])


async def test_a_void_ticket_ends_the_work() -> None:
    one = world()
    one.storage.is_void = True
    with pytest.raises(LeaseLostError):
        await one.build(CHAT[:100])


async def test_cancelling_ends_every_call() -> None:
    class Waiting(BrainMessages):
        cancelled = 0

        async def ask(self, ask: Ask) -> Reply:
            try:
                self.asked.append(ask)
                await asyncio.Event().wait()
                return await super().ask(ask)
            finally:
                self.cancelled += 1

    messages = Waiting()
    work = asyncio.create_task(World(messages, MemorySegments()).build(CHAT[:100]))

    async def all_asked() -> bool:
        return len(messages.asked) >= 3

    await wait_until_async("the calls were under way", all_asked)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert messages.cancelled == len(messages.asked)


async def test_too_small_a_cap_is_left_to_another_engine_unpaid() -> None:
    one = world()
    with pytest.raises(RefusedError):
        await one.build(CHAT[:20], 100)
    assert one.messages.asked == []


@dataclass
class Prefix:
    """Gives what it is told, or raises it."""

    answer: Callable[[int, int], str | None]
    ranges: list[tuple[int, int]]

    async def segment(self, wanted: SummaryInput, first_seq: int, last_seq: int, cap_tokens: int) -> str | None:
        self.ranges.append((first_seq, last_seq))
        return self.answer(first_seq, last_seq)

    def refused(self, ref: SessionRef) -> None:
        self.ranges.append((0, 0))


def prefix_text(first: int, _last: int) -> str:
    said = [f'- [{seq} user] "{FACTS[seq % 3]}"' for seq in range(first, first + 60) if seq % 10 == 1][:3]
    facts = "\n".join(said)
    return (
        "<summary>\n## intent\n- The harbour of town 3 and its blue crane were talked about.\n## constraints\n"
        f"{facts}\n## state\n- The harbour of every town has a blue crane and a red one.\n</summary>"
    )


async def test_a_prefix_that_answers_gives_one_segment_of_all_new_turns() -> None:
    one, prefix = world(), Prefix(prefix_text, [])
    engine = segmented(one.messages, one.storage, prefix=prefix)
    for upto in (60, 90):
        summary = await engine.summarize(wanted_of(CHAT[:upto], CAP))
        assert summary.covered == (1, upto)
    assert prefix.ranges == [(1, 60), (61, 90)]
    assert one.messages.asked == []
    assert [place[1:] for place in sorted(one.storage.kept)] == [(1, 60), (61, 90)]


@pytest.mark.parametrize("answer", [lambda *_: None, lambda *_: "I would be glad to help! What shall we do next?"])
async def test_a_prefix_without_a_usable_answer_leaves_the_turns_to_chunks(
    answer: Callable[[int, int], str | None],
) -> None:
    one = world()
    engine = segmented(one.messages, one.storage, prefix=Prefix(answer, []))
    await engine.summarize(wanted_of(CHAT[:60], CAP))
    assert one.messages.of("segment")


def test_a_turn_is_rendered_once_and_the_cache_is_bounded() -> None:
    sizes = SentTurns(load_counter(), most_kept=10)
    first = sizes.of(REF, CHAT[:10])
    assert [one is other for one, other in zip(first, sizes.of(REF, CHAT[:10]), strict=True)] == [True] * 10
    assert sizes.of(REF, CHAT[:30]) == SentTurns(load_counter()).of(REF, CHAT[:30])
    assert len(sizes._kept) == 10


def test_the_digest_is_of_what_is_sent() -> None:
    sizes = SentTurns(load_counter())
    plain, secret = stored(1, "user", "Hello there."), stored(2, "user", "The key is sk-ant-api03-" + "a1B2" * 20)
    assert sizes.of(REF, [plain])[0].digest != sizes.of(REF, [secret])[0].digest
    assert new_cache().bytes == 0
