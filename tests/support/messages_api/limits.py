"""Requests, input and output tokens a minute, as token buckets; what the cache gave does not count as input."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil

from tests.support.messages_api.clock import Clock
from tests.support.messages_api.errors import ApiError


@dataclass
class _Bucket:
    """Refills all the time; may be overdrawn by what was only known afterwards."""

    name: str
    unit: str
    limit: int
    filled_at: float
    level: float = field(init=False)

    def __post_init__(self) -> None:
        self.level = self.limit

    def refill(self, now: float) -> None:
        self.level = min(self.limit, self.level + (now - self.filled_at) * self.limit / 60)
        self.filled_at = now

    def seconds_until(self, wanted: float) -> float:
        return max(0.0, (min(wanted, self.limit) - self.level) * 60 / self.limit)


@dataclass
class Limits:
    """Limits of one minute; None: no such limit. Each model has buckets of its own."""

    requests: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    _buckets: dict[str, list[_Bucket]] = field(default_factory=dict, repr=False)

    def admit(self, model: str, input_tokens: int, clock: Clock) -> dict[str, str]:
        """The headers of an answer; 429 with ``retry-after`` if one of the buckets has too little."""
        buckets = self._of(model, clock.now())
        needs = {"requests": 1, "input-tokens": input_tokens, "output-tokens": 1}
        short = [bucket for bucket in buckets if bucket.level < min(needs[bucket.name], bucket.limit)]
        if short:
            worst = max(short, key=lambda bucket: bucket.seconds_until(needs[bucket.name]))
            raise self._refusal(worst, worst.seconds_until(needs[worst.name]), buckets)
        for bucket in buckets:
            if bucket.name != "output-tokens":
                bucket.level -= needs[bucket.name]
        return _headers(buckets)

    def spend(self, model: str, output_tokens: int, clock: Clock) -> None:
        """What was generated, known only now."""
        for bucket in self._of(model, clock.now()):
            if bucket.name == "output-tokens":
                bucket.level -= output_tokens

    def _of(self, model: str, now: float) -> list[_Bucket]:
        if model not in self._buckets:
            given = (
                ("requests", "requests", self.requests),
                ("input-tokens", "input tokens", self.input_tokens),
                ("output-tokens", "output tokens", self.output_tokens),
            )
            self._buckets[model] = [_Bucket(name, unit, limit, now) for name, unit, limit in given if limit is not None]
        for bucket in self._buckets[model]:
            bucket.refill(now)
        return self._buckets[model]

    @staticmethod
    def _refusal(worst: _Bucket, seconds: float, buckets: list[_Bucket]) -> ApiError:
        text = f"This request would exceed your organization's rate limit of {worst.limit:,} {worst.unit} per minute."
        headers = {**_headers(buckets), "retry-after": str(max(1, ceil(seconds)))}
        return ApiError(429, "rate_limit_error", text, headers=headers)


def _headers(buckets: list[_Bucket]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for bucket in buckets:
        full_at = datetime.now(UTC) + timedelta(seconds=bucket.seconds_until(bucket.limit))
        name = f"anthropic-ratelimit-{bucket.name}"
        headers[f"{name}-limit"] = str(bucket.limit)
        headers[f"{name}-remaining"] = str(max(0, int(bucket.level)))
        headers[f"{name}-reset"] = full_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return headers
