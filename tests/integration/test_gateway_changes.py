"""``POST …/rewind``, ``POST …/fork``, ``PUT`` and ``DELETE …/turns/{turn}`` on a real Redis."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest

from prefold.conversation.markers import REMOVED_TEXT
from prefold.gateway.finding import Hit
from tests.support.gateway import Served, served_gateway

SESSION = "/v1/sessions/s1"
CANARY = "CANARY-7731"
Json = dict[str, Any]


@pytest.fixture
async def served(redis_url: str) -> AsyncIterator[Served]:
    async with served_gateway(redis_url) as running:
        yield running


@pytest.fixture
async def talk(served: Served) -> Served:
    """A session with turns m1 to m4, each with a vector."""
    turns = [{"id": f"m{n}", "role": "user" if n % 2 else "assistant", "content": f"word {n}"} for n in range(1, 5)]
    await publish(served, *turns)
    life = (await served.sessions.view("default", "s1")).ref.incarnation
    served.index.hits = [("default", Hit("s1", life, seq, 0, 0.5)) for seq in range(1, 5)]
    return served


async def publish(served: Served, *turns: Json) -> Json:
    answer = await served.client.post(f"{SESSION}/turns", json={"turns": turns})
    assert answer.status_code == 201, answer.json()
    body: Json = answer.json()
    return body


async def done(served: Served, method: str, path: str, body: Json | None = None, status: int = 200) -> Json:
    answer = await served.client.request(method, SESSION + path, json=body)
    assert answer.status_code == status, answer.json()
    told: Json = answer.json()
    return told


async def refused(served: Served, method: str, path: str, body: Json | None = None) -> tuple[int, str, str | None]:
    answer = await served.client.request(method, SESSION + path, json=body)
    assert answer.headers["content-type"] == "application/problem+json", answer.json()
    return answer.status_code, answer.json()["code"], answer.json().get("field")


async def log_of(served: Served, session: str = "s1") -> list[Json]:
    turns: list[Json] = (await served.client.get(f"/v1/sessions/{session}/turns")).json()["turns"]
    return turns


async def texts_of(served: Served, session: str = "s1") -> list[str]:
    body = (await served.client.get(f"/v1/sessions/{session}/context")).json()
    return [block["text"] for message in body["messages"] for block in message["content"] if block["type"] == "text"]


async def stored_bytes(served: Served) -> bytes:
    redis = served.sessions.client
    return b"".join([await redis.dump(key) or b"" async for key in redis.scan_iter("*")])


def seqs(served: Served) -> list[int]:
    return [hit.seq for _, hit in served.index.hits]


async def test_a_rewind_takes_back_what_followed_and_says_what_remains(talk: Served) -> None:
    told = await done(talk, "POST", "/rewind", {"to_seq": 2})
    assert (told["session"], told["to_seq"], told["turns"], told["head_seq"]) == ("s1", 2, 2, 4)
    assert told["context"] | {"version": 0} == {
        "version": 0,
        "swaps": 0,
        "tokens": told["context"]["tokens"],
        "window_tokens": told["context"]["tokens"],
        "hard_limit_tokens": 100_000,
        "status": "ok",
    }
    assert (told["vectors_left"], told["durability"], seqs(talk)) == (0, "fast", [1, 2])
    assert [one["where"] for one in told["remains"]][-3:] == [
        "working memory of gateways and workers",
        "vector store files",
        "backups that you keep",
    ]
    assert await texts_of(talk) == ["word 1", "word 2"]
    assert [turn["id"] for turn in await log_of(talk)] == ["m1", "m2"]


async def test_a_rewind_repeated_takes_nothing_more_and_the_numbers_go_on(talk: Served) -> None:
    await done(talk, "POST", "/rewind", {"to_seq": 2})
    again = await done(talk, "POST", "/rewind", {"to_seq": 2})
    assert (again["turns"], again["head_seq"], again["vectors_left"]) == (0, 4, 0)
    assert (await publish(talk, {"id": "m5", "role": "user", "content": "on"}))["turns"][0]["seq"] == 5
    assert [turn["seq"] for turn in await log_of(talk)] == [1, 2, 5]


async def test_the_id_of_a_turn_that_was_taken_back_is_refused(talk: Served) -> None:
    await done(talk, "POST", "/rewind", {"to_seq": 3})
    turn = {"id": "m4", "role": "assistant", "content": "word 4"}
    assert (await refused(talk, "POST", "/turns", turn))[:2] == (409, "turn_rewound")
    assert (await refused(talk, "PUT", "/turns/m4", turn))[:2] == (409, "turn_rewound")
    assert (await refused(talk, "DELETE", "/turns/m4"))[:2] == (409, "turn_rewound")


async def test_a_rewind_to_nothing_leaves_an_empty_session(talk: Served) -> None:
    assert (await done(talk, "POST", "/rewind", {"to_seq": 0}))["turns"] == 4
    assert (await texts_of(talk), await log_of(talk), seqs(talk)) == ([], [], [])


REWINDS: dict[str, tuple[Any, int, str, str | None]] = {
    "ahead": ({"to_seq": 5}, 422, "seq_ahead", "to_seq"),
    "no place": ({}, 422, "invalid_input", "to_seq"),
    "negative": ({"to_seq": -1}, 422, "invalid_input", "to_seq"),
    "text": ({"to_seq": "2"}, 422, "invalid_input", "to_seq"),
    "yes": ({"to_seq": True}, 422, "invalid_input", "to_seq"),
    "huge": ({"to_seq": 2**63}, 422, "invalid_input", "to_seq"),
    "unknown member": ({"to_seq": 1, "from": 2}, 422, "invalid_input", "from"),
    "list": ([1], 400, "malformed_body", "body"),
}


@pytest.mark.parametrize("name", REWINDS)
async def test_a_bad_rewind_is_refused_with_its_place_and_changes_nothing(talk: Served, name: str) -> None:
    body, *expected = REWINDS[name]
    assert list(await refused(talk, "POST", "/rewind", body)) == expected
    assert len(await log_of(talk)) == 4


async def test_a_fork_is_a_session_of_its_own_with_the_same_turns(talk: Served) -> None:
    forked = await done(talk, "POST", "/fork", {"session": "s2", "at_seq": 2}, 201)
    assert (forked["session"], forked["head_seq"]) == ("s2", 2)
    assert forked["forked_from"] == {"session": "s1", "at_seq": 2}
    assert forked == (await talk.client.get("/v1/sessions/s2")).json()
    assert (await talk.client.get(SESSION)).json()["forked_from"] is None
    await talk.client.post("/v1/sessions/s2/turns", json={"id": "n3", "role": "user", "content": "another way"})
    assert [(turn["id"], turn["seq"]) for turn in await log_of(talk, "s2")] == [("m1", 1), ("m2", 2), ("n3", 3)]
    assert await texts_of(talk, "s2") == ["word 1", "word 2", "another way"]
    assert await texts_of(talk) == ["word 1", "word 2", "word 3", "word 4"]


async def test_a_fork_without_a_place_has_all_turns_and_repeating_it_is_safe(talk: Served) -> None:
    first = await done(talk, "POST", "/fork", {"session": "s2"}, 201)
    assert first["forked_from"] == {"session": "s1", "at_seq": 4}
    assert await done(talk, "POST", "/fork", {"session": "s2"}, 201) == first


FORKS: dict[str, tuple[Any, int, str, str | None]] = {
    "exists": ({"session": "other"}, 409, "session_exists", None),
    "itself": ({"session": "s1"}, 409, "session_exists", None),
    "ahead": ({"session": "s2", "at_seq": 9}, 422, "seq_ahead", "at_seq"),
    "no session": ({"at_seq": 1}, 422, "invalid_input", "session"),
    "no name": ({"session": "a:b"}, 422, "invalid_name", "session"),
    "negative": ({"session": "s2", "at_seq": -1}, 422, "invalid_input", "at_seq"),
    "unknown member": ({"session": "s2", "to_seq": 1}, 422, "invalid_input", "to_seq"),
}


@pytest.mark.parametrize("name", FORKS)
async def test_a_bad_fork_is_refused_and_makes_nothing(talk: Served, name: str) -> None:
    await talk.client.put("/v1/sessions/other", json={})
    body, *expected = FORKS[name]
    assert list(await refused(talk, "POST", "/fork", body)) == expected
    assert (await talk.client.get("/v1/sessions/s2")).status_code == 404


async def test_a_correction_changes_the_words_everywhere(served: Served) -> None:
    await publish(served, {"id": "m1", "role": "user", "content": f"my number is {CANARY}", "name": "Ann", "ts": 7})
    life = (await served.sessions.view("default", "s1")).ref.incarnation
    served.index.hits = [("default", Hit("s1", life, 1, revision, 0.5)) for revision in (0, 1)]
    said = {"role": "user", "content": "my number is secret", "ts": 8}
    told = await done(served, "PUT", "/turns/m1", said)
    assert told["turn"] == {"id": "m1", "seq": 1, "tokens": told["context"]["tokens"], "revision": 1}
    assert (told["changed"], told["removed"], told["vectors_left"]) == (True, False, 0)
    assert [hit.revision for _, hit in served.index.hits] == [1]
    assert told["remains"]
    assert await log_of(served) == [{"seq": 1, "id": "m1", **said}]
    assert await texts_of(served) == ["my number is secret"]
    assert CANARY.encode() not in await stored_bytes(served)


async def test_a_correction_repeated_changes_nothing(talk: Served) -> None:
    said = {"id": "m2", "role": "assistant", "content": "new", "usage": {"input_tokens": 9}}
    first = await done(talk, "PUT", "/turns/m2", said)
    again = await done(talk, "PUT", "/turns/m2", said)
    assert (first["changed"], again["changed"], again["turn"]) == (True, False, first["turn"])
    assert again["context"]["version"] == first["context"]["version"]
    assert "usage" not in (await log_of(talk))[1]


async def test_what_was_never_changed_leaves_nothing_behind(talk: Served) -> None:
    told = await done(talk, "PUT", "/turns/m1", {"role": "user", "content": "word 1"})
    assert (told["changed"], told["turn"]["revision"], told["remains"]) == (False, 0, [])
    assert seqs(talk) == [1, 2, 3, 4]


async def test_publishing_the_old_words_again_does_not_bring_them_back(talk: Served) -> None:
    await done(talk, "PUT", "/turns/m1", {"role": "user", "content": "corrected"})
    told = await publish(talk, {"id": "m1", "role": "user", "content": "word 1"})
    assert told["turns"][0]["duplicate"] is True
    assert (await texts_of(talk))[0] == "corrected"


CORRECTIONS: dict[str, tuple[Json, int, str, str | None]] = {
    "another role": ({"role": "assistant", "content": "a"}, 409, "turn_shape", None),
    "another kind": (
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a"}]},
        409,
        "turn_shape",
        None,
    ),
    "another id": ({"id": "m2", "role": "user", "content": "a"}, 422, "id_mismatch", "id"),
    "no id": ({"id": 7, "role": "user", "content": "a"}, 422, "id_mismatch", "id"),
    "no words": ({"role": "user", "content": " "}, 422, "empty_content", "content"),
    "no role": ({"content": "a"}, 422, "invalid_input", "role"),
    "unknown member": ({"role": "user", "content": "a", "removed": True}, 422, "unknown_member", "removed"),
    "several turns": ({"turns": [{"role": "user", "content": "a"}]}, 422, "unknown_member", "turns"),
}


@pytest.mark.parametrize("name", CORRECTIONS)
async def test_a_bad_correction_is_refused_with_its_place_and_changes_nothing(talk: Served, name: str) -> None:
    body, *expected = CORRECTIONS[name]
    assert list(await refused(talk, "PUT", "/turns/m1", body)) == expected
    assert (await texts_of(talk))[0] == "word 1"
    assert seqs(talk) == [1, 2, 3, 4]


async def test_a_removed_turn_is_a_marker_and_its_words_are_nowhere(served: Served) -> None:
    await publish(
        served,
        {"id": "m1", "role": "user", "content": "Hello"},
        {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": CANARY}], "name": CANARY, "ts": "2026"},
        {"id": "m3", "role": "user", "content": "Thanks"},
    )
    told = await done(served, "DELETE", "/turns/m2")
    assert (told["turn"]["seq"], told["turn"]["revision"]) == (2, 1)
    assert (told["changed"], told["removed"], told["vectors_left"]) == (True, True, 0)
    assert await texts_of(served) == ["Hello", REMOVED_TEXT, "Thanks"]
    kept = {"seq": 2, "id": "m2", "role": "assistant", "ts": "2026", "content": REMOVED_TEXT, "removed": True}
    assert (await log_of(served))[1] == kept
    assert CANARY.encode() not in await stored_bytes(served)


async def test_a_removed_turn_stays_removed(talk: Served) -> None:
    first = await done(talk, "DELETE", "/turns/m1")
    again = await done(talk, "DELETE", "/turns/m1")
    assert (again["changed"], again["removed"], again["turn"]) == (False, True, first["turn"])
    assert again["remains"] == first["remains"] or len(again["remains"]) == len(first["remains"])
    turn = {"id": "m1", "role": "user", "content": "word 1"}
    assert (await refused(talk, "POST", "/turns", turn))[:2] == (409, "turn_removed")
    assert (await refused(talk, "PUT", "/turns/m1", turn))[:2] == (409, "turn_removed")
    assert (await texts_of(talk))[0] == REMOVED_TEXT


async def test_vectors_that_cannot_be_deleted_now_do_not_hold_up_a_change(talk: Served) -> None:
    talk.index.is_down = True
    changes = [
        await done(talk, "POST", "/rewind", {"to_seq": 3}),
        await done(talk, "PUT", "/turns/m1", {"role": "user", "content": "new"}),
        await done(talk, "DELETE", "/turns/m2"),
    ]
    for told in changes:
        assert told["vectors_left"] is None
        assert told["remains"][0] == {
            "where": "vectors",
            "until": "the workers have deleted them, once the vector store answers",
        }
    assert await texts_of(talk) == ["new", REMOVED_TEXT, "word 3"]
    talk.index.is_down = False
    assert (await done(talk, "DELETE", "/turns/m2"))["vectors_left"] == 0
    assert seqs(talk) == [1, 3, 4], "a repeat deletes what the first call could not"


async def test_sessions_that_were_forked_are_named_because_they_keep_the_old_words(talk: Served) -> None:
    await done(talk, "POST", "/fork", {"session": "s2"}, 201)
    told = await done(talk, "DELETE", "/turns/m1")
    assert "sessions forked from it: s2" in [one["where"] for one in told["remains"]]
    assert (await texts_of(talk, "s2"))[0] == "word 1"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/rewind", {"to_seq": 0}),
        ("POST", "/fork", {"session": "s2"}),
        ("PUT", "/turns/m1", {"role": "user", "content": "a"}),
        ("DELETE", "/turns/m1", None),
    ],
)
async def test_changes_of_a_session_that_is_not_there_or_was_erased(
    served: Served, method: str, path: str, body: Json | None
) -> None:
    assert (await refused(served, method, path, body))[:2] == (404, "session_not_found")
    await publish(served, {"id": "m1", "role": "user", "content": "Hello"})
    if "turns" in path:
        assert (await refused(served, method, "/turns/m9", body))[:2] == (404, "turn_not_found")
    await served.client.delete(SESSION)
    assert (await refused(served, method, path, body))[:2] == (410, "session_erased")


async def test_a_fork_may_take_the_name_of_an_erased_session(talk: Served) -> None:
    await talk.client.post("/v1/sessions/s2/turns", json={"role": "user", "content": "old"})
    await talk.client.delete("/v1/sessions/s2")
    await done(talk, "POST", "/fork", {"session": "s2", "at_seq": 1}, 201)
    assert await texts_of(talk, "s2") == ["word 1"]


async def test_a_client_that_holds_the_context_gets_it_anew_after_a_change(talk: Served) -> None:
    tags = []
    for method, path, body in (
        ("PUT", "/turns/m1", {"role": "user", "content": "w0rd 1"}),
        ("DELETE", "/turns/m2", None),
        ("POST", "/rewind", {"to_seq": 2}),
    ):
        tags.append((await talk.client.get(f"{SESSION}/context")).headers["etag"])
        await done(talk, method, path, body)
        answer = await talk.client.get(f"{SESSION}/context", headers={"if-none-match": ", ".join(tags)})
        assert answer.status_code == 200, (method, path)


IDS = [
    "a/b",
    "a:b",
    "..",
    ".",
    "a b",
    "会话 7",
    "e\u0301",
    "100%",
    "%2F",
    "a?b#c",
    "{turn}",
    "x" * 256,
    "🧵" * 64,
    "\\'\"",
]


@pytest.mark.parametrize("turn_id", IDS)
async def test_whatever_id_an_append_takes_can_be_named_in_a_path(served: Served, turn_id: str) -> None:
    await publish(served, {"id": turn_id, "role": "user", "content": "old"})
    path = f"/turns/{quote(turn_id, safe='').replace('.', '%2E')}"
    assert (await done(served, "PUT", path, {"role": "user", "content": "new"}))["turn"]["id"] == turn_id
    assert (await done(served, "DELETE", path))["turn"]["id"] == turn_id


async def test_an_id_in_bare_utf_8_is_the_same_id(served: Served) -> None:
    await publish(served, {"id": "é", "role": "user", "content": "old"})
    bare = await raw_status(served, "DELETE", "/v1/sessions/s1/turns/é".encode())
    assert bare == 200
    assert (await log_of(served))[0]["removed"] is True


@pytest.mark.parametrize(("segment", "status"), [("%FF", 422), ("%00", 422), ("%20", 422), ("x" * 257, 422), ("", 404)])
async def test_what_is_no_id_is_refused(talk: Served, segment: str, status: int) -> None:
    answer = await talk.client.delete(f"{SESSION}/turns/{segment}")
    assert answer.status_code == status
    assert answer.json()["code"] == ("invalid_id" if segment else "no_such_path")


async def raw_status(served: Served, method: str, raw_path: bytes) -> int:
    """A request whose path is sent as it is; HTTP clients would encode it."""
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Json:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": method,
        "raw_path": raw_path,
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    await served.client._transport.app(scope, receive, send)  # type: ignore[attr-defined]
    return statuses[0]


@pytest.mark.parametrize("method", ["PUT", "POST"])
async def test_a_body_too_large_or_of_another_kind_is_refused_before_it_is_read(talk: Served, method: str) -> None:
    path = f"{SESSION}/turns/m1" if method == "PUT" else f"{SESSION}/rewind"
    media = {"content-type": "application/json"}
    assert (await talk.client.request(method, path, content=b" " * 1_100_000, headers=media)).status_code == 413
    assert (await talk.client.request(method, path, content=b"{}")).status_code == 415
    assert (await talk.client.request(method, path, content=b"{", headers=media)).status_code == 400
    assert (await talk.client.request(method, f"{path}?at=1", content=b"{}", headers=media)).status_code == 400
