"""Calls of the client on Redis itself. Coroutines that await nothing but Redis, so that both clients share them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from prefold.assembly import LEAST_BUDGET_TOKENS, ProfileInput, assemble
from prefold.client.calls import json_body
from prefold.client.direct.store import StoreLooks
from prefold.client.direct.turns import prepared
from prefold.client.direct.views import appended_of, context_of, session_of, state_of
from prefold.client.memory_results import State
from prefold.client.results import Appended, Context, Format, JsonObject, Session, Ttl
from prefold.conversation import check_name
from prefold.conversation.shapes import convert, msgspec
from prefold.conversation.strict_json import parse_json
from prefold.errors import ConflictError, InvalidInputError, PrefoldError
from prefold.pinned import (
    MOST_BODY_BYTES,
    Pinned,
    PinnedState,
    change_state,
    decode,
    merged,
    with_proposals,
    with_state,
)
from prefold.storage import Sessions
from prefold.storage.memory_types import StoredState
from prefold.storage.session_options import SessionBody, options_of
from prefold.storage.types import StoredContext
from prefold.tokens import TokenCounter

__all__ = ["DirectCalls"]

_FORMATS: Final = ("anthropic", "openai")
_TTLS: Final = ("5m", "1h")
_MOST_BUDGET_TOKENS: Final = 10_000_000
_NOBODYS: Final = ProfileInput()


class DirectCalls:
    """One tenant's sessions. Raises what a gateway would answer with."""

    def __init__(self, sessions: Sessions, looks: StoreLooks, tenant: str, counter: TokenCounter) -> None:
        self._sessions = sessions
        self._looks = looks
        self._tenant = tenant
        self._counter = counter

    async def append(self, session: str, turns: Sequence[Mapping[str, Any]]) -> Appended:
        """One script."""
        check_name(session, "session")
        ready, looks = prepared(turns, self._counter), self._looks
        if not looks.admits:
            await looks.admit()
        result = await self._sessions.append(self._tenant, session, ready)
        return appended_of(result, looks.told() or await looks.promised())

    async def create_session(self, session: str, options: Mapping[str, Any]) -> Session:
        """Creates it, or changes what is given of it."""
        check_name(session, "session")
        body = convert(parse_json(json_body(options)), SessionBody)
        await self._looks.admit()
        view = await self._sessions.open(self._tenant, session, options_of(body, self._counter))
        if body.proposals is not None or body.state_cap_tokens is not None:
            await change_state(self._sessions, self._tenant, session, self._settled)
            view = await self._sessions.view(self._tenant, session)
        return session_of(view)

    def _settled(self, pinned: Pinned, stored: StoredState) -> Pinned:
        apply = stored.proposals == "apply"
        return with_proposals(pinned, (), apply=apply, counter=self._counter, cap_tokens=stored.cap_tokens)

    async def session(self, session: str) -> Session:
        """As it stands."""
        await self._looks.meet()
        return session_of(await self._sessions.view(self._tenant, check_name(session, "session")))

    async def turns(self, session: str, after_seq: int, limit: int) -> tuple[JsonObject, ...]:
        """A page of the log."""
        await self._looks.meet()
        check_name(session, "session")
        if not 0 <= after_seq <= 2**53:
            raise InvalidInputError(f"must be from 0 to {2**53}", field="after_seq")
        found = await self._sessions.read_turns(self._tenant, session, after_seq, limit)
        if not found:
            await self._sessions.view(self._tenant, session)  # raises where there is no such session
        return tuple(msgspec.json.decode(one.verbatim_json) for one in found)

    async def context(self, session: str, form: Format, budget_tokens: int | None, cache: Ttl | None) -> Context:
        """What to send to the model now, without recall."""
        _check_asked(form, budget_tokens, cache)
        await self._looks.meet()
        stored = await self._sessions.read_context(self._tenant, check_name(session, "session"))
        profile = await self._profile(stored) if stored.user else _NOBODYS
        served = assemble(
            stored, self._counter, form=form, budget_tokens=budget_tokens, profile=profile, recalled=None, cache=cache
        )
        return context_of(served, form)

    async def _profile(self, stored: StoredContext) -> ProfileInput:
        """What is known of the user, as it was written last; nothing of it once a line of it is out of date."""
        try:
            profile = await self._sessions.users.read_profile(self._tenant, stored.user)
        except PrefoldError:  # whatever is wrong with the profile, the context is served
            return ProfileInput(failure="unavailable")
        until_ms = profile.holds_until_ms
        if until_ms is not None and until_ms <= self._looks.now_ms():
            return ProfileInput(failure="out_of_date")  # a gateway's read, or the next fact, renders it anew
        return ProfileInput(profile.text, yielded=profile.yielded)

    async def state(self, session: str) -> State:
        """The pinned state."""
        await self._looks.meet()
        stored = await self._sessions.read_state(self._tenant, check_name(session, "session"))
        return state_of(stored, decode(stored.body))

    async def put_state(self, session: str, document: Mapping[str, Any], if_version: int | None) -> State:
        """Replaces it."""
        state = _pinned_state(_document(document))
        return await self._change(session, if_version, lambda _: state)

    async def patch_state(self, session: str, patch: Mapping[str, Any], if_version: int | None) -> State:
        """Changes what the patch names."""
        asked = _document(patch)
        _pinned_state(merged(PinnedState(), asked))
        return await self._change(session, if_version, lambda now: _pinned_state(merged(now, asked)))

    async def _change(self, session: str, if_version: int | None, change: Any) -> State:
        await self._looks.admit()
        changed = partial(self._changed, if_version, change)
        kept = await change_state(self._sessions, self._tenant, check_name(session, "session"), changed)
        return state_of(kept, decode(kept.body))

    def _changed(self, if_version: int | None, change: Any, pinned: Pinned, stored: StoredState) -> Pinned:
        if if_version not in (None, stored.version):
            raise ConflictError(
                f"the state has version {stored.version} now", code="version_conflict", field="if-match"
            )
        apply, cap = stored.proposals == "apply", stored.cap_tokens
        return with_state(pinned, change(pinned.state), apply=apply, counter=self._counter, cap_tokens=cap)


def _document(given: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = parse_json(json_body(dict(given)), max_bytes=MOST_BODY_BYTES)
    return document


def _pinned_state(document: dict[str, Any]) -> PinnedState:
    return convert(document, PinnedState)


def _check_asked(form: str, budget_tokens: int | None, cache: str | None) -> None:
    if form not in _FORMATS:
        raise InvalidInputError(f"must be one of {', '.join(_FORMATS)}", field="format")
    if budget_tokens is not None and not LEAST_BUDGET_TOKENS <= budget_tokens <= _MOST_BUDGET_TOKENS:
        raise InvalidInputError(f"must be from {LEAST_BUDGET_TOKENS} to {_MOST_BUDGET_TOKENS}", field="budget_tokens")
    if cache is not None and cache not in _TTLS:
        raise InvalidInputError(f"must be one of {', '.join(_TTLS)}", field="cache")
    if cache is not None and form != "anthropic":
        raise InvalidInputError("only format=anthropic has cache breakpoints", field="cache")
