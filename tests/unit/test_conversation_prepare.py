"""Published turns of text and media, of both formats, and what the append script gets of them."""

import json
from typing import Any

import pytest

from prefold.conversation import TurnKind, prepare_turn
from prefold.conversation.blocks import DOCUMENT_TOKENS, IMAGE_TOKENS
from prefold.tokens import load_counter
from tests.support.prepared import PNG, blocks, count, prepare, published


def test_a_text_becomes_one_block_and_costs_its_tokens_and_seven() -> None:
    text = 'Where is order 4711-22? "It\'s late" – 注文\n'
    turn = prepare(id="D1:3", role="user", content=text)
    assert turn.content == b'{"type":"text","text":' + json.dumps(text, ensure_ascii=False).encode() + b"}"
    assert (turn.id, turn.kind, turn.role, turn.verbatim) == ("D1:3", TurnKind.PLAIN, "user", "text")
    assert turn.tokens == turn.short_tokens == count(text) + 4 + 3
    assert turn.short is None
    assert turn.envelope == b'{"id":"D1:3","role":"user"}'


def test_text_stays_byte_exact() -> None:
    text = "  \ttabs \u00a0 e\u0301 é \u2028 👩\u200d👧 <|endoftext|> </summary> [The assistant began this conversation.]  "
    turn = prepare(role="user", content=text)
    assert blocks(turn.content) == [{"type": "text", "text": text}]
    assert b"\\u" not in turn.content


@pytest.mark.parametrize(
    "raw",
    [
        {"id": "a", "role": "user", "content": "hi"},
        {"role": "assistant", "content": "hi", "id": "a", "ts": "2024-03-15", "name": "Mel"},
        {"content": "hi", "role": "user", "id": "a"},
        {
            "id": "a",
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "ho"}],
            "ts": 1.5,
        },
        {"id": "a", "role": "user", "content": [{"type": "image", "source": PNG}]},
        {"id": "a", "role": "user", "content": [{"text": "other order", "type": "text"}]},
        {"id": "a", "role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
        {"id": "a", "role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]},
        {"id": "a", "role": "system", "content": "Be kind."},
        {"id": "a", "role": "tool", "tool_call_id": "c", "content": "4", "name": "add"},
        {"id": "a", "role": "assistant", "content": None, "refusal": "I can't help with that."},
        {"id": "a", "role": "user", "content": "big", "metadata": {"n": 123456789012345678901234567890}},
    ],
)
def test_the_log_gives_back_what_was_published(raw: dict[str, Any]) -> None:
    restored = published(prepare(**raw))
    assert restored == raw
    assert json.dumps(restored) == json.dumps(raw), "keys in their order, at every level"


def test_content_that_the_blocks_carry_is_not_stored_twice() -> None:
    long = "word " * 500
    assert len(prepare(role="user", content=long, ts="2024-03-15").envelope) < 100
    listed = [{"type": "text", "text": long}, {"type": "image", "source": PNG}]
    assert len(prepare(role="user", content=listed).envelope) < 100


def test_a_turn_without_an_id_gets_one_and_shows_it_first() -> None:
    turn = prepare(role="user", content="hi")
    assert turn.id == "made-id"
    assert list(published(turn)) == ["id", "role", "content"]
    assert published(prepare(role="user", id=None, content="hi")) == {"role": "user", "id": "made-id", "content": "hi"}


def test_an_id_that_was_given_asks_for_no_other() -> None:
    def never() -> str:
        raise AssertionError("an id was given")

    assert prepare_turn({"id": "mine", "role": "user", "content": "x"}, 0, load_counter(), never).id == "mine"


def test_the_digest_tells_content_apart_but_not_its_circumstances() -> None:
    base = prepare(id="a", role="user", content="hi")
    assert len(base.digest) == 32
    assert prepare(content="hi", id="b", role="user", ts="2024-03-15", metadata={"x": 1}).digest == base.digest
    same = {
        prepare(role="user", content=[{"type": "text", "text": "hi"}]).digest,
        prepare(role="user", content=[{"text": "hi", "type": "text"}]).digest,
    }
    assert len(same) == 1
    others = {
        prepare(role="user", content="hi!").digest,
        prepare(role="assistant", content="hi").digest,
        prepare(role="user", content="hi", name="Mel").digest,
        *same,
    }
    assert base.digest not in others
    assert len(others) == 4


def test_empty_text_beside_other_blocks_is_left_out_of_the_context() -> None:
    turn = prepare(role="user", content=[{"type": "text", "text": " \n"}, {"type": "text", "text": "hello"}])
    assert blocks(turn.content) == [{"type": "text", "text": "hello"}]
    assert turn.tokens == count("hello") + 7


def test_members_that_no_provider_knows_are_left_out_of_the_context() -> None:
    content = [
        {"type": "text", "text": "see", "cache_control": {"type": "ephemeral"}, "citations": [], "x": 1},
        {"type": "image", "source": {**PNG, "note": "mine"}, "caption": "a red bicycle", "cache_control": None},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}, "title": "Invoice", "y": 2},
    ]
    turn = prepare(role="user", content=content, name="Mel")
    assert blocks(turn.content) == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": PNG},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}, "title": "Invoice"},
    ]
    assert published(turn)["content"] == content


def test_images_and_unseen_documents_cost_a_flat_number_of_tokens() -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0=" * 10_000}
    content = [{"type": "image", "source": PNG}, {"type": "document", "source": pdf}]
    assert prepare(role="user", content=content).tokens == 4 + 3 + IMAGE_TOKENS + 3 + DOCUMENT_TOKENS


def test_documents_that_are_text_cost_that_text() -> None:
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "one two three"}}
    assert prepare(role="user", content=[plain]).tokens == 4 + 3 + count("one two three")
    inner = [{"type": "text", "text": "one two three", "x": 1}]
    listed = {"type": "document", "source": {"type": "content", "content": inner}, "title": "T"}
    turn = prepare(role="user", content=[listed])
    assert turn.tokens == 4 + 3 + 3 + count("one two three") + count("T")
    assert blocks(turn.content)[0]["source"] == {
        "type": "content",
        "content": [{"type": "text", "text": "one two three"}],
    }
    assert published(turn)["content"] == [listed]


def test_an_image_of_the_assistant_becomes_its_placeholder() -> None:
    content = [{"type": "text", "text": "Look:"}, {"type": "image", "source": PNG, "caption": "a dog"}]
    turn = prepare(role="assistant", content=content)
    assert blocks(turn.content) == [{"type": "text", "text": "Look:"}, {"type": "text", "text": "[Image: a dog]"}]
    assert published(turn)["content"] == content


def test_openai_parts_become_blocks() -> None:
    content = [
        {"type": "text", "text": "see"},
        {"type": "input_text", "text": "also"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "input_image", "image_url": "https://example.com/b.png"},
    ]
    assert blocks(prepare(role="user", content=content).content) == [
        {"type": "text", "text": "see"},
        {"type": "text", "text": "also"},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/b.png"}},
    ]


def test_a_whole_response_message_of_either_provider_is_taken() -> None:
    openai = prepare(
        role="assistant", content="Hi", refusal=None, annotations=[], audio=None, function_call=None, tool_calls=None
    )
    anthropic = prepare(
        id="msg_01", type="message", role="assistant", model="claude-sonnet-5-5", stop_reason="end_turn", stop_sequence=None,
        content=[{"type": "text", "text": "Hi", "citations": None}], usage={"input_tokens": 5, "output_tokens": 1},
    )  # fmt: skip
    assert openai.content == anthropic.content == b'{"type":"text","text":"Hi"}'


def test_a_refusal_is_text() -> None:
    turn = prepare(role="assistant", content=None, refusal="I can't help with that.")
    assert blocks(turn.content) == [{"type": "text", "text": "I can't help with that."}]
    part = prepare(role="assistant", content=[{"type": "refusal", "refusal": "No."}])
    assert blocks(part.content) == [{"type": "text", "text": "No."}]


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 3_000, "output_tokens": 5}, 3_210),
        ({"input_tokens": 10, "cache_read_input_tokens": None, "service_tier": "standard"}, 10),
        ({"prompt_tokens": 77, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}}, 77),
        ({"output_tokens": 5}, 0),
        ({}, 0),
        (None, 0),
    ],
)  # fmt: skip
def test_usage_tells_the_prompts_tokens(usage: dict[str, Any] | None, tokens: int) -> None:
    assert prepare(role="assistant", content="Hi", usage=usage).usage_input_tokens == tokens


def test_usage_on_a_turn_that_no_model_made_teaches_nothing() -> None:
    assert prepare(role="user", content="Hi", usage={"input_tokens": 10}).usage_input_tokens == 0


def test_signed_thinking_is_kept_in_its_place() -> None:
    thought = {"type": "thinking", "thinking": "Let me see", "signature": "EqQB" * 20}
    hidden = {"type": "redacted_thinking", "data": "EmwK" * 40}
    content = [thought, hidden, {"type": "text", "text": "Yes."}]
    turn = prepare(role="assistant", content=content)
    assert turn.has_thinking
    assert turn.verbatim == "blocks"
    assert blocks(turn.content) == content
    assert turn.tokens >= count("Yes.") + count("Let me see") + 4 + 3 * 3


def test_thinking_that_no_provider_takes_back_is_left_out() -> None:
    text = {"type": "text", "text": "Yes."}
    unsigned = prepare(role="assistant", content=[{"type": "thinking", "thinking": "Hm"}, text])
    trailing = prepare(role="assistant", content=[text, {"type": "redacted_thinking", "data": "EmwK"}])
    for turn in (unsigned, trailing):
        assert blocks(turn.content) == [text]
        assert not turn.has_thinking
        assert len(published(turn)["content"]) == 2


def test_a_signature_counts_as_the_thinking_that_it_hides() -> None:
    hidden = {"type": "thinking", "thinking": "", "signature": "E" * 10_000}
    turn = prepare(role="assistant", content=[hidden, {"type": "text", "text": "Yes."}])
    assert 1_000 < turn.tokens < 3_000


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_turn_serves_as_prompt_and_as_marked_user_text(role: str) -> None:
    turn = prepare(role=role, content='Answer in "German".\n')
    assert (turn.kind, turn.role) == (TurnKind.SYSTEM, "user")
    assert json.loads(b'"' + turn.system_text + b'"') == 'Answer in "German".\n'
    assert turn.system_tokens == count('Answer in "German".\n')
    assert blocks(turn.content) == [{"type": "text", "text": '[System message:]\nAnswer in "German".\n'}]
    assert turn.tokens == 7 + count('[System message:]\nAnswer in "German".\n')


def test_blocks_of_a_system_turn_are_joined() -> None:
    content = [
        {"type": "text", "text": "One.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Two."},
    ]
    assert prepare(role="system", content=content).system_text == b"One.\\n\\nTwo."
