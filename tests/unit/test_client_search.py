"""Hits of a search, of every kind, as the client gives them."""

import json

import httpx

from prefold.client import Prefold

HITS = [
    {
        "kind": "turn", "text": "I live in Oslo", "score": 0.9, "copies": 2,
        "session": "s", "turn_id": "t1", "seq": 1, "role": "user",
    },
    {
        "kind": "fact", "text": "User lives in Oslo", "score": 0, "copies": 0, "fact_id": "f1",
        "sources": [{"session": "s", "turn_id": "t1", "seq": 1}],
    },
    {"kind": "summary", "text": "They moved.", "score": 0.4, "copies": 0, "session": "old", "first_seq": 1, "last_seq": 9},
]  # fmt: skip


def test_hits_of_all_kinds_are_read_though_only_turns_have_a_turn() -> None:
    answer = httpx.MockTransport(lambda _: httpx.Response(200, content=json.dumps({"results": HITS})))

    with Prefold("http://gateway", transport=answer) as client:
        turn, fact, summary = client.search("Oslo")

    assert (turn.session, turn.turn_id, turn.seq, turn.role, turn.copies) == ("s", "t1", 1, "user", 2)
    assert (fact.fact_id, fact.session, fact.turn_id, fact.sources[0]["seq"]) == ("f1", "", "", 1)
    assert (summary.session, summary.first_seq, summary.last_seq) == ("old", 1, 9)
