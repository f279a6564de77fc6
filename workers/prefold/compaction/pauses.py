"""How long a session rests after builds that failed.

The number of failures in a row stands in the reason that the storage keeps, so that it survives the worker.
"""

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta

_MODEL = "model_"
"""How the reasons begin that say that a model is away: one kind, whatever it answered."""
_COUNTED = re.compile(r"^(?P<reason>.*), (?P<number>\d{1,6}) in a row$")
_FACTOR = 4


@dataclass(frozen=True, slots=True)
class Pauses:
    """``first``, then four times as long after each failure, up to ``most``."""

    first: timedelta
    most: timedelta

    def after_ms(self, failures: int) -> int:
        """Milliseconds after the ``failures``-th in a row, and up to a fifth more so that sessions spread."""
        base = min(self.first * _FACTOR ** min(failures - 1, 10), self.most)
        base_ms = int(base.total_seconds() * 1000)
        return base_ms + secrets.randbelow(base_ms // 5 + 1)


TRANSIENT = Pauses(timedelta(seconds=2), timedelta(minutes=2))
NO_GAIN = Pauses(timedelta(milliseconds=250), timedelta(minutes=1))
"""Short at first: mostly the cut covered too little yet, and the next turns bring a better one."""
PERMANENT = Pauses(timedelta(minutes=1), timedelta(minutes=15))


def failures_with(reason: str, last_error: str) -> int:
    """How many failures for ``reason`` there are in a row with this one, ``last_error`` being what is kept."""
    found = _COUNTED.match(last_error)
    kept, number = (found["reason"], int(found["number"])) if found else (last_error, 1)
    is_same = kept == reason or (kept.startswith(_MODEL) and reason.startswith(_MODEL))
    return number + 1 if is_same else 1


def kept_reason(reason: str, failures: int) -> str:
    """What to keep: inverse of ``failures_with``."""
    return reason if failures == 1 else f"{reason}, {failures} in a row"
