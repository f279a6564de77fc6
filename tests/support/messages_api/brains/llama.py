"""A real model as brain, behind any server that speaks OpenAI's chat completions."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from tests.support.messages_api.answers import Answer, text
from tests.support.messages_api.errors import ApiError, invalid
from tests.support.messages_api.wanted import Wanted, text_of

_MOST_SECONDS = 900.0
_STOPS = {"stop": "end_turn", "length": "max_tokens"}
_TOO_LONG = re.compile(r"exceed\w*.{0,40}context", re.IGNORECASE)

FORM = r"""
root ::= "<summary>\n## intent\n" line values? done? pending? "## state\n" line "</summary>"
values ::= "## values\n" line line? line?
done ::= "## done\n" line line?
pending ::= "## pending\n" line line?
line ::= "- " [^\n<>#-] [^\n<>#]{20,160} "\n"
"""
"""A grammar that lets a model say nothing but a summary: llama.cpp's ``grammar``. What stands in it is its own."""


def llama(url: str, key: str = "sk-local", **more: Any) -> Callable[[Wanted], Awaitable[Answer]]:
    """A brain that asks the server at ``url`` (without ``/v1``); ``more`` goes into its request as it is."""

    async def ask(wanted: Wanted) -> Answer:
        body = {"model": "local", "messages": _messages(wanted), "max_tokens": wanted.max_tokens, **more}
        headers = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=_MOST_SECONDS, trust_env=False) as client:
            reply = await client.post(f"{url.rstrip('/')}/v1/chat/completions", json=body)
        if reply.status_code != 200:
            raise _error(reply, wanted)
        choice = reply.json()["choices"][0]
        said = choice["message"].get("content") or ""
        return text(said, stop_reason=_STOPS.get(choice["finish_reason"], "end_turn"))

    return ask


def _messages(wanted: Wanted) -> list[dict[str, str]]:
    system = [{"role": "system", "content": wanted.system}] if wanted.system else []
    said = [(role, "\n".join(filter(None, map(text_of, blocks)))) for role, blocks in wanted.messages]
    return [*system, *({"role": role, "content": words} for role, words in said)]


def _error(reply: httpx2.Response, wanted: Wanted) -> ApiError:
    """As the API would have said it."""
    if _TOO_LONG.search(reply.text):
        return invalid(f"prompt is too long: {wanted.input_tokens} tokens > {wanted.input_tokens - 1} maximum")
    return ApiError(500, "api_error", f"the model's server answered {reply.status_code}")
