"""Requests generated from what ``/openapi.json`` says, sent to a running gateway, each answer held against it."""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    allow_header_conformance,
]
REFUSING = ["400", "401", "403", "404", "405", "408", "409", "410", "412", "413", "415", "422", "429", "431"]
"""By which a request that does not fit may be told."""
ENDLESS = r"/events$"
"""Calls whose answer does not end."""
_CONVERSATIONS_AT_ONCE = 2
"""The first is the simplest there is."""
_NEXT_SEED = 1_000_003


@dataclass
class Sent:
    """What was sent, and what came of it."""

    statuses: Counter[int] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.statuses.total()

    def note(self, label: str, status: int) -> None:
        self.statuses[status] += 1
        self.calls[f"{label} {status}"] += 1

    def reached(self) -> set[str]:
        """Calls that were answered as they are meant to be."""
        return {call.rpartition(" ")[0] for call in self.calls if call.rpartition(" ")[2].startswith("2")}


def described(url: str) -> Any:
    """The gateway's own description, without calls whose answer does not end."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path_regex=ENDLESS)
    schema.config.checks.negative_data_rejection.expected_statuses = REFUSING
    return schema


def fuzz(schema: Any, sent: Sent, *, each: int, number: int) -> None:
    """``each`` requests of every call, three of four as the description wants them."""
    for operation in _operations(schema):
        for mode, share in ((GenerationMode.POSITIVE, 0.75), (GenerationMode.NEGATIVE, 0.25)):
            _fuzz_one(operation, mode, sent, max(1, round(each * share)), number)


def _fuzz_one(operation: Any, mode: GenerationMode, sent: Sent, count: int, number: int) -> None:
    @seed(number)
    @_bounded(count)
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        _season(case)
        response = case.call()
        sent.note(case.operation.label, response.status_code)
        case.validate_response(response, checks=CHECKS)

    run: Callable[[], None] = send
    with suppress(Unsatisfiable):  # a call that takes nothing can be given nothing wrong
        run()


def follow(schema: Any, sent: Sent, *, runs: int, steps: int, number: int) -> None:
    """``runs`` conversations of up to ``steps`` requests, each going on from what an answer before it named.

    The gateway remembers the conversations before, so a beginning that is repeated may be answered in another way, and
    Hypothesis takes that for a flaky test: it is to see two at most.
    """
    machine = schema.as_state_machine()
    for first in range(0, runs, _CONVERSATIONS_AT_ONCE):
        count = min(_CONVERSATIONS_AT_ONCE, runs - first)
        _converse(machine, sent, _bounded(count, stateful_step_count=steps), number + first * _NEXT_SEED)


def _converse(machine: Any, sent: Sent, bounds: settings, number: int) -> None:
    class Following(machine):  # type: ignore[misc]
        def before_call(self, case: Any) -> None:
            _season(case)

        def validate_response(self, response: Any, case: Any, **given: Any) -> None:
            sent.note(case.operation.label, response.status_code)
            case.validate_response(response, checks=CHECKS)

    seed(number)(Following)
    Following.run(settings=bounds)


def _season(case: Any) -> None:
    """A turn has more rules than a schema says (roles, blocks, times): most of those that fit it become sound ones."""
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE or not isinstance(case.body, dict):
        return
    path = case.operation.path
    if path.endswith("/rewind"):
        case.body = {"to_seq": case.body["to_seq"] % 3}
    elif path.endswith(("/turns", "/turns/{turn}")) and len(repr(case.body)) % 4:
        turns = case.body.get("turns") or [case.body]
        sound = [_sound(turn, number) for number, turn in enumerate(turns)]
        case.body = {"turns": sound} if path.endswith("/turns") else sound[0]


def _sound(turn: dict[str, Any], number: int) -> dict[str, Any]:
    return {"role": ("user", "assistant")[number % 2], "content": f"{turn.get('content')} and more"}


def _operations(schema: Any) -> Iterable[Any]:
    for found in schema.get_all_operations():
        yield found.ok()


def _bounded(count: int, **more: Any) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        **more,
    )
