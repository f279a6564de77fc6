"""``prefold gateway`` that counts nothing: the floor of what counting costs. ``python -m bench.unmetered [flags]``."""

import sys

from prefold.gateway import context_calls, metrics, short_calls, turn_calls
from prefold.gateway.main import main
from prefold.telemetry.metrics import CONTEXT_SECONDS


def _nothing(*_arguments: object, **_named: object) -> None:
    pass


if __name__ == "__main__":
    for owner, name in (
        (metrics.Metrics, "observe"),
        (CONTEXT_SECONDS, "observe"),
        (turn_calls, "note_append"),
        (short_calls, "note_append"),
        (context_calls, "note_served"),
        (context_calls, "note_total"),
    ):
        setattr(owner, name, _nothing)
    sys.exit(main(sys.argv[1:]))
