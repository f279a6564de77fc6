"""The job that embeds turns. RQ finds it by ``prefold.jobs.EMBED_JOB``."""

import structlog

from prefold.jobs import decode_spans
from prefold.recall.keeping import keeps_all
from prefold.telemetry.metrics import EMBEDDED_TURNS
from prefold.telemetry.tracing import note
from prefold.worker.embed_pass import EmbedOptions, EmbedPass, EmbedReport
from prefold.worker.runtime import Runtime, runtime

log = structlog.get_logger(__name__)


def embed_turns(spans: list[list[str | int]]) -> None:
    """Embeds the turns that ``spans`` name, as far as that is not done yet.

    Raises ``TransientError`` when a part is away; the turns stay due. ``InvalidInputError`` for a payload that
    cannot be read. Running it twice changes nothing.
    """
    wanted = decode_spans(spans)
    shared = runtime()
    _log(shared.run(_pass(shared).run(wanted)))


def _pass(shared: Runtime) -> EmbedPass:
    options = EmbedOptions(shared.settings.embed_call_turns, shared.settings.embed_job_turns)
    named = shared.settings.keep_all_tenants
    return EmbedPass(
        shared.sessions,
        shared.turn_store,
        shared.embedder,
        shared.stop.is_set,
        options,
        keeps_all=lambda tenant: keeps_all(tenant, named),
    )


def _log(report: EmbedReport) -> None:
    EMBEDDED_TURNS.inc(report.embedded)
    note({"turns": report.embedded})
    log.info(
        "turns_embedded",
        turns=report.embedded,
        without_text=report.without_text,
        not_kept=report.not_kept,
        refused=report.refused,
        sessions_gone=report.sessions_gone,
        sessions_left=report.left,
    )
