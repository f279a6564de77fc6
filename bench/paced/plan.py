"""How large a run is, and what each of its sessions does."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

TENANT = "default"
"""The gateway's, where no keys are configured."""
SOFT_TO_HARD_SECONDS = 180.0
"""At a soft threshold of ``SOFT_SHARE``, for the fastest session."""
SOFT_SHARE = 0.7
MEDIAN_SECONDS, P95_SECONDS = 20.0, 60.0
"""Of a model's answer."""


@dataclass(frozen=True, slots=True)
class Scale:
    """One run. Seconds are those of the story; the run takes ``time_factor`` of them."""

    sessions: int
    time_factor: float
    """Story to run. What the product does by its own clock (leases, pauses after failures) is not scaled."""
    spread_seconds: float
    """Sessions begin evenly within this time."""
    hard_limit: int = 4_000
    turn_tokens: tuple[int, int] = (60, 200)
    """A turn's length is between these, evenly."""
    slowest: float = 1.5
    """A session's pace is between the fastest and this many times slower."""
    swaps: tuple[float, float, float] = (0.8, 0.15, 0.05)
    """Shares of the sessions that go on for one swap, two, three."""
    http_share: float = 0.2
    """Of the sessions, publish through the gateway; the others call the append script by our storage."""
    workers: int = 2
    fail_share: float = 0.0
    """Of the model's calls."""
    soft_ratio: float | None = None
    """None: as the product decides."""
    model_median_seconds: float = MEDIAN_SECONDS
    model_p95_seconds: float = P95_SECONDS

    @property
    def seconds_per_token(self) -> float:
        """Of the fastest session. The turn that passes the soft threshold may reach a whole turn beyond it."""
        return SOFT_TO_HARD_SECONDS / ((1 - SOFT_SHARE) * self.hard_limit - self.turn_tokens[1])

    def scaled(self, seconds: float) -> float:
        return seconds * self.time_factor


@dataclass(frozen=True, slots=True)
class SessionPlan:
    name: str
    start_seconds: float
    seconds_per_token: float
    swaps: int
    over_http: bool
    seed: str


def session_plans(scale: Scale, seed: int) -> list[SessionPlan]:
    """The same for the same seed."""
    source = random.Random(f"plans {seed}")
    return list(_plans(scale, seed, source))


def _plans(scale: Scale, seed: int, source: random.Random) -> Iterator[SessionPlan]:
    for number in range(scale.sessions):
        yield SessionPlan(
            name=f"paced-{number}",
            start_seconds=scale.spread_seconds * number / scale.sessions,
            seconds_per_token=scale.seconds_per_token * source.uniform(1.0, scale.slowest),
            swaps=source.choices((1, 2, 3), scale.swaps)[0],
            over_http=source.random() < scale.http_share,
            seed=f"{seed} {number}",
        )
