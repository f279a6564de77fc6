"""The commands of the page on memory work as they stand there, and show what the page says."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from prefold.stack.embedded import temporary_stack
from tests.support.pages import checked_blocks, curl
from tests.support.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"


def is_closed(send: Callable[[], Any]) -> bool:
    return bool(send()["closed"])


@pytest.mark.timeout(120)
def test_the_commands_of_the_page_on_memory_do_what_it_says() -> None:
    answers: dict[str, Any] = {}
    with temporary_stack() as stack:
        for kind, command in checked_blocks(PAGE.read_text("utf-8")):
            send = partial(curl, command, stack.gateway_url)
            if kind == "close":
                wait_until("the session is closed", partial(is_closed, send))
            else:
                answers[kind] = send()

    known = {(fact["relation"], fact["object"]) for fact in answers["facts"]["facts"]}
    assert {thing for _, thing in known} == {"Lisbon", "sesame"}
    assert answers["facts"]["facts"][0]["sources"] == [{"session": "ada-1", "turn_id": "m1", "seq": 1}]
    told = str(answers["context"]["messages"])
    assert "sesame" in told
    assert "window seats" in told
    known_part, _, earlier = told.partition("from earlier conversations with this user")
    assert "Porto" not in known_part
    assert "I was thinking about moving to Porto." in earlier, "what was said stands as it was said"
    assert answers["context"]["tokens"]["total"] <= 1000
