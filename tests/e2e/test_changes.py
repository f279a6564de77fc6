"""Correcting and branching on the whole stack: what was said before is found nowhere, what is said now is."""

from typing import Any

import pytest

from prefold.client import Prefold
from prefold.stack.embedded import temporary_stack
from tests.support.waiting import wait_until

HERON = "The heron password is CANARY-7731."
TURNS = [
    {"id": "a/1", "role": "user", "content": HERON},
    {"id": "a/2", "role": "assistant", "content": "The parcel is at the neighbour's."},
    {"id": "a/3", "role": "user", "content": "My bicycle has a flat tyre."},
]


@pytest.mark.timeout(120)
def test_changed_words_are_found_and_old_ones_are_not() -> None:
    alone: dict[str, Any] = {"compact_workers": 0, "memory_workers": 0}  # three turns, and nothing to remember yet
    with temporary_stack(durability="fast", **alone) as stack, Prefold(stack.gateway_url) as prefold:
        prefold.append_many("chat", TURNS)
        wait_until("the turns are embedded", lambda: prefold.session("chat").embedded_to == 3)

        def found(query: str, session: str = "chat") -> list[tuple[int, str]]:
            return [(hit.seq, hit.text) for hit in prefold.search(query, session=session)]

        edited = prefold.edit_turn("chat", "a/1", "user", "The ferry leaves at noon.")
        assert (edited.turn.seq, edited.turn.revision, edited.vectors_left) == (1, 1, 0)
        wait_until("the new words are found", lambda: (1, "The ferry leaves at noon.") in found("ferry at noon"))
        assert "CANARY" not in str(found("heron password"))

        removed = prefold.remove_turn("chat", "a/2")
        assert (removed.turn.seq, removed.vectors_left) == (2, 0)
        assert 2 not in [seq for seq, _ in found("parcel at the neighbour's")]

        forked = prefold.fork("chat", "other", at_seq=2)
        assert (forked.head_seq, forked.forked_from and forked.forked_from.session) == (2, "chat")
        wait_until("the fork is searchable", lambda: [seq for seq, _ in found("ferry at noon", "other")] == [1])

        assert prefold.rewind("chat", 2).turns == 1
        assert 3 not in [seq for seq, _ in found("bicycle with a flat tyre")]
        assert prefold.append("chat", "user", "My bicycle is mended.").turns[0].seq == 4
        assert "CANARY" not in str([prefold.context("chat"), prefold.context("other"), prefold.turns("chat")])
