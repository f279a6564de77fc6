"""What is said in a session: of every kind that a chat backend publishes, each turn with a mark of its own."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from prefold.client.results import JsonObject

Publication = list[JsonObject]
"""The turns of one call."""

MARK = re.compile(r"\(t(\d+)\.s(\d+)\.(\d+)\.(\d+)\)")
"""Tenant, session, life and seq of the turn whose text begins with it."""

HOME = re.compile(r"I live in (Port Kelso\d+)\.")
"""Where the user of the session lives."""

_NAMES = ["Maria", "Ahmed", "Yuki", "Åsa", "Li Wei", "Noor", "Tomás"]
_CITIES = ["Lyon", "Berlin", "Osaka", "São Paulo", "Tromsø"]
_SENTENCES = [
    "Order LF-{n}-{m} for {name} goes to {city} on 2026-0{d}-1{d}.",
    "Please remember that {name} wants no calls before {d} o'clock.",
    "{name} paid {n}.{d}0 euros, the receipt is R{m}.",
    "The build failed with error_code=E{n} in /srv/app/{m}.py, line {d}.",
    "No, the address is {n} Main Street, {city}, not the one from before.",
    "Can you tell me why parcel {m} still waits in {city}?",
    "I decided against {city}: the train takes {d} hours.",
    "東京の{name}さんは{n}円を払いました。",
    "مرحبا {name}، الطلب {m} في {city} 👩‍👧.",
    'It held {d} cups and a note: "<|endoftext|> {{ok}} \\\\ done".',
    "Mail anna.{n}@example.org when all of it has come.",
]
_THOUGHT = "The user wants to know where it is, so I look it up first."
_IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


@dataclass
class Author:
    """Writes one life of one session. The same random source gives the same words."""

    rng: random.Random
    tenant: int
    session: int
    life: int = 0
    written: int = 0

    def publications(self, turns: int) -> Iterator[Publication]:
        """Calls that publish ``turns`` turns in all."""
        last = self.written + turns
        if not self.written and self.rng.random() < 0.2:
            yield [self._turn("system", f"You serve the customers of {self.rng.choice(_CITIES)}.")]
        while self.written < last:
            for publication in self._scene():
                room = last - self.written
                yield [self._named(turn) for turn in publication[:room]]
                if room <= len(publication):
                    return

    def _scene(self) -> list[list[JsonObject]]:
        """Some calls that belong together; their turns have no id and no mark yet."""
        kinds = {
            self._exchange: 45,
            self._batch: 12,
            self._round: 14,
            self._openai_round: 10,
            self._unanswered: 5,
            self._long: 6,
            self._picture: 2,
            self._remark_of_the_system: 1,
            self._home: 6,
        }
        return self.rng.choices(list(kinds), list(kinds.values()))[0]()

    def _exchange(self) -> list[list[JsonObject]]:
        return [[self._plain("user")], [self._plain("assistant")]]

    def _batch(self) -> list[list[JsonObject]]:
        roles = self.rng.choices(["user", "user", "assistant"], k=self.rng.randint(2, 6))
        return [[self._plain(role) for role in roles]]

    def _round(self) -> list[list[JsonObject]]:
        """Calls and their results in Anthropic's form, published apart or together."""
        ids = self._call_ids()
        calls: list[JsonObject] = [{"type": "text", "text": self._text(1)}, *map(self._call, ids)]
        if self.rng.random() < 0.15:
            calls.insert(0, {"type": "thinking", "thinking": _THOUGHT, "signature": "c2lnbmVk" * 8})
        results = [self._result(one) for one in ids]
        turns: list[JsonObject] = [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
        return [turns] if self.rng.random() < 0.3 else [[turn] for turn in turns]

    def _openai_round(self) -> list[list[JsonObject]]:
        """The same in OpenAI's form: a turn for each result."""
        ids = self._call_ids()
        calls = [
            {"id": one, "type": "function", "function": {"name": "look_up", "arguments": json.dumps({"n": one})}}
            for one in ids
        ]
        turns: list[JsonObject] = [{"role": "assistant", "content": self._text(1), "tool_calls": calls}]
        turns += [{"role": "tool", "tool_call_id": one, "content": self._text(3)} for one in ids]
        return [[turn] for turn in turns]

    def _unanswered(self) -> list[list[JsonObject]]:
        """A call that the user speaks into; sometimes its result comes late."""
        ids = self._call_ids()
        blocks = [{"type": "text", "text": self._text(1)}, *map(self._call, ids)]
        scene: list[list[JsonObject]] = [[{"role": "assistant", "content": blocks}], [self._plain("user")]]
        if self.rng.random() < 0.5:
            scene.append([{"role": "user", "content": [self._result(ids[0])]}])
        return scene

    def _long(self) -> list[list[JsonObject]]:
        """A turn as large as a small limit, or larger."""
        return [[{"role": self.rng.choice(["user", "assistant"]), "content": self._text(self.rng.randint(20, 70))}]]

    def _picture(self) -> list[list[JsonObject]]:
        words = [{"type": "text", "text": self._text(1)}] if self.rng.random() < 0.5 else []
        return [[{"role": "user", "content": [*words, _IMAGE]}]]

    def _remark_of_the_system(self) -> list[list[JsonObject]]:
        return [[{"role": "system", "content": self._text(1)}]]

    def _home(self) -> list[list[JsonObject]]:
        """A fact; no two are the same."""
        return [[{"role": "user", "content": f"By the way. I live in Port Kelso{self.rng.randrange(10**9)}."}]]

    def _plain(self, role: str) -> JsonObject:
        text = self._text(self.rng.choice((1, 1, 2, 3, 5)))
        return {"role": role, "content": text if self.rng.random() < 0.8 else [{"type": "text", "text": text}]}

    def _call_ids(self) -> list[str]:
        """One to three; recorded conversations use an id again now and then."""
        few = self.rng.random() < 0.2
        return [f"call_{n}" for n in self.rng.sample(range(4 if few else 10**9), self.rng.choice((1, 1, 2, 3)))]

    def _call(self, call_id: str) -> JsonObject:
        return {"type": "tool_use", "id": call_id, "name": "look_up", "input": {"n": self.rng.randrange(10**6)}}

    def _result(self, call_id: str) -> JsonObject:
        return {"type": "tool_result", "tool_use_id": call_id, "content": self._text(self.rng.choice((1, 3, 25)))}

    def _text(self, sentences: int) -> str:
        rng = self.rng
        return " ".join(
            rng.choice(_SENTENCES).format(
                n=rng.randrange(1000, 9999),
                m=rng.randrange(10_000, 99_999),
                d=rng.randint(1, 9),
                name=rng.choice(_NAMES),
                city=rng.choice(_CITIES),
            )
            for _ in range(sentences)
        )

    def _turn(self, role: str, content: object) -> JsonObject:
        return self._named({"role": role, "content": content})

    def _named(self, turn: JsonObject) -> JsonObject:
        """The turn with its id, and its mark before the first words; one without words gets none."""
        self.written += 1
        place = f"t{self.tenant}.s{self.session}.{self.life}.{self.written}"
        return {"id": place, **turn, "content": _marked(turn["content"], f"({place})")}


def _marked(content: Any, mark: str) -> Any:
    """Marks the first text of ``content``, or the first result's."""
    if isinstance(content, str):
        return f"{mark} {content}"
    blocks = [dict(block) for block in content]
    for block in blocks:
        member = {"text": "text", "tool_result": "content"}.get(block["type"])
        if member:
            block[member] = f"{mark} {block[member]}"
            break
    return blocks


def has_mark(turn: JsonObject) -> bool:
    """False for a picture without words."""
    return bool(MARK.search(json.dumps(turn["content"])))
