"""Rules of what a backend publishes."""

import math

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.property.histories.author import CALL_IDS
from tests.property.histories.held import TENANT
from tests.property.histories.world import World

WORDS = (1, 1, 8, 30, 60, 60, 200, 500, 1400)
FEW_WORDS = (1, 30, 60, 150)
words = st.sampled_from(WORDS)
few_words = st.sampled_from(FEW_WORDS)
targets = st.integers(0, 10_000)
"""Which one of something: it is known only when the step comes."""
some_calls = st.lists(st.sampled_from(CALL_IDS), min_size=1, max_size=3, unique=True)


class Speaking(World):
    def publish(self, *raws: dict[str, object]) -> None:
        self.act(self.backend.append(self.at, *self.new(*raws)))

    @rule(role=st.sampled_from(["user", "assistant"]), count=words)
    def say(self, role: str, count: int) -> None:
        self.publish(self.author.plain(role, count))

    @rule(sizes=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), words), min_size=2, max_size=5))
    def say_many(self, sizes: list[tuple[str, int]]) -> None:
        self.publish(*[self.author.plain(role, count) for role, count in sizes])

    @rule(counts=st.lists(few_words, min_size=4, max_size=16), ready=st.booleans())
    def talk(self, counts: list[int], ready: bool) -> None:
        """Turn by turn, with a builder at hand or until there is something for one to do."""
        for number, count in enumerate(counts):
            self.publish(self.author.plain("assistant" if number % 2 else "user", count))
            if self.wanted():
                if not ready:
                    return
                self.build_now(20)

    @rule(ids=some_calls, count=words, thinks=st.booleans())
    def call(self, ids: list[str], count: int, thinks: bool) -> None:
        self.publish(self.author.calls(ids, count, thinks=thinks))

    @rule(ids=some_calls, count=words, text=st.booleans())
    def answer(self, ids: list[str], count: int, text: bool) -> None:
        """Results of calls that may be open, answered long ago, or never made."""
        self.publish(self.author.results(ids, count, text=text))

    def answered_call(self, count: int) -> None:
        self.publish(self.author.calls(["A"], count, thinks=False), self.author.results(["A"], count, text=False))

    @rule(counts=st.lists(few_words, min_size=1, max_size=6), thinks=st.booleans())
    def work(self, counts: list[int], thinks: bool) -> None:
        """An agent's run: rounds without a word of the user."""
        for count in counts:
            if self.wanted():
                self.build_now(20)
            self.publish(
                self.author.calls(["A", "B"], 1, thinks=thinks), self.author.results(["B", "A"], count, text=False)
            )

    @rule(counts=st.lists(few_words, min_size=3, max_size=12))
    def call_in_vain(self, counts: list[int]) -> None:
        """Calls upon calls: one open round that grows beyond any room."""
        for count in counts:
            self.publish(self.author.calls(list(CALL_IDS), count, thinks=False))

    @rule(count=words)
    def instruct(self, count: int) -> None:
        self.publish(self.author.plain("system", count))

    @precondition(lambda self: self.alive)
    @rule(factor=st.sampled_from([0.5, 1.0, 1.3, 3.0]))
    def report_usage(self, factor: float) -> None:
        view = self.run(self.sessions.view(TENANT, self.at.name))
        reported = math.ceil(view.tokens / view.calibration * factor)
        self.publish(self.author.plain("assistant", 3, usage={"input_tokens": reported, "output_tokens": 3}))

    @precondition(lambda self: self.written)
    @rule(number=targets, also=st.booleans())
    def say_again(self, number: int, also: bool) -> None:
        """A retry, perhaps in one batch with something new; perhaps of a turn that was changed, removed or taken
        back since, or said to another session or in a former life, where it is as good as new.
        """
        again = self.written[number % len(self.written)]
        new = self.new(self.author.plain("user", 2)) if also else ()
        self.act(self.backend.append(self.at, again, *new))

    @precondition(lambda self: self.alive and self.at.life.seqs)
    @rule(number=targets)
    def contradict(self, number: int) -> None:
        """A known id with other content: refused, and nothing of its batch is stored."""
        known = sorted(self.at.life.seqs)[number % len(self.at.life.seqs)]
        other = {"id": known, "role": "user", "content": "something else"}
        self.act(self.backend.append(self.at, *self.new(self.author.plain("user", 2)), other))
