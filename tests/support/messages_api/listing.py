"""``GET /v1/models`` and ``/v1/models/{id}``."""

from collections.abc import Mapping
from urllib.parse import parse_qs, unquote

from tests.support.messages_api.catalogue import Model
from tests.support.messages_api.errors import ApiError
from tests.support.messages_api.exchange import Exchange

_PATH = "/v1/models"


async def answer_models(exchange: Exchange, models: Mapping[str, Model]) -> None:
    """A page of the catalogue, or one of it; 404 for what is not in it."""
    name = unquote(exchange.entry.path.removeprefix(_PATH)).strip("/")
    if not name:
        await exchange.json(200, _page(models, exchange.entry.query))
        return
    if name not in models:
        raise ApiError(404, "not_found_error", f"model: {name}")
    await exchange.json(200, models[name].describe())


def _page(models: Mapping[str, Model], query: str) -> dict[str, object]:
    asked = {name: values[-1] for name, values in parse_qs(query).items()}
    names = list(models)
    start = names.index(asked["after_id"]) + 1 if asked.get("after_id") in models else 0
    page = names[start : start + int(asked.get("limit", 20))]
    return {
        "data": [models[name].describe() for name in page],
        "has_more": start + len(page) < len(names),
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
    }
