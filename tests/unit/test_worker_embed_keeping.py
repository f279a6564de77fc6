"""What the embed pass passes over: small talk, settled turns, the leading system prompt. The log keeps it all."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from prefold.storage.types import SessionRef
from prefold.worker.embed_pass import EmbedPass, EmbedReport
from tests.support.embedding import EmbedBench as Bench
from tests.support.embedding import span, stored_turn

A = SessionRef("acme", "a", "1")


def says(bench: Bench, *turns: tuple[str, Any]) -> None:
    """Appends turns of these roles and contents."""
    for role, content in turns:
        bench.turns.add(A, "")
        life = bench.turns.lives[A]
        raw = {"seq": life.head, "id": f"t{life.head}", "role": role, "content": content}
        kind = {"system": "y"}.get(role, "p")
        made = stored_turn(life.head, "")
        leads = all(turn.kind == "y" for turn in life.turns.values() if turn.seq < life.head) and kind == "y"
        stands = b"" if leads else made.content
        life.turns[life.head] = replace(
            made, role=role, kind=kind, content=stands, verbatim_json=json.dumps(raw).encode()
        )


async def run(bench: Bench, keeps: Sequence[str] = ()) -> EmbedReport:
    work = EmbedPass(
        bench.turns, bench.store, bench.embedder, lambda: False, bench.options, keeps_all=lambda tenant: tenant in keeps
    )
    return await work.run([span(A)])


def result(text: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": "c1", "content": text}]


async def test_small_talk_is_not_embedded_but_counted_and_marked() -> None:
    bench = Bench()
    says(bench, ("user", "Hello!"), ("user", "My parcel from Graz is late."), ("user", "Thank you very much!"))
    report = await run(bench)
    assert bench.store.seqs(A) == [2]
    assert (report.embedded, sum(report.not_kept.values()), report.without_text) == (1, 2, 0)
    assert (bench.mark(A), bench.turns.due) == (3, set())


async def test_a_tenant_may_keep_it_all() -> None:
    bench = Bench()
    says(bench, ("user", "Hello!"), ("user", "My parcel from Graz is late."))
    report = await run(bench, keeps=["acme"])
    assert bench.store.seqs(A) == [1, 2]
    assert report.not_kept == {}


async def test_what_leads_as_system_prompt_is_not_recalled_but_what_comes_later_is() -> None:
    bench = Bench()
    said = [
        ("system", "You book flights."),
        ("system", "Be brief."),
        ("user", "To Oslo please"),
        ("system", "Strike today"),
        ("system", "Until nine in the evening"),
    ]
    says(bench, *said)
    report = await run(bench, keeps=["acme"])
    assert bench.store.seqs(A) == [3, 4, 5]
    assert report.not_kept == {"system_prompt": 2}


async def test_a_system_turn_that_finds_no_room_in_the_system_prompt_is_recalled() -> None:
    bench = Bench()
    says(bench, ("system", "All that there is to know of Oslo"), ("user", "To Oslo please"))
    life = bench.turns.lives[A]
    life.turns[1] = replace(life.turns[1], content=b'{"type":"text","text":"All that there is to know of Oslo"}')
    report = await run(bench)
    assert (bench.store.seqs(A), report.not_kept) == ([1, 2], {})


async def test_output_that_was_retold_goes_when_it_is_retold() -> None:
    bench = Bench()
    says(bench, ("user", "Where is parcel 4471?"), ("user", result("parcel 4471 in Linz")))
    await run(bench)
    assert bench.store.seqs(A) == [1, 2]
    says(bench, ("assistant", "Your parcel 4471 is in Linz at the depot."))
    await run(bench)
    assert bench.store.seqs(A) == [1, 3]
    assert bench.mark(A) == 3


async def test_what_an_edit_made_meanwhile_is_not_taken_for_what_was_settled() -> None:
    bench = Bench()
    says(bench, ("user", "Where is parcel 4471?"), ("user", result("parcel 4471 in Linz")))
    await run(bench)
    says(bench, ("assistant", "Your parcel 4471 is in Linz at the depot."))
    embed = bench.embedder.fails

    def edits(texts: Sequence[str]) -> object:
        bench.embedder.fails = embed
        bench.turns.edit(A, 2, "No, it is a letter to Bern.")
        return None

    bench.embedder.fails = edits
    await run(bench)
    await run(bench)
    assert bench.store.revisions(A) >= {(2, 1)}


@pytest.mark.parametrize("change", ["edit", "remove", "rewind"])
async def test_what_was_passed_over_because_of_a_turn_is_judged_again_when_that_changes(change: str) -> None:
    bench = Bench()
    says(bench, ("user", "Where is parcel 4471?"), ("user", result("parcel 4471 in Linz")))
    says(bench, ("assistant", "Your parcel 4471 is in Linz at the depot."))
    await run(bench)
    assert bench.store.seqs(A) == [1, 3]
    match change:
        case "edit":
            bench.turns.edit(A, 3, "I do not know.")
        case "remove":
            bench.turns.remove(A, 3)
        case _:
            bench.turns.rewind(A, 2)
    await run(bench)
    assert bench.store.seqs(A) == ([1, 2, 3] if change == "edit" else [1, 2])


async def test_what_an_edit_settles_goes() -> None:
    bench = Bench()
    says(bench, ("user", "Where is parcel 4471?"), ("user", result("parcel 4471 in Linz")), ("assistant", "Wait."))
    await run(bench)
    assert 2 in bench.store.seqs(A)
    bench.turns.edit(A, 3, "Your parcel 4471 is in Linz at the depot.")
    await run(bench)
    assert bench.store.seqs(A) == [1, 3]
