"""The ways to keep a conversation, each behind the same call."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pydantic import SecretStr

from bench.side_by_side.talk import Exchange
from prefold.client import Prefold
from prefold.stack.embedded import temporary_stack


class Served(NamedTuple):
    waited: float
    """Seconds from the user's turn until the chat's model can be called."""
    texts: tuple[str, ...]
    """What it is called with, a text a message."""


class Side(Protocol):
    """Takes an exchange; says what its user waited for before the answer."""

    name: str

    def take(self, exchange: Exchange) -> Served: ...


class Everything:
    """Sends all of it, always."""

    name = "send everything"

    def __init__(self) -> None:
        self._texts: list[str] = []

    def take(self, exchange: Exchange) -> Served:
        self._texts.append(exchange.user)
        sent = tuple(self._texts)
        self._texts.append(exchange.assistant)
        return Served(0.0, sent)


class ThroughPrefold:
    """A running stack, over HTTP."""

    name = "Prefold"

    def __init__(self, client: Prefold, session: str, pause_seconds: float) -> None:
        self._client, self._session, self._pause = client, session, pause_seconds

    def take(self, exchange: Exchange) -> Served:
        begun = time.perf_counter()
        self._client.append(self._session, "user", exchange.user)
        context = self._client.context(self._session)
        waited = time.perf_counter() - begun
        self._client.append(self._session, "assistant", exchange.assistant)
        time.sleep(self._pause)
        return Served(waited, (*filter(None, [context.system]), *map(_text_of, context.messages)))


class ThroughLangChain:
    """Its agent with the summarization middleware, in a process of its own."""

    name = "LangChain, SummarizationMiddleware"

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def take(self, exchange: Exchange) -> Served:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(exchange._asdict()) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the LangChain side has ended; its error is above")
        answer = json.loads(line)
        return Served(answer["waited"], tuple(answer["texts"]))


@contextmanager
def prefold_side(model_url: str, limit_tokens: int, pause_seconds: float) -> Iterator[ThroughPrefold]:
    """A stack of its own on a temporary folder, its summaries asked of the model."""
    key = SecretStr("side-by-side")
    with ExitStack() as exits:
        stack = exits.enter_context(
            temporary_stack(summarizer="anthropic", anthropic_api_key=key, anthropic_base_url=model_url)
        )
        client = exits.enter_context(Prefold(stack.gateway_url))
        client.create_session("talk", hard_limit_tokens=limit_tokens)
        yield ThroughPrefold(client, "talk", pause_seconds)


@contextmanager
def langchain_side(python: Path, model_url: str, limit_tokens: int) -> Iterator[ThroughLangChain]:
    """``python`` has langchain and langchain-anthropic."""
    script = Path(__file__).with_name("langchain_side.py")
    process = subprocess.Popen(
        [str(python), str(script), model_url, str(limit_tokens)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{python} cannot run LangChain; its error is above")
        yield ThroughLangChain(process)
    finally:
        process.kill()
        process.communicate()


def _text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content)
