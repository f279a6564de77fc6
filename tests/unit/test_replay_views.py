"""What is drawn and printed: gauge, saw-tooth, live frame, sections, tables."""

import io
from typing import Any

import pytest
from rich.console import Console

from prefold.client import Appended, AppendedTurn, BuildState, Context, ContextState, Session, StandbyState
from prefold.client.results import Format
from prefold.replay.charts import Gauge, SawTooth
from prefold.replay.demo_end import FACTS, print_end, where_found
from prefold.replay.figures import Figures
from prefold.replay.live_view import LiveView
from prefold.replay.pace import Crossing
from prefold.replay.replaying import Step
from prefold.replay.sections import print_sections, sections_of
from prefold.replay.tables import Run, judgement, print_result, print_runs
from prefold.replay.words import block_text, clipped, one_line, speaker_and_gist


def console_of(width: int = 80, height: int = 24) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width, height=height, color_system=None), out


def drawn(what: Any, width: int = 80) -> list[str]:
    console, out = console_of(width)
    console.print(what)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("tokens", [0, 1, 2400, 3999, 4000, 5000])
def test_a_gauge_fills_its_width_and_no_more(width: int, tokens: int) -> None:
    bar, scale = drawn(Gauge(tokens, tokens // 2, 2400, 4000), width)

    assert len(bar) == width
    assert bar.count("█") == min(width, round(width * tokens / 4000))
    assert scale.endswith("hard 4,000")
    assert "soft 2,400" in scale
    assert len(scale) == width


@pytest.mark.parametrize("soft", [400, 2000, 3000, 3800, 4000])
def test_the_scale_keeps_both_labels_wherever_the_soft_threshold_stands(soft: int) -> None:
    _, scale = drawn(Gauge(100, 50, soft, 4000), 40)

    assert f"soft {soft:,}" in scale
    assert scale.endswith("hard 4,000")
    assert len(scale) == 40


@pytest.mark.parametrize("turns", [1, 5, 40, 189, 1000])
def test_a_saw_tooth_shows_each_height_and_marks_each_swap_that_has_a_column(turns: int) -> None:
    tokens = [100 + 10 * n for n in range(turns)]
    *rows, marks = drawn(SawTooth(tokens, [turns - 1], turns, 2400, max(4000, tokens[-1]), 4), 40)

    assert len(rows) == 4
    assert all(len(row) <= 40 for row in rows)
    assert len(rows[-1].rstrip()) == 40, "once all turns have come, the whole width is filled"
    assert marks.count("▲") == 1
    assert len(marks) == 40


def test_a_saw_tooth_grows_to_the_right_with_the_turns() -> None:
    *_, bottom, marks = drawn(SawTooth([2000] * 10, [], 40, 2400, 4000, 4), 40)

    assert bottom == "█" * 10 + " " * 30
    assert marks == "─" * 10 + " " * 30


def step_of(number: int, turn: dict[str, Any], tokens: int, *, swapped: bool = False) -> Step:
    state = ContextState(number, int(swapped), tokens, tokens // 2, 4000, "swapped" if swapped else "ok")
    appended = Appended((AppendedTurn(turn.get("id", "t"), number, 10, False),), state, "fast")
    return Step(number, turn, appended, 2.5, swapped, 3900, context_of("anthropic", tokens=tokens))


def context_of(form: Format, *messages: dict[str, Any], tokens: int = 0, **sections: int) -> Context:
    system = "# Policy\nBe kind." if "system" in sections else ""
    return Context(7, 3, "ok", form, system, messages, tokens, sections, (), ())


def session_of(**changes: Any) -> Session:
    values: dict[str, Any] = {
        "session": "s", "user": None, "hard_limit_tokens": 4000, "soft_threshold_tokens": 2400, "head_seq": 9,
        "version": 7, "swaps": 0, "status": "ok", "degraded": False, "tokens": 1000, "log_tokens": 9000,
        "covers_to": 0, "standby": None, "build": None, "limit_crossings": 0, "ready_crossings": 0, "embedded_to": 0,
    }  # fmt: skip
    return Session(**(values | changes))


@pytest.mark.parametrize(
    ("session", "told"),
    [
        (session_of(), "○ not needed before 2,400 tokens"),
        (session_of(tokens=2500), "○ asked for"),
        (session_of(tokens=2500, degraded=True), "○ asked for; until it is there, the oldest turns give way"),
        (session_of(build=BuildState(5)), "● being built: turns 1–5"),
        (session_of(standby=StandbyState(5, 800, 1.0)), "● ready: covers turns 1–5, a swap leaves 800 tokens"),
        (
            session_of(standby=StandbyState(5, 800, 1.0), build=BuildState(9)),
            "● ready: covers turns 1–5, a swap leaves 800 tokens · next in work",
        ),
    ],
)
def test_a_frame_tells_what_the_standby_is_doing(session: Session, told: str) -> None:
    console, out = console_of()
    view = LiveView("Demo", 9, console)
    view.take(step_of(1, {"role": "user", "content": "Hello"}, 1000), session)
    console.print(view)

    assert f"standby {told}" in [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (100, 30)])
def test_a_frame_never_is_wider_or_higher_than_the_terminal(width: int, height: int) -> None:
    console, out = console_of(width, height)
    view = LiveView("Demo", 60, console)
    for number in range(1, 61):
        turn = {"role": "user", "content": f"{number} \u274c 很长的一句话 " + "word " * 50}
        swapped = number % 10 == 0
        view.take(step_of(number, turn, 3000, swapped=swapped), session_of(swaps=number // 10))
    console.print(view)
    lines = out.getvalue().splitlines()

    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "turn 60 " in out.getvalue()
    assert "3,900 → 3,000" in out.getvalue()
    assert "2.5 ms" in out.getvalue()


def test_a_frame_before_the_first_turn_is_legal() -> None:
    console, out = console_of()
    console.print(LiveView("Demo", 9, console))

    assert out.getvalue().strip() == "starting …"


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


HEAD = [
    text("[Prefold: first message of the user, turn 2, verbatim]\nMy order is late\n[Prefold: end of first message]"),
    text("[Prefold: ledger of turns 1-40: exact values, quoted]\n[3 user] 7315\n[Prefold: end of ledger]"),
    text("[Prefold: summary of turns 1-40: what was said]\n## What happened\n[3 user] late"),
    text("[Prefold: end of summary]"),
    text("[Prefold: turns 41-50 are left out here for lack of room; the session's log has them in full.]"),
    text("Hi again"),
]
MESSAGES = (
    {"role": "user", "content": HEAD},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "find", "input": {"id": "7"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [text("found")]}]},
)


def test_sections_are_told_apart_by_our_marks_which_are_taken_off() -> None:
    context = context_of(
        "anthropic", *MESSAGES, tokens=71, system=9, first_message=12, summary=20, window=19, tools=3, markers=8
    )

    sections = {section.name: (section.tokens, section.text) for section in sections_of(context)}

    assert sections == {
        "system": (9, "# Policy\nBe kind."),
        "first_message": (12, "My order is late"),
        "ledger": (None, "[3 user] 7315"),
        "summary": (20, "## What happened\n[3 user] late"),
        "markers": (
            8,
            "[Prefold: turns 41-50 are left out here for lack of room; the session's log has them in full.]",
        ),
        "window": (19, 'user: Hi again\n→ tool: find {"id": "7"}\n← tool: found'),
        "tools": (3, ""),
    }


def test_sections_of_openais_form_say_the_system_once() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    context = context_of(
        "openai",
        {"role": "system", "content": "# Policy\nBe kind."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "found"},
        system=9,
    )

    assert [section.name for section in sections_of(context)] == ["system", "window"]
    assert "← tool: found" in sections_of(context)[1].text


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("is_whole", [True, False])
def test_the_section_table_stays_within_the_width_and_ends_with_the_total(width: int, is_whole: bool) -> None:
    console, out = console_of(width)
    context = context_of("anthropic", *MESSAGES, tokens=60, system=9, first_message=12, summary=20, window=19)
    print_sections(console, context, is_whole=is_whole)
    lines = out.getvalue().splitlines()

    assert max(map(len, lines)) <= width
    assert lines[-1].split() == ["total", "60"]


def test_text_of_a_conversation_is_never_taken_for_markup_of_the_terminal() -> None:
    console, out = console_of()
    hostile = {"role": "user", "content": [text("[bold]x[/bold] [/red] \x1b[31mred\x07 :smile:")]}
    print_sections(console, context_of("anthropic", hostile, window=5))

    assert "[bold]x[/bold] [/red]" in out.getvalue()
    assert ":smile:" in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert "\x07" not in out.getvalue()


def test_facts_are_found_whatever_the_case_and_told_with_their_section() -> None:
    context = context_of("anthropic", *MESSAGES)

    assert where_found(context, "MY ORDER") == ["first_message"]
    assert where_found(context, "never said") == []


def test_the_end_of_the_demo_tells_facts_sums_and_measurements() -> None:
    figures = Figures(4000, turns=9, swaps=2, limit_crossings=2, ready_crossings=2, append_ms=[1.0], durability="fast")
    figures.model_calls, figures.naive_input_tokens, figures.model_input_tokens = 4, 1000, 400
    figures.naive_largest, figures.model_largest = 700, 300
    fact = FACTS[0]
    console, out = console_of()
    print_end(console, context_of("anthropic", {"role": "user", "content": [text(fact.value)]}, window=5), figures)
    said = out.getvalue()

    assert f"✓  {fact.told}" in said
    assert f"✗  {FACTS[1].told}" in said
    assert "60%" in said
    assert "none over 4,000 tokens" in said
    assert "append 1.0 ms, one that swaps –" in said


@pytest.mark.parametrize(
    ("turn", "speaker", "gist"),
    [
        ({"role": "user", "content": "a\n b\t\x1bc"}, "user", "a b c"),
        ({"role": "user", "name": "Ada", "content": "Hi"}, "Ada", "Hi"),
        ({"role": "assistant", "content": [text("a"), {"type": "image"}]}, "assistant", "a · [image]"),
        ({"role": "tool", "tool_call_id": "c", "content": "7"}, "← tool", "7"),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
            "→ tool",
            "f {}",
        ),
        ({"role": "user", "content": []}, "user", ""),
    ],
)
def test_a_turn_is_told_on_one_line(turn: dict[str, Any], speaker: str, gist: str) -> None:
    assert speaker_and_gist(turn) == (speaker, gist)


def test_clipping_ends_with_an_ellipsis_only_where_something_is_gone() -> None:
    assert clipped("abc", 3) == "abc"
    assert clipped("abcd", 3) == "ab…"
    assert one_line("  a \n\n b ") == "a b"
    assert block_text({"type": "tool_result"}) == ""


def test_the_result_names_each_fault() -> None:
    console, out = console_of()
    print_result(console, Figures(4000, turns=2, turn_tokens=[10, 10], faults=["line 2: lost"], lost_turns=1))

    assert "line 2: lost" in out.getvalue()
    assert "2, 1 lost" in out.getvalue()


def test_the_table_of_runs_is_sorted_and_judges_only_crossings_that_left_time() -> None:
    slow = Figures(4000, turns=200, turn_tokens=[20] * 200, limit_crossings=4, ready_crossings=3)
    slow.crossings = [Crossing(50, True), Crossing(60, True), Crossing(3, False), Crossing(45, True)]
    fast = Figures(4000, turns=9, turn_tokens=[500] * 9, limit_crossings=5, degraded=3)
    fast.crossings = [Crossing(50, False)] * 5
    runs = [Run("b", fast), Run("a", slow)]
    console, out = console_of(100)
    print_runs(console, runs)
    lines = [line.split() for line in out.getvalue().splitlines()]

    assert lines[1] == ["a", "4,000", "200", "0", "0", "4", "75%", "3/3", "0", "0", "0"]
    assert lines[2] == ["b", "4,000", "9", "0", "3", "5", "0%", "–", "0", "0", "0"]
    assert "ready at 3 of 3 (100.0%) of the crossings" in judgement(runs)
    assert "after 3 of 209 turns" in judgement(runs)
