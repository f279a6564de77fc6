"""Any server that speaks OpenAI's embeddings call: fastembed servers, TEI, vLLM, providers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

import numpy as np
from pydantic import SecretStr

from prefold.embedding.protocol import CosineScale, Matrix, Vector
from prefold.embedding.vectors import clean_text, unit_rows
from prefold.errors import ConfigurationError, InvalidInputError, OverloadedError, PrefoldError, UnavailableError

if TYPE_CHECKING:
    import httpx

_MISCONFIGURED = {301, 302, 303, 307, 308, 401, 403, 404, 405}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpEmbedderOptions:
    """Where the server is and what it serves."""

    url: str
    """Base of the API, such as ``http://127.0.0.1:8080/v1``; ``/embeddings`` is added."""
    model: str
    dimension: int | None = None
    """What the model gives; None: the server is asked once, when the embedder is built."""
    key: SecretStr | None = None
    """Sent as a bearer token."""
    timeout: timedelta = timedelta(seconds=20)
    """For one call, connecting included."""
    max_batch: int = 64
    """Texts a call."""
    max_text_chars: int = 8_192
    """A text is cut here; servers refuse what their model cannot read."""
    query_prefix: str = ""
    """Put before a query, such as e5's ``"query: "``."""
    document_prefix: str = ""
    scale: CosineScale = field(default_factory=CosineScale)


class HttpEmbedder:
    """An ``Embedder`` over HTTP. Never retries: the job that called it knows when.

    An answer of another dimension than the first is a ``ConfigurationError``: such a vector is never stored.
    """

    def __init__(self, options: HttpEmbedderOptions) -> None:
        """Raises what ``embed_query`` raises if it has to ask for the dimension."""
        import httpx  # a twentieth of a gateway's start, and most never ask such a server

        self._options = options
        self._failures = httpx.HTTPError
        headers = {"accept": "application/json"}
        if options.key is not None:
            headers["authorization"] = f"Bearer {options.key.get_secret_value()}"
        self._client = httpx.Client(timeout=options.timeout.total_seconds(), headers=headers)
        self._endpoint = options.url.rstrip("/") + "/embeddings"
        self._dimension = options.dimension or self._ask_dimension()

    @property
    def id(self) -> str:
        """The model's name, as the server knows it."""
        return self._options.model

    @property
    def dimension(self) -> int:
        """As configured, or as the server answered at first."""
        return self._dimension

    @property
    def max_batch(self) -> int:
        """As configured."""
        return self._options.max_batch

    @property
    def scale(self) -> CosineScale:
        """As configured."""
        return self._options.scale

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """See ``Embedder``."""
        return self._embed(self._options.document_prefix, texts)

    def embed_query(self, text: str) -> Vector:
        """See ``Embedder``."""
        row: Vector = self._embed(self._options.query_prefix, [text])[0]
        return row

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _embed(self, prefix: str, texts: Sequence[str]) -> Matrix:
        step = self._options.max_batch
        parts = [self._call(prefix, texts[start : start + step]) for start in range(0, len(texts), step)]
        for part in parts:
            if part.shape[1] != self.dimension:
                raise ConfigurationError(
                    f"{self._options.model} gave {part.shape[1]} dimensions, {self.dimension} were expected"
                )
        return unit_rows(np.vstack(parts)) if parts else np.empty((0, self.dimension), dtype=np.float32)

    def _call(self, prefix: str, texts: Sequence[str]) -> Matrix:
        limit = self._options.max_text_chars
        # Some servers answer 400 to an empty text.
        inputs = [prefix + (clean_text(text, limit) if text.strip() else ".") for text in texts]
        try:
            response = self._client.post(self._endpoint, json={"model": self._options.model, "input": inputs})
        except self._failures as error:
            raise UnavailableError(f"the embedding server does not answer: {error!r}") from error
        if response.status_code != HTTPStatus.OK:
            raise _refusal(response)
        return self._rows(response, len(texts))

    def _ask_dimension(self) -> int:
        try:
            return int(self._call("", ["dimension"]).shape[1])
        except BaseException:
            self.close()
            raise

    def _rows(self, response: "httpx.Response", count: int) -> Matrix:
        """The vectors in the order of the texts. The answer may list them in any order."""
        try:
            items = {int(item["index"]): item["embedding"] for item in response.json()["data"]}
            rows = np.array([items[index] for index in range(count)], dtype=np.float32)
        except (ValueError, TypeError, KeyError) as error:
            raise _bad_answer(f"{type(error).__name__}: {error}") from error
        if rows.ndim != 2 or not rows.shape[1]:
            raise _bad_answer("not a list of vectors")
        return rows


def _bad_answer(reason: str) -> UnavailableError:
    return UnavailableError(f"the embedding server's answer cannot be read: {reason}", code="embedder_bad_answer")


def _refusal(response: "httpx.Response") -> PrefoldError:
    status = response.status_code
    detail = f"the embedding server answered {status}"
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return OverloadedError(detail, retry_after=_retry_after(response))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
        return UnavailableError(detail, retry_after=_retry_after(response))
    if status in _MISCONFIGURED:
        return ConfigurationError(f"{detail}: check its address, model and key")
    return InvalidInputError(detail, code="embedding_refused")


def _retry_after(response: "httpx.Response") -> timedelta | None:
    """Seconds or an HTTP date; None where neither can be read."""
    value = response.headers.get("retry-after", "")
    try:
        if value.strip().isdigit():
            return timedelta(seconds=min(int(value), 86_400))
        return max(parsedate_to_datetime(value) - datetime.now(UTC), timedelta())
    except (ValueError, TypeError):
        return None
