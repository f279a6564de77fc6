"""What gateways have counted, added up. A ratio is made of the sums, never of the gateways' own ratios."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from prefold.config.flags import redacted_url

__all__ = ["GatewayCounts", "counts_of", "sums_of"]

_WITHIN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class GatewayCounts:
    """Since the gateways started."""

    asked: int
    answered: int
    requests: int = 0
    failures: int = 0
    """Answers with a status from 500 on."""
    turns: int = 0
    ready_crossings: int = 0
    limit_crossings: int = 0
    swaps: int = 0
    degraded_contexts: int = 0
    over_limit_reads: int = 0
    away: tuple[str, ...] = ()
    """Of each that gave no metrics: where it was asked, and what it answered."""

    @property
    def standby_ready_ratio(self) -> float | None:
        """None without a crossing."""
        return self.ready_crossings / self.limit_crossings if self.limit_crossings else None


async def counts_of(client: httpx.AsyncClient, urls: Sequence[str]) -> GatewayCounts:
    """The sums over those that answer. Never raises."""
    found = await asyncio.gather(*(_scrape(client, url) for url in urls))
    away = tuple(
        f"gateway {redacted_url(url)}/metrics: {why}" for url, (_, why) in zip(urls, found, strict=True) if why
    )
    return replace(sums_of([text for text, why in found if not why], len(urls)), away=away)


async def _scrape(client: httpx.AsyncClient, url: str) -> tuple[str, str]:
    """The text, and why it is none; empty: it is one."""
    try:
        answer = await client.get(f"{url}/metrics", timeout=_WITHIN_SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return "", f"no answer ({type(error).__name__})"
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return (
            "",
            f"{answer.status_code}; let PREFOLD_GATEWAY_URL name its probe (PREFOLD_PROBE_PORT), which wants no key",
        )
    if answer.status_code != httpx.codes.OK:
        return "", f"{answer.status_code}"
    return (answer.text, "") if _is_exposition(answer.text) else ("", "200, and no metrics: this is no gateway")


def _is_exposition(text: str) -> bool:
    """False for the page of some other server."""
    try:
        return bool(list(text_string_to_metric_families(text)))
    except ValueError:
        return False


def sums_of(texts: Sequence[str], asked: int) -> GatewayCounts:
    """Of what was scraped."""
    samples = [
        (sample.name, sample.labels, sample.value)
        for text in texts
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]

    def total(name: str, **labels: str) -> int:
        return int(sum(value for found, at, value in samples if found == name and labels.items() <= at.items()))

    failures = sum(
        value
        for name, labels, value in samples
        if name == "prefold_http_requests_total" and labels["status"].startswith("5")
    )
    return GatewayCounts(
        asked=asked,
        answered=len(texts),
        requests=total("prefold_http_requests_total"),
        failures=int(failures),
        turns=total("prefold_append_turns_total", result="stored"),
        ready_crossings=total("prefold_limit_crossings_total", standby="ready"),
        limit_crossings=total("prefold_limit_crossings_total"),
        swaps=total("prefold_swaps_total"),
        degraded_contexts=total("prefold_degraded_contexts_total"),
        over_limit_reads=total("prefold_over_limit_reads_total"),
    )
