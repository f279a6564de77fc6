"""The application: the checks in the API's order, then the answer."""

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from tests.support.messages_api.answers import Answer, Brain, finish
from tests.support.messages_api.brains import brain_called
from tests.support.messages_api.catalogue import MODELS, Model
from tests.support.messages_api.checks import check_fields, check_meaning, check_window
from tests.support.messages_api.checks.compacting import compaction_block
from tests.support.messages_api.checks.headers import betas_of, check_key, check_version
from tests.support.messages_api.clock import Clock, MachineClock
from tests.support.messages_api.control import control, watch
from tests.support.messages_api.delivery import at_the_edge, deliver, stream
from tests.support.messages_api.diagnosis import Diagnoses
from tests.support.messages_api.errors import ApiError, invalid
from tests.support.messages_api.exchange import ClientGoneError, Exchange, Message, Receive, Send
from tests.support.messages_api.faults import Fault, Script
from tests.support.messages_api.journal import Entry, Journal
from tests.support.messages_api.latency import Latency
from tests.support.messages_api.limits import Limits
from tests.support.messages_api.listing import answer_models
from tests.support.messages_api.prompt import Piece, input_tokens, pieces_of
from tests.support.messages_api.prompt_cache import Caching, PromptCache
from tests.support.messages_api.wanted import Wanted

_MESSAGES, _COUNT = "/v1/messages", "/v1/messages/count_tokens"


class MessagesApi:
    """An ASGI application that answers as Anthropic's Messages API does.

    ``brain`` is a name or a function of a ``Wanted``; it, ``keys``, ``latency`` and ``limits`` may be set anew at any
    time, from any thread. ``keys``: those that are accepted, None for any. ``keep``: requests that the journal keeps.
    """

    def __init__(
        self,
        *,
        brain: Brain | str = "faithful",
        keys: Collection[str] | None = None,
        latency: Latency | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        seed: int = 0,
        keep: int | None = None,
    ) -> None:
        self.brain: Brain | str = brain_called(brain)
        self.keys = None if keys is None else set(keys)
        self.latency = latency or Latency(seed=seed)
        self.limits = limits or Limits()
        self.clock = clock or MachineClock()
        self.seed = seed
        self.models: dict[str, Model] = dict(MODELS)
        self.journal = Journal(keep)
        self.faults = Script()
        self.cache = PromptCache(self.clock)
        self._diagnoses = Diagnoses()
        self._calls = 0

    def script(self, *faults: Fault, when: Callable[[Entry], bool] | None = None, forever: bool = False) -> None:
        """One fault a call, in order, of those calls that ``when`` is true of."""
        self.faults.add(*faults, when=when, forever=forever)

    def resize(self, model: str, **fields: Any) -> None:
        """Another window or limit for one model: ``resize("claude-haiku-5-5", window_tokens=8000)``."""
        self.models[model] = replace(self.models[model], **fields)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        entry = self._entry(scope)
        exchange = Exchange(scope, receive, send, entry, self.clock)
        if entry.path.startswith("/_"):
            await (control(self, exchange) if entry.path == "/_control" else watch(self, exchange))
            return
        self.journal.add(entry)
        try:
            await self._serve(exchange)
        except ClientGoneError:
            pass
        except asyncio.CancelledError:
            entry.hung_up = True  # in process this is how a client goes away
            raise
        finally:
            self.journal.close(entry, self.clock.now())

    def _entry(self, scope: Message) -> Entry:
        number = self.journal.count + 1
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        query = scope.get("query_string", b"").decode()
        name = self._identifier("req", number)
        return Entry(number, scope["method"], scope["path"], query, headers, self.clock.now(), name)

    def _identifier(self, prefix: str, number: int) -> str:
        return f"{prefix}_01{hashlib.blake2b(f'{self.seed} {number}'.encode(), digest_size=11).hexdigest()}"

    async def _serve(self, exchange: Exchange) -> None:
        try:
            await exchange.read()
            fault = self.faults.at_the_edge(exchange.entry)
            await (self._route(exchange) if fault is None else at_the_edge(exchange, fault))
        except ApiError as error:
            await exchange.fail(error)

    async def _route(self, exchange: Exchange) -> None:
        entry = exchange.entry
        wanted = "POST" if entry.path in {_MESSAGES, _COUNT} else "GET"
        if entry.path not in {_MESSAGES, _COUNT} and not entry.path.startswith("/v1/models"):
            raise ApiError(404, "not_found_error", "Not found")
        if entry.method != wanted:
            raise ApiError(405, "invalid_request_error", "Method Not Allowed")
        check_key(entry, self.keys)
        version = check_version(entry)
        if wanted == "GET":
            await answer_models(exchange, self.models)
            return
        body = entry.json
        if not isinstance(body, dict):
            raise invalid("The request body is not valid JSON")
        check_fields(body, betas_of(entry), version, is_count=entry.path == _COUNT)
        model = self.models.get(body["model"])
        if model is None:
            raise ApiError(404, "not_found_error", f"model: {body['model']}")
        pieces = pieces_of(body)
        check_meaning(body, pieces, model)
        check_window(body, model, tokens := input_tokens(pieces))
        fault = self.faults.take(entry)
        if fault is not None and await self._befalls(exchange, fault):
            return
        if entry.path == _COUNT:
            await exchange.json(200, {"input_tokens": self._estimate(entry, tokens)})
        else:
            await self._message(exchange, body, model, pieces, fault)

    async def _befalls(self, exchange: Exchange, fault: Fault) -> bool:
        """False: it shows in the answer, if at all."""
        exchange.entry.fault = fault.name
        if fault.is_at_the_edge:
            await at_the_edge(exchange, fault)
            return True
        await exchange.pause(fault.seconds if fault.kind in {"slow", "status"} else 0)
        if fault.kind == "status":
            raise fault.error()
        return False

    def _estimate(self, entry: Entry, tokens: int) -> int:
        """Off by up to three per cent: what is counted beforehand is not what is billed."""
        digest = hashlib.blake2b(entry.body, digest_size=2, key=str(self.seed).encode()).digest()
        return round(tokens * (0.97 + 0.06 * int.from_bytes(digest, "big") / 65_535))

    async def _message(
        self, exchange: Exchange, body: dict[str, Any], model: Model, pieces: list[Piece], fault: Fault | None
    ) -> None:
        entry, tokens = exchange.entry, input_tokens(pieces)
        caching = self.cache.plan(body, pieces, entry.key or "", model.cache_minimum_tokens)
        exchange.headers.update(
            self.limits.admit(model.id, caching.uncached_tokens + caching.creation_tokens, self.clock)
        )
        answer = await self._think(exchange, body, model, tokens, fault)
        first, rest = self.latency.draw(caching.uncached_tokens + caching.creation_tokens, answer.tokens)
        await exchange.pause(first)
        self.cache.begin(caching)
        self.limits.spend(model.id, answer.tokens, self.clock)
        message = self._body(entry, model, answer, caching)
        message["diagnostics"] = self._diagnoses.of(body, pieces, caching, self._identifier("msg", entry.number))
        await (stream if body.get("stream") else deliver)(exchange, message, fault, rest)

    async def _think(
        self, exchange: Exchange, body: dict[str, Any], model: Model, tokens: int, fault: Fault | None
    ) -> Answer:
        self._calls += 1
        wanted = Wanted(body, model, tokens, self._calls)
        if wanted.max_tokens == 0:
            return Answer([], "max_tokens", is_exact=True)
        brain = brain_called(fault.brain if fault is not None and fault.brain is not None else self.brain)
        said = brain(wanted)
        answer = finish(await exchange.wait_for(said) if inspect.isawaitable(said) else said, wanted)
        return _compacted(answer) if body.get("compaction") else answer

    def _body(self, entry: Entry, model: Model, answer: Answer, caching: Caching) -> dict[str, Any]:
        usage = {
            **caching.usage(),
            "output_tokens": answer.tokens,
            "output_tokens_details": {"thinking_tokens": answer.thinking_tokens},
            "service_tier": "standard",
            **(answer.usage or {}),
        }
        entry.stop_reason, entry.usage = answer.stop_reason, usage
        message = {
            "id": self._identifier("msg", entry.number),
            "type": "message",
            "role": "assistant",
            "model": model.id,
            "content": answer.blocks,
            "stop_reason": answer.stop_reason,
            "stop_sequence": answer.stop_sequence,
            "stop_details": answer.stop_details,
            "usage": usage,
        }
        return {name: value for name, value in message.items() if name not in answer.without}


def _compacted(answer: Answer) -> Answer:
    """What the brain said as the one block that a request to compact returns."""
    said = "".join(block["text"] for block in answer.blocks if block["type"] == "text")
    return replace(answer, blocks=[compaction_block(said)], stop_reason="compaction")
