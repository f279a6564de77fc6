"""The official SDK as a client of the fake."""

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

from tests.support.messages_api.api import MessagesApi
from tests.support.messages_api.serving import in_process

KEY = "sk-ant-test"


def sdk_of(target: MessagesApi | str, *, max_retries: int = 0, timeout: float = 20.0, key: str = KEY) -> AsyncAnthropic:
    """A client of a base URL, or of the application itself; no setting of the machine reaches it."""
    if isinstance(target, str):
        http = DefaultAsyncHttpxClient(trust_env=False)
        return AsyncAnthropic(api_key=key, base_url=target, http_client=http, max_retries=max_retries, timeout=timeout)
    return AsyncAnthropic(
        api_key=key,
        base_url="http://messages.fake",
        http_client=in_process(target),
        max_retries=max_retries,
        timeout=timeout,
    )
