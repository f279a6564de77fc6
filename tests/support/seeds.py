"""Random runs that can be repeated, and what they have to tell."""

import os
import secrets


def seed_of_run(what: str) -> int:
    """``PREFOLD_SEED``, else one that nobody chose; printed, so that a failure shows it."""
    given = os.environ.get("PREFOLD_SEED")
    seed = int(given) if given else secrets.randbelow(1 << 31)
    tell(f"PREFOLD_SEED={seed} repeats {what}")
    return seed


def tell(text: str) -> None:
    """One line for whoever runs it with ``-s``, or sees it fail."""
    print(text, flush=True)  # noqa: T201 (figures of a run are what it is run for)
