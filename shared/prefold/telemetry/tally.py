"""Counters and histograms for the gateway's hot path, at half the cost of prometheus_client's: no locks, no children.

Only the thread of the event loop may add to them. They stand in the same registry as all others, and render likewise.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

__all__ = ["Tally", "Times"]

Values = tuple[str, ...]
"""One value for each label, in the declared order."""


class Tally(Collector):
    """A counter. ``add`` takes some 100 ns."""

    def __init__(self, name: str, told: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name, self._told, self._labels = name, told, tuple(labels)
        self._counts: defaultdict[Values, float] = defaultdict(float)
        if not labels:
            self._counts[()] = 0  # a counter that was never raised reads 0, not nothing
        registry.register(self)

    def begin_at_zero(self, *values: str) -> None:
        """Makes a series appear before it is first raised, so that its first rise is seen as one."""
        self._counts[values] += 0

    def add(self, values: Values = (), amount: float = 1) -> None:
        """Raise the series with these label values."""
        self._counts[values] += amount

    def count(self, *values: str) -> float:
        """Where a series stands."""
        return self._counts.get(values, 0.0)

    def describe(self) -> Iterable[Metric]:
        """The family without its series."""
        return (CounterMetricFamily(self._name, self._told, labels=self._labels),)

    def collect(self) -> Iterable[Metric]:
        """The family with its series."""
        family = CounterMetricFamily(self._name, self._told, labels=self._labels)
        for values, count in sorted(self._counts.items()):
            family.add_metric(values, count)
        return (family,)


class Times(Collector):
    """A histogram of seconds. ``observe`` takes some 300 ns."""

    def __init__(
        self, name: str, told: str, labels: Sequence[str], registry: CollectorRegistry, bounds: Sequence[float]
    ) -> None:
        self._name, self._told, self._labels = name, told, tuple(labels)
        self._bounds = tuple(bounds)
        self._buckets: dict[Values, list[int]] = {}
        self._sums: defaultdict[Values, float] = defaultdict(float)
        registry.register(self)

    def observe(self, values: Values, seconds: float) -> None:
        """Count one duration in the series with these label values."""
        buckets = self._buckets.get(values)
        if buckets is None:
            buckets = self._buckets[values] = [0] * (len(self._bounds) + 1)
        buckets[bisect_left(self._bounds, seconds)] += 1
        self._sums[values] += seconds

    def describe(self) -> Iterable[Metric]:
        """The family without its series."""
        return (HistogramMetricFamily(self._name, self._told, labels=self._labels),)

    def collect(self) -> Iterable[Metric]:
        """The family with its series."""
        family = HistogramMetricFamily(self._name, self._told, labels=self._labels)
        for values, buckets in sorted(self._buckets.items()):
            family.add_metric(values, self._cumulated(buckets), self._sums[values])
        return (family,)

    def _cumulated(self, buckets: Sequence[int]) -> list[tuple[str, float]]:
        below = 0
        named: list[tuple[str, float]] = []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), buckets, strict=True):
            below += count
            named.append((bound, float(below)))
        return named
