"""Random stored contexts, made as the scripts make them, without a server."""

import random
from dataclasses import dataclass, field

import orjson

from prefold.conversation import prepare_turn
from prefold.conversation.markers import (
    FRAGMENT_TOKENS,
    GAP_TOKENS,
    OPENER,
    OPENER_TOKENS,
    closer_block,
    gap_block,
    result_block,
)
from prefold.conversation.turns import PreparedTurn
from prefold.storage.types import SessionRef, StoredContext
from prefold.tokens import load_counter

WORDS = (
    'order refund parcel the a to Berlin LF-4827-19306 2026-09-08 café naïve 👩‍👧 東京 مرحبا <|endoftext|> {} \\ " \n '
    "yes no because window budget 3000$ def f(x): return error_code=ENOENT https://example.org/a?b=c"
).split(" ")
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


def some_text(rng: random.Random, most_words: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, most_words)))


@dataclass
class ContextMaker:
    """Appends turns to a context string; every turn's text begins with ``T<seq>:``."""

    rng: random.Random
    most_words: int = 200
    lines: list[bytes] = field(default_factory=list)
    seq: int = 0
    covers_to: int = 0
    open_calls: tuple[str, ...] = ()

    def line(self, role: str, seq: int, part: str, tokens: int, content: bytes) -> None:
        named = f'"part":"{part}",' if part else ""
        head = f'{{"role":"{role}","seq":{seq},{named}"tokens":{tokens},"content":['
        self.lines.append(head.encode() + content + b"]}")

    def head(self) -> None:
        """A summary and what stands beside it, covering some turns."""
        self.covers_to = self.seq = self.rng.randint(1, 60)
        parts = [part for part in ("first_message", "task", "ledger") if self.rng.random() < 0.6]
        if self.rng.random() < 0.9:
            parts.append("summary")
        for part in parts:
            text = f"[Prefold: {part}]\n" + "\n".join(some_text(self.rng, 12) for _ in range(self.rng.randint(1, 40)))
            turn = self.prepared({"role": "user", "content": text})
            self.line("user", 0, part, turn.tokens, turn.content)
        if "summary" not in parts or self.rng.random() < 0.2:
            first = self.covers_to + 1 if "summary" in parts else 1
            self.seq += self.rng.randint(1, 9)
            self.line("user", self.seq, "gap", GAP_TOKENS, gap_block(first, self.seq))

    def prepared(self, turn: dict[str, object]) -> PreparedTurn:
        return prepare_turn(turn, 0, load_counter(), lambda: "made")

    def text(self) -> str:
        return f"T{self.seq}: {some_text(self.rng, self.most_words)}"

    def plain(self, role: str) -> None:
        self.seq += 1
        content: object = self.text()
        if role == "user" and self.rng.random() < 0.1:
            content = [{"type": "text", "text": content}, IMAGE]
        turn = self.prepared({"role": role, "content": content})
        self.line(role, self.seq, "", turn.tokens, turn.content)

    def calls(self) -> tuple[str, ...]:
        self.seq += 1
        ids = tuple(f"c{self.seq}_{number}" for number in range(self.rng.choice((1, 1, 1, 2, 3, 12))))
        blocks: list[dict[str, object]] = [{"type": "text", "text": self.text()}]
        if self.rng.random() < 0.3:
            thought: dict[str, object] = {
                "type": "thinking",
                "thinking": some_text(self.rng, 80),
                "signature": "s" * 200,
            }
            blocks.insert(0, thought)
        for call_id in ids:
            given = {"T": f"T{self.seq}:", "q": some_text(self.rng, 30), "none": []}
            blocks.append({"type": "tool_use", "id": call_id, "name": "look_up", "input": given})
        turn = self.prepared({"role": "assistant", "content": blocks})
        content = turn.pieces[0] + b"".join(
            call_id.encode() + piece for call_id, piece in zip(ids, turn.pieces[1:], strict=True)
        )
        self.line("assistant", self.seq, "", turn.tokens, content)
        return ids

    def results(self, ids: tuple[str, ...]) -> None:
        self.seq += 1
        blocks = [{"type": "tool_result", "tool_use_id": call_id, "content": self.text()} for call_id in ids]
        turn = self.prepared({"role": "user", "content": blocks})
        self.line("user", self.seq, "", turn.tokens, b",".join(result_block(part) for part in turn.results))

    def closer(self, ids: tuple[str, ...]) -> None:
        """What a plain turn after an open round is stored with."""
        content = b",".join(closer_block(call_id) for call_id in ids)
        self.line("user", self.seq + 1, "closer", FRAGMENT_TOKENS + 40 * len(ids), content)

    def round(self) -> None:
        ids = self.calls()
        answered = self.rng.randint(0, len(ids)) if self.rng.random() < 0.3 else len(ids)
        if answered:
            self.results(ids[:answered])
        if ids[answered:]:
            self.closer(ids[answered:])
            self.plain("user")

    def tail(self) -> None:
        """The newest turns: plain, or a round that is open, half open or complete."""
        kind = self.rng.choice(("user", "user", "assistant", "open", "half", "done"))
        if kind in ("user", "assistant"):
            self.plain(kind)
            return
        ids = self.calls()
        answered = {"open": 0, "half": len(ids) // 2, "done": len(ids)}[kind]
        if answered:
            self.results(ids[:answered])
        self.open_calls = ids[answered:]

    def stored(self, limit: int, calibration: float, system: str = "", tools_tokens: int = 0) -> StoredContext:
        header = b'{"version":7         ,"format":1,"covers_to":%d,"head_tokens":0}' % self.covers_to
        return StoredContext(
            ref=SessionRef("t", "s", "i"),
            body=b"\n".join([header, *self.lines, b""]),
            version=7,
            covers_to=self.covers_to,
            head_seq=self.seq,
            status="ok",
            system=system,
            system_tokens=load_counter().count(system) if system else 0,
            tools_tokens=tools_tokens,
            calibration=calibration,
            hard_limit_tokens=limit,
            model="",
            open_calls=self.open_calls,
            degraded=False,
            user="",
        )


def random_context(seed: int) -> StoredContext:
    """A stored context of any shape: with and without head, opener, gaps, rounds, and of any size."""
    rng = random.Random(seed)
    maker = ContextMaker(rng, most_words=rng.choice((5, 40, 200, 1500)))
    if rng.random() < 0.5:
        maker.head()
    elif rng.random() < 0.2:
        maker.line("user", 0, "opener", OPENER_TOKENS, OPENER)
        maker.plain("assistant")
    for _ in range(rng.randint(0, 30)):
        rng.choice((lambda: maker.plain("user"), lambda: maker.plain("assistant"), maker.round))()
        if len(maker.lines) == 1 and b'"assistant"' in maker.lines[0]:
            maker.lines.insert(0, opener_line())
    maker.tail()
    if b'"role":"assistant"' in maker.lines[0][:20]:
        maker.lines.insert(0, opener_line())
    system = some_text(rng, rng.choice((30, 3000))) if rng.random() < 0.6 else ""
    limit = rng.choice((1000, 2000, 8000, 32_000, 200_000))
    return maker.stored(limit, rng.choice((1.0, 1.0, 1.1, 1.234, 2.5, 4.0)), system, rng.choice((0, 0, 50, 900)))


def opener_line() -> bytes:
    return b'{"role":"user","seq":0,"part":"opener","tokens":%d,"content":[%s]}' % (OPENER_TOKENS, OPENER)


def recount(messages: bytes, system: str) -> int:
    """Raw tokens of what is served, counted by another rule than the assembly's: from the messages alone."""
    count = load_counter().count
    total = count(system) if system else 0
    for message in orjson.loads(messages):
        total += FRAGMENT_TOKENS
        for block in message["content"]:
            total += 3 + _block_tokens(block)
    return total


def _block_tokens(block: dict[str, object]) -> int:
    count = load_counter().count
    if block["type"] == "text":
        return count(str(block["text"]))
    if block["type"] == "image":
        return 1600
    if block["type"] == "thinking":
        return count(str(block["thinking"]))
    return count(orjson.dumps(block).decode())
