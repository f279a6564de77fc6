"""What the gateway counts. Labels are routes and statuses, never ids or text.

``prefold_http_requests_total`` (counter): answers by method, route and status; a rise of 5xx means a part is down.
``prefold_http_request_seconds`` (histogram): time from the head of a request to its answer, by route.
``prefold_http_in_flight`` (gauge): requests being served; near the limit new ones are refused.
"""

from bisect import bisect_left
from collections import Counter

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """Counts of one process, in Prometheus' text format on request."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer. ``route`` is the path's template, or empty for a path that does not exist."""
        self._answers[method if route else "", route, status] += 1
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(_BOUNDS) + 1)
        buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter adds floats as well

    def render(self) -> bytes:
        """Prometheus text format, version 0.0.4."""
        lines = ["# TYPE prefold_http_in_flight gauge", f"prefold_http_in_flight {self.in_flight}"]
        lines.append("# TYPE prefold_http_requests_total counter")
        for (method, route, status), count in sorted(self._answers.items()):
            lines.append(f'prefold_http_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines.append("# TYPE prefold_http_request_seconds histogram")
        for route in sorted(self._buckets):
            lines += self._histogram(route)
        return ("\n".join(lines) + "\n").encode()

    def _histogram(self, route: str) -> list[str]:
        name, label = "prefold_http_request_seconds", f'route="{route}"'
        lines: list[str] = []
        below = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self._buckets[route], strict=True):
            below += count
            lines.append(f'{name}_bucket{{{label},le="{bound}"}} {below}')
        lines.append(f"{name}_sum{{{label}}} {self._seconds[route]:.6f}")
        lines.append(f"{name}_count{{{label}}} {below}")
        return lines
