"""What of a look is not as it should be, in a line each; most of them have an alert of the same meaning."""

from collections.abc import Iterator
from typing import Final

from prefold.status.look import Look, Store

__all__ = ["troubles_of"]

_EVENTS_LATE_SECONDS: Final = 60
_INGEST_LATE_SECONDS: Final = 60
_DUE_LATE_SECONDS: Final = 300
"""Work is done in seconds, or tried again within a minute: what is older waits for somebody who is not there."""


def troubles_of(look: Look) -> list[str]:
    """Empty when all is well."""
    return [*look.away, *_of_promises(look), *_of_queues(look), *(_of_store(look.store) if look.store else ())]


def _of_promises(look: Look) -> Iterator[str]:
    if look.gateways.over_limit_reads:
        yield f"{look.gateways.over_limit_reads} contexts were served over their limit: report this as a bug"


def _of_queues(look: Look) -> Iterator[str]:
    for queue in look.queues or ():
        if not queue.workers:
            yield f"nobody serves the queue {queue.name}: start `prefold worker {queue.name}`"


def _of_store(store: Store) -> Iterator[str]:
    if store.event_age_seconds > _EVENTS_LATE_SECONDS:
        yield f"an event waits for {store.event_age_seconds:.0f} s: see that a dispatcher runs"
    if store.due_age_seconds > _DUE_LATE_SECONDS:
        yield f"work is overdue for {store.due_age_seconds:.0f} s: see that dispatcher and workers run"
    for stream in store.ingest:
        if not stream.is_stream:
            yield f"the ingest stream of {stream.tenant} is a key of another type: nothing is read from it, remove it"
        elif (seconds := store.waits_seconds(stream)) > _INGEST_LATE_SECONDS:
            yield (
                f"turns of {stream.tenant} wait in its ingest stream for {seconds:.0f} s: see that a dispatcher runs and "
                "PREFOLD_INGEST_TENANTS names it, and whether a quota is used up"
            )
    if letters := sum(store.letters.values()):
        yield f"{letters} pieces of work were set aside: prefold dead-letters lists them"
