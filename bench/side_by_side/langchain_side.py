"""LangChain's summarization middleware in an agent, run by a Python that has LangChain: no import of ours.

A line of JSON in for each exchange (``{"user", "assistant"}``), a line out: seconds from the user's turn until the chat model is
called, and the text of each message that it is called with.
"""

import json
import sys
import time
from typing import Any


def main(model_url: str, limit_tokens: int) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_anthropic import ChatAnthropic
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Answering(BaseChatModel):  # type: ignore[misc]  # of a package that is not installed here
        """Answers at once with what it was told to: the chat's own model is nobody's cost here."""

        said: str = ""
        called_at: float = 0.0
        seen: list[str] = []  # noqa: RUF012 (a field of pydantic's)

        @property
        def _llm_type(self) -> str:
            return "answering"

        def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            self.called_at = time.perf_counter()
            self.seen = [one.text if isinstance(one.text, str) else one.text() for one in messages]
            return ChatResult(generations=[ChatGeneration(message=AIMessage(self.said))])

    chat = Answering()
    writer = ChatAnthropic(model="claude-haiku-5-5", base_url=model_url, api_key="side-by-side", max_tokens=2000)
    middleware = SummarizationMiddleware(model=writer, trigger=("tokens", limit_tokens))
    agent = create_agent(chat, middleware=[middleware])
    state: dict[str, Any] = {"messages": []}
    print("ready", flush=True)
    for line in sys.stdin:
        exchange = json.loads(line)
        chat.said = exchange["assistant"]
        begun = time.perf_counter()
        state = agent.invoke({"messages": [*state["messages"], {"role": "user", "content": exchange["user"]}]})
        print(json.dumps({"waited": chat.called_at - begun, "texts": chat.seen}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
