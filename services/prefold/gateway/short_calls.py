"""The two hot calls on their short way, between the request and the store's reply; ``shortcut`` says which take it."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from time import time
from typing import Any, Final, Protocol

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from prefold.assembly import ProfileInput, served_whole, spliced_of
from prefold.conversation.accepting import prepare_body
from prefold.conversation.turns import PreparedTurn
from prefold.gateway.admission import Admission, TenantQueue
from prefold.gateway.background import InBackground
from prefold.gateway.bodies import raw_response
from prefold.gateway.context_calls import ContextCalls, PlainAnswer, tagged
from prefold.gateway.context_records import summary_of
from prefold.gateway.door import Door
from prefold.gateway.guard import Guard
from prefold.gateway.known_contexts import KnownContext, KnownContexts, messages_within
from prefold.gateway.metrics import Metrics, note_append
from prefold.gateway.operations import Operation, OperationTable
from prefold.gateway.profiles import ContextReads
from prefold.gateway.settings import GatewaySettings
from prefold.gateway.turn_calls import append_json
from prefold.gateway.whole_requests import WholeRequest
from prefold.quotas import Quotas
from prefold.storage import Sessions
from prefold.storage.append import parse_append
from prefold.storage.types import AppendResult, StoredContext
from prefold.storage.users import Profile
from prefold.storage.watching import Store
from prefold.tokens import TokenCounter

__all__ = ["Append", "Call", "Hot", "HotParts", "Read"]

_STORED = STATUS_LINE[201] + b"content-type: application/json\r\n"
_FOUND = STATUS_LINE[200] + b"content-type: application/json\r\ncache-control: private, no-cache\r\n"
_NOBODYS: Final = ProfileInput()


@dataclass(frozen=True, slots=True)
class HotParts:
    """What the hot calls share with the door and the general calls."""

    table: OperationTable
    guard: Guard
    metrics: Metrics
    store: Store
    admission: Admission
    sessions: Sessions
    reads: ContextReads
    contexts: ContextCalls
    counter: InBackground[TokenCounter]
    quotas: Quotas
    settings: GatewaySettings


class Hot(Protocol):
    """Who began the calls."""

    @property
    def door(self) -> Door: ...
    @property
    def parts(self) -> HotParts: ...
    @property
    def known(self) -> KnownContexts: ...
    @property
    def counter(self) -> TokenCounter | None: ...

    def end(self, call: "Call", status: int) -> None:
        """The call has its answer."""
        ...


class Call:
    """One request under way, and whoever waits for the store's reply to it."""

    __slots__ = ("hot", "operation", "over", "queue", "request", "request_id", "session", "started", "tenant")

    def __init__(
        self,
        hot: Hot,
        operation: Operation,
        request: WholeRequest,
        tenant: str,
        session: str,
        queue: TenantQueue,
        started: float,
    ) -> None:
        self.hot = hot
        self.operation = operation
        self.request = request
        self.tenant = tenant
        self.session = session
        self.queue = queue
        self.started = started
        self.over = False
        self.request_id = hot.door.request_id_of(request.headers)

    def done(self) -> bool:
        """True once it is answered."""
        return self.over

    def answer(self, status: int, head: bytes, body: bytes) -> None:
        """Ends the call. ``head``: status line and headers of the answer's own."""
        self.hot.end(self, status)
        length = b"content-length: %d\r\nx-request-id: " % len(body)
        own = b"".join((head, length, self.request_id.encode(), b"\r\nx-content-type-options: nosniff\r\n"))
        self.request.respond(own, body)

    def answer_with(self, response: Response) -> None:
        """The same of a response; its length is counted anew."""
        headers = [b"%b: %b\r\n" % header for header in response.raw_headers if header[0] != b"content-length"]
        self.answer(response.status_code, STATUS_LINE[response.status_code] + b"".join(headers), bytes(response.body))

    def fail(self, error: Exception) -> None:
        """The problem document of what went wrong."""
        self.answer_with(self.hot.door.problem_of(error, self.request_id, self.operation.path))

    def set_result(self, reply: Any, /) -> None:
        """The store has answered. Runs among the replies of others, so nothing is raised."""
        try:
            self.finish(reply)
        except Exception as error:  # noqa: BLE001  # the boundary, as the door is one
            if not self.over:
                self.fail(error)

    def set_exception(self, _: Exception, /) -> None:
        """The store refused, or the connection failed: the general call knows what to do."""
        self.go_on(self.again())

    def go_on(self, answering: Awaitable[Response]) -> None:
        """Answers with what comes of a general call."""
        self.request.run(asyncio.get_running_loop().create_task(self._answer_later(answering)))

    async def _answer_later(self, answering: Awaitable[Response]) -> None:
        try:
            response = await answering
        except Exception as error:  # noqa: BLE001  # the boundary, as the door is one
            if not self.over:
                self.fail(error)
            return
        if not self.over:
            self.answer_with(response)

    def begin(self) -> bool:
        """Asks the store; False, or a refusal: nothing was sent."""
        raise NotImplementedError

    def finish(self, reply: Any) -> None:
        """Answers by the store's reply."""
        raise NotImplementedError

    async def again(self) -> Response:
        """The same by the general call."""
        raise NotImplementedError


class Append(Call):
    __slots__ = ("prepared",)

    prepared: list[PreparedTurn]

    def begin(self) -> bool:
        parts, counter = self.hot.parts, self.hot.counter
        assert counter is not None
        lease = parts.quotas.of(self.tenant)
        if lease is not None and lease.is_spent():
            return False
        self.prepared = prepare_body(self.request.body, counter, parts.settings)
        if lease is None:
            return parts.sessions.start_append(self.tenant, self.session, self.prepared, self)
        turns, tokens = len(self.prepared), sum(turn.tokens for turn in self.prepared)
        if not lease.take_now(self.session, turns, tokens):
            return False
        sent = parts.sessions.start_append(self.tenant, self.session, self.prepared, self)
        if not sent:
            lease.put_back(turns, tokens)
        return sent

    def finish(self, reply: Any) -> None:
        result = parse_append(self.tenant, self.session, self.prepared, reply)
        note_append(result)
        durability = self.hot.parts.store.known()
        if durability is None:
            self.go_on(self._promised(result))
        else:
            self.answer(201, _STORED, append_json(result, durability))

    async def again(self) -> Response:
        result = await self.hot.parts.sessions.append(self.tenant, self.session, self.prepared)
        note_append(result)
        return await self._promised(result)

    async def _promised(self, result: AppendResult) -> Response:
        return raw_response(append_json(result, await self.hot.parts.store.promised()), 201)


class Read(Call):
    __slots__ = ("known", "user")

    user: str
    known: KnownContext | None

    def begin(self) -> bool:
        hot = self.hot
        self.user = hot.parts.reads.user_of(self.tenant, self.session)
        self.known = hot.known.of(self.tenant, self.session)
        begin = self.known.length if self.known else 0
        return hot.parts.sessions.start_read(self.tenant, self.session, self, user=self.user, begin=begin)

    def finish(self, reply: Any) -> None:
        answer = self._answer(reply)
        if answer is None:
            self.hot.known.forget(self.tenant, self.session)
            self.go_on(self.again())
            return
        self.answer(200, b"%betag: %b\r\n" % (_FOUND, answer.tag.encode()), answer.body)
        self.hot.parts.contexts.keep(answer)

    def _answer(self, reply: Any) -> PlainAnswer | None:
        """None: it has to be read anew, by the general call."""
        parts, known = self.hot.parts, self.known
        if known is not None and reply[3:] == known.found:
            return parts.contexts.repeat_plain(known.answer, self.started)
        found = parts.sessions.finish_read(self.tenant, self.session, reply, known.length if known else 0)
        if found is None or found[0].user != self.user or not _is_of(known, found[0]):
            return None
        stored, profile = found[0], Profile.decode(found[1])
        if profile.holds_until_ms is not None and profile.holds_until_ms <= time() * 1000:
            return None
        if not (profile.text or profile.yielded):
            answer = self._whole(stored, known, reply)
            if answer is not None:
                return answer
        if known is not None:
            return None
        counter = self.hot.counter
        assert counter is not None
        known_of = ProfileInput(profile.text, yielded=profile.yielded)
        return parts.contexts.serve_plain(stored, known_of, counter, self.started)

    def _whole(self, stored: StoredContext, known: KnownContext | None, reply: Any) -> PlainAnswer | None:
        """The answer from what is stored as it is, which is known from now on; None: it is not so simple."""
        spliced = spliced_of(stored, known.spliced if known else None)
        served = None if spliced is None else served_whole(stored, spliced)
        if spliced is None or served is None:
            return None
        summary = known.summary if known else summary_of(stored.body) if stored.covers_to else ""
        answer = self.hot.parts.contexts.answer_plain(stored, _NOBODYS, served, self.started, summary)
        now_known = KnownContext(
            incarnation=stored.ref.incarnation,
            version=stored.version,
            length=stored.begin + len(stored.body),
            answer=answer,
            messages=messages_within(answer, spliced),
            sections=spliced.sections,
            role=spliced.role,
            summary=summary,
            found=[[b"", reply[3][1]], *reply[4:]],
        )
        self.hot.known.keep(self.tenant, self.session, now_known)
        return answer

    async def again(self) -> Response:
        parts = self.hot.parts
        stored, profile = await parts.reads.read(self.tenant, self.session)
        answer = parts.contexts.serve_plain(stored, profile, await parts.counter.get(), self.started)
        parts.contexts.keep(answer)
        return tagged(200, answer.tag, answer.body)


def _is_of(known: KnownContext | None, stored: StoredContext) -> bool:
    """Whether what is known is the beginning of what is stored."""
    if known is None:
        return True
    is_same = known.version == stored.version and known.incarnation == stored.ref.incarnation
    return is_same and stored.length == stored.begin + len(stored.body)
