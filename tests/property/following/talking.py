"""A real session, its turns and its ends, each step judged by the model."""

import random
from collections import Counter

from prefold.storage import Sessions
from prefold.storage.keys import SessionKeys
from prefold.storage.types import SessionOptions
from tests.property.following.abstraction import Known, Seen, look
from tests.property.following.judging import Judge, same
from tests.property.histories.author import Author, Raw
from tests.property.histories.backend import prepared
from tests.property.histories.held import TENANT
from tests.property.histories.snapshot import own_keys
from tests.property.histories.wire import Wire
from tests.property.protocol_model.state import State

SESSION = "s1"
WORDS = (1, 30, 60, 120, 120, 200)
LIMITS = (1000, 1000, 1300, 1800)


class Talking:
    """What one walk stands on. ``judge.calls`` and ``judge.thinking``: of its turns with calls."""

    def __init__(self, sessions: Sessions, wire: Wire, seed: int, reached: Counter[str]) -> None:
        self.rng = random.Random(seed)
        self.sessions = sessions
        self.wire = wire
        self.reached = reached
        self.judge = Judge(self.rng.choice((1, 1, 2)), thinking=self.rng.random() < 0.3)
        self.author = Author()
        self.known = Known()
        self.keys = SessionKeys.of(TENANT, SESSION)
        self.raws: dict[int, Raw] = {}
        self.call_ids = 0
        self.before = Seen(State(exists=False, life=0), None)
        """The session before the step, or before its last script call when something came between."""
        self.came_after: int | None = None
        """Script calls of the step before something came between."""
        self.earlier_marks: dict[str, tuple[int, int]] = {}
        """Of ``known``, before something last came between."""
        self.is_between = False
        self.interrupted = ""
        """The script call that it came before."""

    async def look(self) -> Seen:
        return await look(self.sessions, SESSION, self.known)

    def count(self, what: str) -> None:
        self.reached[what] += 1

    async def create(self) -> None:
        options = SessionOptions(hard_limit_tokens=LIMITS[0], soft_ratio=0.4, keep_recent_turns=1)
        await self.sessions.open(TENANT, SESSION, options)
        before = self.before.state
        seen = await self.look()
        same("a new life", seen.state.life, max(before.life, len(self.known.lives) - 1) + 1)
        self.raws = {}

    async def append(self, kind: str = "", count: int = 0) -> None:
        """A turn that the model knows: no words beside results, and calls only while the round before has a result."""
        before = await self.look()
        real = before.real
        assert real is not None
        waiting = real.state.open_calls
        kinds = "uuaa" + ("rrrr" if waiting else "") + "l" + ("cc" if not waiting or real.state.answered else "")
        kind, count = kind or self.rng.choice(kinds), count or self.rng.choice(WORDS)
        await self.publish(kind, self.turn(kind, count, waiting), before)

    async def publish(self, kind: str, raw: Raw, before: Seen) -> None:
        seq = before.state.head_seq + 1
        await self.sessions.append(TENANT, SESSION, [prepared(raw)])
        self.raws[seq] = raw
        self.known.marks[_mark_in(raw)] = (seq, 1)
        after = await self.look()
        self.judge.append(before, kind, after)
        self.count(f"append {kind}" + (", swaps" if after.state.active != before.state.active else ""))

    def turn(self, kind: str, count: int, waiting: tuple[str, ...]) -> Raw:
        match kind:
            case "c":
                ids = [f"c{self.call_ids + number}" for number in range(self.judge.calls)]
                self.call_ids += self.judge.calls
                return self.author.calls(ids, count, thinks=self.judge.thinking)
            case "r":
                return self.author.results([waiting[0]], count, text=False)
            case "l":
                return self.author.results(["nobody"], count, text=False)
        return self.author.plain("user" if kind == "u" else "assistant", count)

    async def relive(self, *, alike: bool) -> None:
        """Erased and created again; ``alike``: what was said in plain words is said again under the same ids."""
        said = [raw for raw in self.raws.values() if alike and isinstance(raw["content"], str)]
        await self.erase()
        self.before = await self.look()
        await self.create()
        for raw in said[:8]:
            await self.publish(raw["role"][0], raw, await self.look())

    async def limit(self) -> None:
        ratio = self.rng.choice((0.4, 0.6, 0.85))
        options = SessionOptions(hard_limit_tokens=self.rng.choice(LIMITS), soft_ratio=ratio)
        await self.sessions.open(TENANT, SESSION, options)
        self.judge.limit(self.before, await self.look())

    async def erase(self) -> None:
        await self.sessions.erase(TENANT, SESSION)
        self.judge.erased(self.before, await self.look())
        left = await self.sessions.client.keys(own_keys(self.keys))
        same("keys after an erasure", left, [self.keys.tomb.encode()])

    async def keys_end(self) -> None:
        """As when nobody spoke for a month and the worker was away."""
        await self.sessions.client.delete(*self.keys.erasable())

    async def tombstone_ends(self) -> None:
        await self.sessions.client.delete(self.keys.tomb)


def _mark_in(raw: Raw) -> str:
    """Of the words that it has now; they may be other ones than those that its id was given for."""
    words = str(raw["content"])
    return words[words.index("<") + 1 : words.index(">")]
