"""``prefold cost``: reads the sums, and computes."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from prefold.config.addresses import naming_address
from prefold.cost.arguments import CostArguments, parse_arguments
from prefold.cost.reports import comparison_lines, price_lines, session_lines, spending_lines
from prefold.errors import InvalidInputError
from prefold.pricing import Price, PriceTable, compare, load_prices
from prefold.storage.client import connect
from prefold.storage.spending import DaySpending, Spending
from prefold.storage.types import ModelUsage

__all__ = ["main"]

_REPLY_TIMEOUT = timedelta(seconds=5)


def main(argv: Sequence[str]) -> int:
    """0 when it could be said. Raises ``ConfigurationError`` (a wrong price table) and ``UnavailableError``."""
    arguments = parse_arguments(argv)
    prices = load_prices(arguments.settings.prices_file)
    if arguments.action == "prices":
        lines, data = price_lines(prices), _prices_json(prices)
    elif arguments.action == "compare":
        lines, data = _compared(arguments, prices)
    else:
        lines, data = _spent(*asyncio.run(_read(arguments)))
    print(json.dumps(data, ensure_ascii=False, default=str) if arguments.is_json else "\n".join(lines))
    return 0


async def _read(arguments: CostArguments) -> tuple[list[DaySpending], list[tuple[str, ModelUsage]]]:
    today = datetime.now(UTC).date()
    async with connect(arguments.settings.redis_url, max_connections=4, timeout=_REPLY_TIMEOUT) as client:
        spending = Spending(client)
        with naming_address(arguments.settings, "redis_url"):
            tenants = [arguments.tenant] if arguments.tenant is not None else await spending.tenants()
            days = [day for tenant in tenants for day in await spending.days(tenant, today, arguments.days)]
            sessions = await spending.sessions(arguments.tenant) if arguments.tenant is not None else []
    return days, sessions


def _spent(days: list[DaySpending], sessions: list[tuple[str, ModelUsage]]) -> tuple[list[str], Any]:
    lines = spending_lines(days)
    if sessions:
        lines += ["", *session_lines(sessions)]
    by_session = [{"session": name, **asdict(usage)} for name, usage in sessions]
    return lines, {"days": [asdict(day) for day in days], "sessions": by_session}


def _prices_json(prices: PriceTable) -> Any:
    rows = [{**price.model_dump(), "from": origin} for price, origin in prices.rows]
    return {"as_of": prices.as_of, "source": prices.source, "prices": rows}


def _compared(arguments: CostArguments, prices: PriceTable) -> tuple[list[str], Any]:
    chat, small = _price(prices, arguments.model), _price(prices, arguments.small_model)
    compared = compare(arguments.workload, chat, small)
    data = {
        "shared_prefix_micro_usd": compared.prefix,
        "small_model_micro_usd": compared.small,
        "break_even_new_tokens": compared.break_even_new_tokens,
        "cheaper": "shared_prefix" if compared.prefix_is_cheaper else "small_model",
        "workload": asdict(arguments.workload),
    }
    return comparison_lines(arguments.workload, chat, small, compared), data


def _price(prices: PriceTable, model: str) -> Price:
    found = prices.find(model)
    if found is None:
        raise InvalidInputError(
            f"no price is known for {model!r}; prefold cost prices lists the known ones", field="model"
        )
    return found
