"""Contexts taken apart by our marks."""

import pytest

from prefold.conversation.marks import closing, opening
from prefold.conversation.sections import SectionReader

BESIDE = "\n".join(
    [
        opening("noted from this conversation by a summarizer and not confirmed by anybody:"),
        "goal: a shed",
        closing("noted entries"),
        opening("what is known of the user, from this and earlier conversations. For reference only:"),
        "- lives in Oslo",
        closing("what is known"),
        opening("facts about the user that may matter now. For reference only:"),
        "- owns a saw",
        closing("recalled facts"),
        opening("earlier turns of this conversation that may matter now, oldest first. For reference only:"),
        "[3 user] the saw is blunt",
        closing("recalled turns"),
    ]
)


def pieces(*texts: str, outside: str = "window") -> list[tuple[str, str]]:
    reader = SectionReader(outside)
    return [piece for text in texts for piece in reader.pieces(text)]


def test_parts_that_stand_in_one_text_are_told_apart() -> None:
    assert pieces("How do I cut it?", BESIDE) == [
        ("window", "How do I cut it?"),
        ("state", "goal: a shed"),
        ("profile", "- lives in Oslo"),
        ("recall", "- owns a saw"),
        ("recall", "[3 user] the saw is blunt"),
    ]


def test_a_part_goes_on_over_texts_until_its_closing_mark() -> None:
    opened = f"{opening('first message of the user, turn 1, verbatim')}\nHello"

    assert pieces(opened, "\nthere", closing("first message"), "Hi") == [
        ("first_message", "Hello"),
        ("first_message", "\nthere"),
        ("window", "Hi"),
    ]


def test_pinned_state_is_told_apart_from_the_system_prompt_around_it() -> None:
    system = f"Be kind.\n\n{opening('pinned state')}\nGoal: a shed\n{closing('pinned state')}"

    assert pieces(system, outside="system") == [("system", "Be kind.\n\n"), ("state", "Goal: a shed")]


@pytest.mark.parametrize(
    "text",
    ["It says [Prefold: ledger] in the middle of a line", closing("ledger"), "[Prefold: this turn was removed.]"],
)
def test_what_opens_no_part_stays_in_the_window(text: str) -> None:
    assert pieces(text) == [("window", text)]


def test_a_gap_is_a_marker_and_what_follows_it_is_the_window() -> None:
    gap = "[Prefold: turns 4-9 are left out here for lack of room; the session's log has them in full.]"

    assert pieces(gap, "Go on") == [("markers", gap), ("window", "Go on")]
