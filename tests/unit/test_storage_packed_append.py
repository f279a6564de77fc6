"""The packed append is what packing its arguments gives."""

import hiredis
import pytest

from prefold.conversation import prepare_turn
from prefold.conversation.turns import PreparedTurn
from prefold.storage.append import PACKED_PARTS, Defaults, append_args, packed_append
from prefold.storage.keys import SessionKeys, packed_script_keys
from prefold.tokens import load_counter

SHA = "5" * 40
HEAD = b"*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%b\r\n$2\r\n11\r\n" % (PACKED_PARTS, SHA.encode())


def prepared(content: object, role: str = "user", **members: object) -> PreparedTurn:
    return prepare_turn({"id": "tür 1", "role": role, "content": content, **members}, 0, load_counter(), lambda: "")


@pytest.mark.parametrize(
    "turn",
    [
        prepared("hello"),
        prepared("words without end " * 200),
        prepared("语言" * 300, "assistant", usage={"input_tokens": 1234}),
        prepared([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]),
        prepared([{"type": "thinking", "thinking": "t", "signature": "s" * 900}, {"type": "text", "text": "x"}], "assistant"),
    ],
    ids=["short", "clipped", "with usage", "blocks", "thinking"],
)  # fmt: skip
@pytest.mark.parametrize("lead_ms", [None, 1, 180_000])
def test_a_plain_turn_is_packed_as_its_arguments_are(turn: PreparedTurn, lead_ms: int | None) -> None:
    defaults = Defaults()
    for tenant, session in [("acme", "s"), ("a.b@c", "x" * 128), ("default", "s|1=2")]:
        keys = SessionKeys.of(tenant, session)
        args = append_args(keys.label, "0123456789ab", [turn], defaults, 1_800_000_000_123, lead_ms)
        command = ("EVALSHA", SHA, 11, *keys.script_keys(), *args)
        label, packed_keys = packed_script_keys(tenant, session)
        packed = packed_append(HEAD + packed_keys, label, "0123456789ab", turn, defaults, 1_800_000_000_123, lead_ms)
        assert packed == hiredis.pack_command(command)  # type: ignore[arg-type]  # its stub knows one-tuples only
