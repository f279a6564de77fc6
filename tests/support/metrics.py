"""Metrics as tests read them: what a process serves, parsed by the library that Prometheus' makers wrote for it."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class Scrape:
    """One answer of ``/metrics``."""

    text: str

    def value(self, name: str, **labels: str) -> float:
        """Sum of the samples of ``name`` whose labels include these; 0 without any."""
        return sum(value for found, at, value in self.samples() if found == name and labels.items() <= at.items())

    def samples(self) -> list[tuple[str, Mapping[str, str], float]]:
        """Every sample: its name, labels and value."""
        families = text_string_to_metric_families(self.text)
        return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


def scrape(url: str, client: httpx.Client) -> Scrape:
    """What the process at ``url`` has counted."""
    answer = client.get(f"{url}/metrics", timeout=10)
    answer.raise_for_status()
    return Scrape(answer.text)
