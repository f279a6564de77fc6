"""How long an answer takes: drawn, and by its size."""

import math
import random
from dataclasses import dataclass, field

_Z_OF_P95 = 1.6449
_SHARE_BEFORE_FIRST_TOKEN = 0.25


@dataclass
class Latency:
    """``base + input_ms · uncached input + output_ms · output``, and beside it a log-normal of this median and p95.

    Seconds, but for the prices of a token, which are milliseconds.
    """

    median: float = 0.0
    p95: float = 0.0
    base: float = 0.0
    input_ms: float = 0.0
    output_ms: float = 0.0
    seed: int = 0
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.p95 and self.p95 < self.median:
            raise ValueError("p95 is below the median")
        self._random = random.Random(self.seed)

    def draw(self, uncached_tokens: int, output_tokens: int) -> tuple[float, float]:
        """Until the first token, and from there to the end."""
        drawn = self._log_normal()
        first = self.base + self.input_ms * uncached_tokens / 1000 + _SHARE_BEFORE_FIRST_TOKEN * drawn
        return first, self.output_ms * output_tokens / 1000 + (1 - _SHARE_BEFORE_FIRST_TOKEN) * drawn

    def _log_normal(self) -> float:
        if not self.median:
            return 0.0
        sigma = math.log(self.p95 / self.median) / _Z_OF_P95 if self.p95 else 0.0
        return self.median * math.exp(sigma * self._random.gauss(0, 1))
