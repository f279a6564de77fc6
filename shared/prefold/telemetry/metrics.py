"""Every metric of every process, each declared once: name, kind, unit, labels with all the values they can have.

No label ever holds a tenant, a session, a user, a key or a text. A process raises those that it knows of; a gateway or
worker serves what it counted itself, so sum counters over processes. What dispatchers read of the stores is the same for
all of them: take the maximum. ``docs/observability.md`` says what to do when one moves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.registry import Collector

from prefold.telemetry.tally import Tally, Times

EXPOSITION_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

REGISTRY: Final = CollectorRegistry()
"""Of this process. Not the library's own, which others may fill."""
ProcessCollector(registry=REGISTRY)  # reads /proc when it is asked, not before
disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which tells nothing that a rate needs

Kind = Literal["counter", "gauge", "histogram", "recorded"]
Owner = Literal[
    "every",
    "gateway",
    "gateway, dispatcher",
    "gateway, dispatcher, worker",
    "dispatcher",
    "worker",
    "vectors",
    "prometheus",
]


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric."""

    name: str
    """As it is scraped; a histogram's has ``_bucket``, ``_sum`` and ``_count`` behind it."""
    kind: Kind
    owner: Owner
    """Which process serves it."""
    labels: tuple[str, ...]
    told: str
    """What it counts and its unit."""


_declared: dict[str, Declared] = {}


def declared() -> tuple[Declared, ...]:
    """All metrics, in the order of their declaration."""
    return tuple(_declared.values())


def exposition() -> bytes:
    """What the process has counted, in Prometheus' text format."""
    return generate_latest(_Shown())


def serve_as(role: str) -> None:
    """From now on serve what ``role`` (``gateway``, ``worker-embed``) counts, not the zeros of all others."""
    kind = role.partition("-")[0]
    _hidden.clear()
    _hidden.update(one.name for one in declared() if one.owner != "every" and kind not in one.owner.split(", "))


_hidden: set[str] = set()


class _Shown(Collector):
    def collect(self) -> Iterable[Metric]:
        for family in REGISTRY.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            if name not in _hidden:
                yield family


def _declare(name: str, kind: Kind, owner: Owner, labels: Sequence[str], told: str) -> None:
    if name in _declared:
        raise ValueError(f"{name} is declared twice")
    _declared[name] = Declared(name, kind, owner, tuple(labels), told)


def _counter(name: str, owner: Owner, told: str, *labels: str) -> Counter:
    _declare(name, "counter", owner, labels, told)
    return Counter(name, told, labels, registry=REGISTRY)


def _gauge(name: str, owner: Owner, told: str, *labels: str) -> Gauge:
    _declare(name, "gauge", owner, labels, told)
    return Gauge(name, told, labels, registry=REGISTRY)


def _histogram(name: str, owner: Owner, told: str, *labels: str, bounds: Sequence[float]) -> Histogram:
    _declare(name, "histogram", owner, labels, told)
    return Histogram(name, told, labels, registry=REGISTRY, buckets=bounds)


def _tally(name: str, told: str, *labels: str, owner: Owner = "gateway") -> Tally:
    _declare(name, "counter", owner, labels, told)
    return Tally(name, told, labels, REGISTRY)


def _times(name: str, told: str, *labels: str) -> Times:
    _declare(name, "histogram", "gateway", labels, told)
    return Times(name, told, labels, REGISTRY, _ANSWER_BOUNDS)


_ANSWER_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_BUILD_BOUNDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 180, 300, 600)
_CALL_BOUNDS: Final = (0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 180)
_VECTOR_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

# Every process
PROCESS_INFO = _gauge("prefold_process_info", "every", "1, by role and version of Prefold.", "role", "version")

# The gateway
HTTP_REQUESTS = _tally(
    "prefold_http_requests_total",
    "Answers by method, route (the path's template; empty: no such path) and status.",
    "method",
    "route",
    "status",
)
HTTP_SECONDS = _times("prefold_http_request_seconds", "Head of a request to its answer, in s.", "route")
HTTP_IN_FLIGHT = _gauge("prefold_http_in_flight", "gateway", "Requests being served.")
APPEND_TURNS = _tally(
    "prefold_append_turns_total",
    "Turns acknowledged: stored, or duplicate of a stored one.",
    "result",
    owner="gateway, dispatcher",
)
CONTEXT_SECONDS = _times(
    "prefold_context_read_seconds",
    "Time to read and assemble a context, in s, with a query to recall for (yes) or without.",
    "query",
)
SEARCH_SECONDS = _times("prefold_search_seconds", "Time of a search, in s.")
LIMIT_CROSSINGS = _counter(
    "prefold_limit_crossings_total",
    "gateway, dispatcher",
    "Appends that passed the hard limit, by whether the standby was ready or missing.",
    "standby",
)
STANDBY_READY_RATIO = "prefold_standby_ready_ratio"
_declare(
    STANDBY_READY_RATIO,
    "recorded",
    "prometheus",
    (),
    "Share of the limit crossings of an hour that found a standby ready.",
)
SWAPS = _counter(
    "prefold_swaps_total",
    "gateway, dispatcher, worker",
    "Summaries put into place: ready (inside an append) or late (at the commit of a build that came after the limit).",
    "result",
)
DEGRADED_CONTEXTS = _counter(
    "prefold_degraded_contexts_total", "gateway", "Contexts served that leave out turns without a summary of them."
)
OVER_LIMIT_READS = _counter(
    "prefold_over_limit_reads_total", "gateway", "Contexts served over their limit or the budget asked for: must be 0."
)
QUOTA_REFUSALS = _counter(
    "prefold_quota_refusals_total",
    "gateway, dispatcher, worker",
    "Requests refused, or builds put off, by the quota.",
    "quota",
)
KEY_FILE_UNUSABLE = _gauge(
    "prefold_key_file_unusable",
    "gateway, dispatcher, worker",
    "1 while the changed key file cannot be used and what was read before stays in force; else 0.",
)
AUDIT_UNWRITTEN = _counter(
    "prefold_audit_unwritten_total", "gateway", "Audit entries that could not be written to their file."
)

# Workers
JOBS = _counter(
    "prefold_jobs_total",
    "worker",
    "Jobs run, by queue and result: done, or failed (and perhaps tried again).",
    "queue",
    "result",
)
EMBEDDED_TURNS = _counter("prefold_embedded_turns_total", "worker", "Turns whose vectors were written.")
BUILDS = _counter(
    "prefold_builds_total",
    "worker",
    "Builds of a summary that ended, by engine and result: standby, swapped, no_gain, stale, lost, gone, failed.",
    "engine",
    "result",
)
BUILD_SECONDS = _histogram(
    "prefold_build_seconds",
    "worker",
    "From the claim of a session to the commit, in s.",
    "engine",
    bounds=_BUILD_BOUNDS,
)
BUILD_TOKENS = _counter(
    "prefold_build_tokens_total",
    "worker",
    "Tokens that engines took and gave: input, output; of a model as the provider counts them, with cache_read, cache_write.",
    "engine",
    "direction",
)
BUILD_COST_USD = _counter(
    "prefold_build_cost_usd_total", "worker", "Cost of model calls by the price table, in US dollars.", "engine"
)
MODEL_CALL_SECONDS = _histogram(
    "prefold_model_call_seconds",
    "worker",
    "Calls of the model in s, by result: ok, refused, failed.",
    "result",
    bounds=_CALL_BOUNDS,
)
REMEMBERED_SESSIONS = _counter(
    "prefold_remembered_sessions_total", "worker", "Passes of the memory worker over a session that were kept."
)

# The dispatcher: what it has done
EVENTS = _counter("prefold_events_total", "dispatcher", "Turn events read.")
EVENTS_DROPPED = _counter(
    "prefold_events_dropped_total",
    "dispatcher",
    "Turn events that the stream's cap dropped unread: time lost, no work.",
)
INGESTED_TURNS = _counter(
    "prefold_ingested_turns_total",
    "dispatcher",
    "Turns taken from ingest streams: stored, duplicate, or bad.",
    "result",
)
RECONCILER_REPAIRS = _counter(
    "prefold_reconciler_repairs_total",
    "dispatcher",
    "Work asked for again from the sessions' own state, by kind; kind due: due entries that were missing.",
    "kind",
)
# and what it reads of the stores every few seconds, the same for each dispatcher
LAG_READ = _gauge(
    "prefold_lag_read_timestamp_seconds", "dispatcher", "When the gauges below were read last, Unix time."
)
OLDEST_EVENT_AGE = _gauge(
    "prefold_oldest_event_age_seconds", "dispatcher", "Age of the oldest event that is not done with, in s."
)
EVENTS_PENDING = _gauge("prefold_events_pending", "dispatcher", "Events unread or unacknowledged, over all partitions.")
INGEST_PENDING = _gauge("prefold_ingest_pending", "dispatcher", "Entries of ingest streams that wait to be applied.")
DUE_OVERDUE = _gauge("prefold_due_overdue", "dispatcher", "Sessions whose work is due and not done, by kind.", "kind")
QUEUE_JOBS = _gauge("prefold_queue_jobs", "dispatcher", "Jobs that wait, by queue.", "queue")
QUEUE_WORKERS = _gauge("prefold_queue_workers", "dispatcher", "Worker processes that serve a queue.", "queue")
DEAD_LETTERS = _gauge("prefold_dead_letters", "dispatcher", "Work that was set aside, by kind.", "kind")

# The vector store
VECTORS_SECONDS = _histogram(
    "prefold_vectors_request_seconds",
    "vectors",
    "Calls of the embedded vector store in s, by call.",
    "call",
    bounds=_VECTOR_BOUNDS,
)
VECTORS_FAILURES = _counter(
    "prefold_vectors_failures_total", "vectors", "Such calls that failed by a fault of ours.", "call"
)


def _begin_at_zero() -> None:
    """Series that a rate must see from their first rise on; those of open sets begin with it."""
    for metric, values in {
        LIMIT_CROSSINGS: ("ready", "missing"),
        SWAPS: ("ready", "late"),
        RECONCILER_REPAIRS: ("embed", "compact", "remember", "expire", "due"),
        INGESTED_TURNS: ("stored", "duplicate", "bad"),
    }.items():
        for value in values:
            metric.labels(value)
    for value in ("stored", "duplicate"):
        APPEND_TURNS.begin_at_zero(value)


_begin_at_zero()
