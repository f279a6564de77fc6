"""What is kept of a context that was served."""

from prefold.assembly.served import ServedContext, ServedLeftOut
from prefold.gateway.context_records import MOST_LEFT_OUT, record_of
from prefold.storage.types import SessionRef, StoredContext


def test_a_record_stays_small_however_much_yielded() -> None:
    yielded = tuple(ServedLeftOut("window", None, "short_form", seq, seq) for seq in range(5_000))
    served = ServedContext(1, 0, "degraded", "", b"[]", 0, {}, (), yielded, ())
    life = SessionRef("acme", "s", "life")
    stored = StoredContext(life, b"", 1, 0, 5_000, "degraded", "", 0, 0, 1.0, 1_000, "", (), True, "")
    record = record_of(stored, served, with_query=False, form="openai", budget_tokens=None, etag="")
    assert len(record["left_out"]) == MOST_LEFT_OUT
    assert record["left_out"][0]["first_seq"] == 0
