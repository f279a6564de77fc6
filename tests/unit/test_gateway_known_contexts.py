"""The gateway's memory of contexts has a bound, and knows what was read last."""

from prefold.assembly import Spliced
from prefold.gateway.context_calls import PlainAnswer
from prefold.gateway.known_contexts import KnownContext, KnownContexts, messages_within
from prefold.storage.types import SessionRef

BODY = b'{"version":1,"system":"says \\",\\"messages\\":[\\"","messages":[%b]}],"tokens":{}}'
OPEN = b'{"role":"user","content":['


def known(text: bytes, version: int = 1) -> KnownContext:
    messages = b"[" + OPEN + text
    answer = PlainAnswer(SessionRef("t", "s", "i"), "tag", BODY % (OPEN + text + b"]"), {}, 1, 2, False)
    spliced = Spliced(messages, {"window": 0}, ord("u"))
    within = messages_within(answer, spliced)
    return KnownContext("i", version, 10, answer, within, spliced.sections, spliced.role, "", [])


def test_the_messages_are_found_in_the_answer_whatever_its_system_prompt_says() -> None:
    one = known(b'{"type":"text","text":"hello"}')
    assert one.spliced == Spliced(b'[{"role":"user","content":[{"type":"text","text":"hello"}', {"window": 0}, ord("u"))


def test_the_least_recently_kept_goes_first_when_the_room_is_used_up() -> None:
    memory = KnownContexts(3 * 8_000)
    for name in "abc":
        memory.keep("t", name, known(b"x" * 3_500))
    assert memory.of("t", "a") is not None
    memory.keep("t", "a", known(b"x" * 3_500))
    memory.keep("t", "d", known(b"x" * 3_500))
    assert [name for name in "abcd" if memory.of("t", name)] == ["a", "c", "d"]


def test_one_that_is_read_without_change_stays_and_one_that_is_not_read_goes() -> None:
    memory = KnownContexts(3 * 8_000)
    for name in "abc":
        memory.keep("t", name, known(b"x" * 3_500))
    assert memory.of("t", "a") is not None
    memory.keep("t", "d", known(b"x" * 3_500))
    assert [name for name in "abcd" if memory.of("t", name)] == ["a", "c", "d"]


def test_what_is_kept_again_or_forgotten_takes_no_room_twice() -> None:
    memory = KnownContexts(2 * 8_000)
    for version in range(50):
        memory.keep("t", "a", known(b"x" * 3_500, version))
    memory.keep("t", "b", known(b"x" * 3_500))
    assert (memory.of("t", "a") or known(b"")).version == 49
    memory.forget("t", "a")
    memory.keep("t", "c", known(b"x" * 3_500))
    assert memory.of("t", "a") is None and memory.of("t", "b") and memory.of("t", "c")


def test_one_that_is_too_long_is_not_kept_and_its_former_self_is_forgotten() -> None:
    memory = KnownContexts(8_000)
    memory.keep("t", "a", known(b"x"))
    memory.keep("t", "a", known(b"x" * 8_000))
    assert memory.of("t", "a") is None


def test_tenants_do_not_share_what_is_known() -> None:
    memory = KnownContexts()
    memory.keep("t", "a", known(b"x"))
    assert memory.of("u", "a") is None
