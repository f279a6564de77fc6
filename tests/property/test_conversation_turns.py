"""Turns of every shape: what is accepted comes back from the log, fits its short form, and makes valid contexts."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from prefold.conversation import (
    Fragment,
    PreparedTurn,
    Role,
    TurnKind,
    anthropic_messages,
    anthropic_messages_json,
    check_anthropic,
    check_openai,
    markers,
    openai_messages,
    parse_json,
    parse_lines,
    prepare_turn,
    restore_turn,
)
from prefold.conversation.short_forms import SHORT_TOKENS
from prefold.errors import InvalidInputError
from prefold.tokens import load_counter

WORDS = [
    "order",
    "注文",
    "👩\u200d👧",
    "e\u0301",
    "<|endoftext|>",
    "\n",
    '"',
    "\\",
    "0x7f",
    "[empty result]",
    "</summary>",
    "{}",
]
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
texts = st.one_of(
    words.filter(str.strip),
    st.text(max_size=60),
    words.map(lambda text: text * 60),
    st.sampled_from(["", " \n", "x" * 3_000, "\u0301" * 900]),
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=8), json_values, max_size=3)
extras = st.dictionaries(st.sampled_from(["cache_control", "x-note", "citations"]), st.none() | objects, max_size=2)
sources = st.sampled_from(
    [
        {"type": "url", "url": "https://example.com/a.png"},
        {"type": "base64", "media_type": "image/png", "data": "iVBO" * 2_000},
        {"media_type": "image/png", "type": "base64", "data": "iVBO", "note": 1},
        {"type": "file", "file_id": "file_1"},
    ]
)


def block(kind: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    fixed = st.fixed_dictionaries({"type": st.just(kind), **members})
    return st.builds(_merge, fixed, extras, st.booleans())


def _merge(known: dict[str, Any], more: dict[str, Any], turned: bool) -> dict[str, Any]:
    """Known members with unknown ones behind or before them."""
    return {**more, **known} if turned else {**known, **more}


CALL_IDS = ["c1", "c2", "c3", "a:1", "x" * 70]
call_ids = st.sampled_from(CALL_IDS)
text_blocks = block("text", text=texts)
images = block("image", source=sources) | st.builds(
    lambda source, caption: {"type": "image", "source": source, "caption": caption}, sources, texts
)
documents = block("document", source=sources, title=texts)
image_urls = st.just({"type": "image_url", "image_url": {"url": "https://example.com/b.png", "detail": "low"}})
thinking = block("thinking", thinking=texts, signature=st.sampled_from(["", "EqQB" * 40])) | block(
    "redacted_thinking", data=st.just("EmwK" * 40)
)
uses = block("tool_use", id=call_ids, name=st.sampled_from(["search", "srv.find", "n" * 150]), input=objects)
result_contents = st.one_of(texts, st.none(), st.lists(st.one_of(text_blocks, images, documents), max_size=3))
results = block(
    "tool_result", tool_use_id=call_ids, content=result_contents, is_error=st.sampled_from([None, True, False])
)
functions = st.builds(
    lambda call_id, arguments: {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}},
    call_ids,
    st.one_of(objects.map(json.dumps), texts),
)

common = {
    "id": st.none() | st.sampled_from(["D1:3", "会话 7"]),
    "name": st.none() | st.just("Caroline"),
    "ts": st.none() | st.just("2023-05-08T13:56:00") | st.just(1683554160.5),
    "metadata": st.none() | objects,
    "usage": st.none() | st.just({"input_tokens": 5, "cache_read_input_tokens": None}),
}


def turn_of(
    role: str, content: st.SearchStrategy[Any], **more: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    required = {"role": st.just(role), "content": content, **more}
    return st.fixed_dictionaries(required, optional=common).flatmap(
        lambda members: st.permutations(list(members.items())).map(dict)
    )


turns = st.one_of(
    turn_of("user", texts),
    turn_of("assistant", texts),
    turn_of("system", texts | st.lists(text_blocks, max_size=2)),
    turn_of("user", st.lists(st.one_of(text_blocks, images, documents, image_urls), max_size=4)),
    turn_of("user", st.lists(st.one_of(results, results, text_blocks, images), max_size=5)),
    turn_of("assistant", st.lists(st.one_of(text_blocks, images, thinking, uses, uses), max_size=5)),
    turn_of("assistant", st.none() | texts, tool_calls=st.lists(functions, max_size=3)),
    turn_of("tool", texts | st.none() | st.lists(text_blocks, max_size=2), tool_call_id=call_ids),
)


def prepare(raw: object) -> PreparedTurn:
    return prepare_turn(raw, 0, load_counter(), lambda: "made-id")


def outcome(raw: object) -> PreparedTurn | InvalidInputError:
    try:
        return prepare(raw)
    except InvalidInputError as refusal:
        return refusal


def accepted(raw: object) -> PreparedTurn:
    turn = outcome(raw)
    if isinstance(turn, InvalidInputError):
        event(f"refused: {turn.code}")
        assume(False)
        raise turn
    event(f"accepted: {turn.kind.name} {turn.verbatim}")
    return turn


relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


@relaxed
@given(raw=turns)
def test_the_log_gives_every_turn_back(raw: dict[str, Any]) -> None:
    raw = parse_json(json.dumps(raw).encode())
    turn = accepted(raw)
    restored = json.loads(restore_turn(turn.envelope, turn.verbatim, turn.content, 12))
    expected = {**raw, "id": turn.id} if "id" in raw else {"id": turn.id, **raw}
    assert json.dumps(restored) == json.dumps({"seq": 12, **expected})


@relaxed
@given(raw=turns)
def test_publishing_again_in_another_order_has_the_same_digest(raw: dict[str, Any]) -> None:
    turn = accepted(raw)
    again = prepare(dict(reversed({**raw, "id": "other", "ts": "2024-01-01"}.items())))
    assert again.digest == turn.digest
    assert (again.tokens, again.content, again.pieces, again.results) == (
        turn.tokens,
        turn.content,
        turn.pieces,
        turn.results,
    )


@relaxed
@given(raw=turns)
def test_raw_tokens_are_never_less_than_what_the_context_shows(raw: dict[str, Any]) -> None:
    turn = accepted(raw)
    for late in (False, True):
        assert count_blocks(content_of(turn, late=late)) <= turn.tokens
        assert count_blocks(content_of(turn, late=late, short=True)) <= turn.short_tokens
    if turn.kind in (TurnKind.PLAIN, TurnKind.SYSTEM) and not turn.has_thinking:
        assert count_blocks(content_of(turn)) == turn.tokens


@relaxed
@given(raw=turns)
def test_a_short_form_is_shorter_and_within_its_budget(raw: dict[str, Any]) -> None:
    turn = accepted(raw)
    items = max(len(turn.call_ids), len(turn.results))
    assert turn.short_tokens <= max(SHORT_TOKENS, 120 * items)
    assert turn.short_tokens <= turn.tokens
    if not turn.has_short:
        assert turn.short is None
        assert turn.short_pieces == ()
        assert all(part.short is None for part in turn.results)
    short = json.loads(b"[" + content_of(turn, short=True) + b"]")
    assert "base64" not in json.dumps(short) or turn.tokens <= SHORT_TOKENS


def count_blocks(content: bytes) -> int:
    """The data model's count, written down a second time; flat for media, nothing for thinking, which has no exact count."""
    count = load_counter().count
    total = 4
    for one in json.loads(b"[" + content + b"]"):
        if one["type"] == "text":
            total += 3 + count(one["text"])
        elif one["type"] in ("image", "document"):
            total += 3 + _media(one)
        elif one["type"] == "tool_use":
            total += 3 + count(_compact(one))
        elif one["type"] == "tool_result":
            inner = one["content"] if isinstance(one["content"], list) else []
            media = [part for part in inner if part["type"] != "text"]
            seen = {**one, "content": [part for part in inner if part["type"] == "text"] if inner else one["content"]}
            total += 3 + count(_compact(seen)) + sum(3 + _media(part) for part in media)
    return total


def _media(one: dict[str, Any]) -> int:
    count = load_counter().count
    return 1_600 if one["type"] == "image" else 3_200 + count(one.get("title", ""))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def content_of(turn: PreparedTurn, *, late: bool = False, short: bool = False) -> bytes:
    """Blocks of a turn on its own, as the append script joins them."""
    if turn.kind is TurnKind.CALLS:
        return join_calls(turn, turn.call_ids, short=short)
    place: Callable[..., bytes] = markers.late_result_blocks if late else markers.result_block
    plain = turn.short if short and turn.short is not None else turn.content
    placed = [place(part, short=short and turn.has_short) for part in turn.results]
    return b",".join([*placed, *([plain] if plain else [])])


def join_calls(turn: PreparedTurn, ids: Sequence[str], *, short: bool = False) -> bytes:
    pieces = turn.short_pieces if short and turn.short_pieces else turn.pieces
    return pieces[0] + b"".join(call_id.encode() + piece for call_id, piece in zip(ids, pieces[1:], strict=True))


class Window:
    """The append script's rules for tool rounds, in a few lines, to make contexts of the turns."""

    def __init__(self, *, short: bool) -> None:
        self.short = short
        self.lines: list[bytes] = []
        self.system = ""
        self.open: list[str] = []
        self.used: set[str] = set()
        self.renamed: dict[str, str] = {}

    def add(self, turn: PreparedTurn) -> None:
        if turn.kind is TurnKind.SYSTEM and not self.lines:
            self.system += json.loads(b'"' + turn.system_text + b'"') + "\n"
            return
        if not self.lines and turn.role == "assistant":
            self.line("user", markers.OPENER)
        if turn.kind is TurnKind.RESULTS:
            self.add_results(turn)
            return
        self.close()
        if turn.kind is TurnKind.CALLS:
            self.open = [self.rename(call_id) for call_id in turn.call_ids]
            self.line("assistant", join_calls(turn, self.open, short=self.short))
        else:
            self.line(turn.role, content_of(turn, short=self.short))

    def add_results(self, turn: PreparedTurn) -> None:
        short = self.short and turn.has_short
        placed: dict[str, bytes] = {}
        late: list[bytes] = []
        for part in turn.results:
            call_id = self.renamed.get(part.call_id, part.call_id)
            if call_id in self.open:
                result = markers.result_block(part, short=short)
                placed[call_id] = result.replace(part.call_id.encode(), call_id.encode(), 1)
            else:
                late.append(markers.late_result_blocks(part, short=short))
        self.open, answered = [i for i in self.open if i not in placed], [placed[i] for i in self.open if i in placed]
        plain = turn.short if short and turn.short is not None else turn.content
        rest = [*late, *([plain] if plain else [])]
        if rest and self.open:
            answered += map(markers.closer_block, self.open)
            self.open = []
        self.line("user", b",".join([*answered, *rest]))

    def rename(self, call_id: str) -> str:
        name = call_id if call_id not in self.used else f"{call_id[:50]}_{len(self.lines)}"
        self.renamed[call_id] = name
        self.used |= {call_id, name}
        return name

    def close(self) -> None:
        if self.open:
            self.line("user", b",".join(map(markers.closer_block, self.open)))
            self.open = []

    def line(self, role: Role, content: bytes) -> None:
        self.lines.append(
            b'{"role":"%s","seq":%d,"tokens":1,"content":[%s]}\n' % (role.encode(), len(self.lines), content)
        )

    def fragments(self) -> list[Fragment]:
        return parse_lines(b'{"version":1         ,"covers_to":0}\n' + b"".join(self.lines))[1]


@relaxed
@given(raws=st.lists(turns, min_size=1, max_size=12), short=st.booleans())
def test_a_context_of_any_turns_is_valid_for_both_providers_after_each(raws: list[dict[str, Any]], short: bool) -> None:
    window = Window(short=short)
    for raw in raws:
        turn = outcome(parse_json(json.dumps(raw).encode()))
        if isinstance(turn, InvalidInputError):
            continue
        window.add(turn)
        fragments = window.fragments()
        messages = anthropic_messages(fragments)
        assert check_anthropic(messages, window.system) == []
        assert json.loads(anthropic_messages_json(fragments)) == messages
        openai = openai_messages(fragments, window.system)
        assert check_openai(openai) == []
    event(f"messages: {len(window.lines)}")


@settings(deadline=None, max_examples=300)
@given(
    raw=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "role",
                        "content",
                        "type",
                        "text",
                        "id",
                        "source",
                        "input",
                        "name",
                        "tool_calls",
                        "usage",
                        "tool_use_id",
                        "data",
                    ]
                ),
                inner
                | st.sampled_from(
                    ["user", "assistant", "tool", "text", "image", "tool_use", "tool_result", "document"]
                ),
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_no_value_at_all_breaks_the_door(raw: object) -> None:
    turn = outcome(raw)
    if isinstance(turn, InvalidInputError):
        assert turn.field is not None
        assert turn.field.startswith("turns[0]")


@relaxed
@given(raw=turns)
def test_a_refusal_names_its_place(raw: dict[str, Any]) -> None:
    turn = outcome(raw)
    assume(isinstance(turn, InvalidInputError))
    assert isinstance(turn, InvalidInputError)
    assert turn.field is not None
    assert turn.field.startswith("turns[0].")
