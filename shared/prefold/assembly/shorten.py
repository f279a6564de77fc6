"""The newest turn made to fit, and texts cut to a room. Tokens are raw."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

from prefold.assembly.groups import Group, blocks_of
from prefold.conversation.blocks import (
    CALL_HEAD,
    Block,
    CallBlock,
    PlainBlock,
    ResultBlock,
    ThinkingBlock,
    call_block,
    result_of_text,
    text_block,
)
from prefold.conversation.clipping import clip
from prefold.conversation.markers import BLOCK_TOKENS, FRAGMENT_TOKENS, RESULT_HEAD, left_out_text
from prefold.conversation.project import Fragment
from prefold.conversation.published import Place, read_blocks
from prefold.conversation.turns import Role
from prefold.tokens import TokenCounter

LEAST_TEXT_TOKENS = 12
"""A clipped text is never asked to be shorter: its own mark takes nearly that."""
JOINT_TOKENS = 2
"""Of the blank line between the system prompt and what follows it."""
_BARE = "[…]"
_MEDIA = re.compile(rb'"type":\s?"(?:image|document)"')
_MOST_REMEMBERED_CHARS = 8_000
_SET_IN = "    "
"""Before further lines of one entry of a pinned state."""
_LEAST_LINES = 3
"""Two marks and something between them."""
_MARKER_TEXT = "[Prefold: turns {first}-{last} do not fit here as they are. They begin:]"

_Read = tuple[Fragment, list[Block]]


@dataclass(frozen=True, slots=True)
class Shortened:
    """A group in a shorter form."""

    group: Group
    is_marker: bool
    """The form is plain text that stands for the group: its calls are not in it."""


class Shortener:
    """Cuts texts and groups to a room, the same way every time."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    @property
    def adds_up(self) -> bool:
        """See ``TokenCounter``."""
        return self._counter.adds_up

    def count(self, text: str) -> int:
        """Tokens of a text. The same profile is counted for every read of a session."""
        if len(text) > _MOST_REMEMBERED_CHARS:
            return self._counter.count(text)
        return _counted(self._counter, text)  # type: ignore[arg-type]  # a counter equals itself alone

    def cut_text(self, text: str, room: int) -> tuple[str, int]:
        """The text or its head and tail within ``room`` tokens (of text alone), and what that counts."""
        shorter, tokens = clip(text, self._counter.count(text), room, self._counter.count)
        return (shorter, tokens) if tokens <= room else (_BARE, self._counter.count(_BARE))

    def cut_entries(self, text: str, room: int) -> tuple[str, int]:
        """The first and the last lines of a text within ``room`` tokens, each of them whole, and what that counts.

        Not even two of them with a marker in between have room: then as ``cut_text``.
        """
        lines, count = text.splitlines(), self._counter.count
        most = len(lines) - _LEAST_LINES + 1

        def without(gone: int) -> str:
            kept = len(lines) - gone
            head = max(1, kept * 2 // 3)
            left_out = count("\n".join(lines[head : head + gone]))
            return "\n".join([*lines[:head], left_out_text(left_out), *lines[head + gone :]])

        gone = 1 + bisect_left(range(1, most + 1), True, key=lambda gone: count(without(gone)) <= room)
        shorter = without(gone) if 0 < gone <= most else ""
        return (shorter, count(shorter)) if shorter else self.cut_text(text, room)

    def cut_lines(self, text: str, room: int) -> tuple[str, int]:
        """A text between two marks within ``room`` tokens, its last entries gone, and what it counts with what joins it."""
        lines = text.splitlines()
        while len(lines) > _LEAST_LINES:
            _drop_last_entry(lines)
            kept = "\n".join(lines)
            tokens = self._counter.count(kept) + JOINT_TOKENS
            if len(lines) >= _LEAST_LINES and tokens <= room:
                return kept, tokens
        return "", 0

    def text_fragment(self, role: Role, seq: int, part: str, text: str) -> Fragment:
        """A fragment of one text block."""
        block = text_block(text, self)
        return Fragment(role, seq, part, FRAGMENT_TOKENS + block.tokens, block.json)

    def cut_fragment(self, fragment: Fragment, room: int) -> Fragment:
        """A fragment of the head as one text block within ``room`` tokens, overheads included."""
        text = "\n".join(block.brief for block in self._read(fragment) if isinstance(block, PlainBlock))
        cut = self.cut_entries if fragment.part == "ledger" else self.cut_text
        shorter, _ = cut(text, room - FRAGMENT_TOKENS - BLOCK_TOKENS)
        return self.text_fragment(fragment.role, fragment.seq, fragment.part, shorter)

    def shorten(self, group: Group, room: int) -> Shortened | None:
        """The group within ``room``: texts clipped, or a marker in its place; ``None`` if not even that fits."""
        read = [(fragment, self._read(fragment)) for fragment in group.fragments]
        each = max(LEAST_TEXT_TOKENS, room // max(1, sum(len(blocks) for _, blocks in read)))
        while True:
            shorter = self._with_texts_of(read, each)
            if shorter.tokens <= room:
                return Shortened(shorter, is_marker=False)
            if each == LEAST_TEXT_TOKENS:
                return self._marker(group, read, room)
            each = max(LEAST_TEXT_TOKENS, each // 2)

    def without_media(self, group: Group) -> Group:
        """The group with the placeholders of its images and documents in their places; itself without any."""
        if not any(_MEDIA.search(fragment.content) for fragment in group.fragments):
            return group
        return Group.of([self._without_media(fragment) for fragment in group.fragments])

    def _without_media(self, fragment: Fragment) -> Fragment:
        if not _MEDIA.search(fragment.content):
            return fragment
        blocks = [self._placeholder(block) for block in self._read(fragment)]
        tokens = FRAGMENT_TOKENS + sum(block.tokens for block in blocks)
        content = b",".join(_json_of(block) for block in blocks)
        if tokens >= fragment.tokens:
            return fragment
        return fragment._replace(part=_short_part(fragment), tokens=tokens, content=content)

    def _placeholder(self, block: Block) -> Block:
        if isinstance(block, PlainBlock) and block.media_tokens:
            return text_block(block.brief, self._counter)
        if isinstance(block, ResultBlock) and not block.is_text and _MEDIA.search(block.content):
            return result_of_text(block.call_id, block.attributes, block.brief, self._counter)
        return block

    def _read(self, fragment: Fragment) -> list[Block]:
        return read_blocks(blocks_of(fragment), Place("content", fragment.role, self._counter))

    def _with_texts_of(self, read: list[_Read], each: int) -> Group:
        shortened: list[Fragment] = []
        for fragment, blocks in read:
            shorter = [kept for block in blocks if (kept := self._shorten_block(block, each)) is not None]
            shorter = shorter or [text_block(_BARE, self._counter)]
            tokens = FRAGMENT_TOKENS + sum(block.tokens for block in shorter)
            content = b",".join(_json_of(block) for block in shorter)
            shortened.append(Fragment(fragment.role, fragment.seq, _short_part(fragment), tokens, content))
        return Group.of(shortened)

    def _shorten_block(self, block: Block, each: int) -> Block | None:
        counter = self._counter
        if isinstance(block, PlainBlock):
            return text_block(self.cut_text(block.brief, each)[0], counter)
        if isinstance(block, ResultBlock):
            return result_of_text(block.call_id, block.attributes, self.cut_text(block.brief, each)[0], counter)
        if isinstance(block, ThinkingBlock):
            return block if block.tokens <= each else None
        text = block.input.decode()
        if counter.count(text) <= each:
            return block
        name = block.name.decode()[1:-1]
        return call_block(block.call_id, name, {"_clipped": self.cut_text(text, each)[0]}, counter)

    def _marker(self, group: Group, read: list[_Read], room: int) -> Shortened | None:
        head = _MARKER_TEXT.format(first=group.first_seq, last=group.last_seq)
        text = "\n".join(_brief_of(block) for _, blocks in read for block in blocks)
        left = room - FRAGMENT_TOKENS - BLOCK_TOKENS - self._counter.count(head) - 2
        candidates = [head, _BARE]
        if left >= LEAST_TEXT_TOKENS:
            candidates.insert(0, f"{head}\n{self.cut_text(text, left)[0]}")
        for candidate in candidates:
            fragment = self.text_fragment("user", group.last_seq, "short", candidate)
            if fragment.tokens <= room:
                return Shortened(Group.of((fragment,)), is_marker=True)
        return None


@lru_cache(maxsize=256)
def _counted(counter: TokenCounter, text: str) -> int:
    return counter.count(text)


def _short_part(fragment: Fragment) -> str:
    return fragment.part if fragment.part in ("opener", "closer") else "short"


def _drop_last_entry(lines: list[str]) -> None:
    """Takes the last entry before the closing mark away: all its lines, and a heading that has none left."""
    end = lines.pop()
    while lines.pop().startswith(_SET_IN):
        pass
    while len(lines) > 1 and lines[-1].endswith(":") and not lines[-1].startswith(("- ", _SET_IN)):
        lines.pop()
    lines.append(end)


def _json_of(block: Block) -> bytes:
    if isinstance(block, CallBlock):
        return CALL_HEAD + block.call_id.encode() + block.tail
    if isinstance(block, ResultBlock):
        content = block.content if block.is_text else b"[" + block.content + b"]"
        return RESULT_HEAD + block.call_id.encode() + b'"' + block.attributes + b',"content":' + content + b"}"
    return block.json


def _brief_of(block: Block) -> str:
    if isinstance(block, CallBlock):
        return f"{block.name.decode()[1:-1]}({block.input.decode()})"
    return "" if isinstance(block, ThinkingBlock) else block.brief
