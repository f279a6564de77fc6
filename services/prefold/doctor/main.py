"""``prefold doctor``: looks at every store, and says what is not as promised."""

import argparse
import asyncio
from collections.abc import Sequence

from prefold.config.addresses import located
from prefold.config.flags import add_flags, settings_from
from prefold.config.logs import configure_logging
from prefold.doctor.findings import Finding, is_well
from prefold.doctor.machine import look_at_machine
from prefold.doctor.model import look_at_model
from prefold.doctor.queue import look_at_queue
from prefold.doctor.report import as_json, as_text
from prefold.doctor.sessions import look_at_sessions
from prefold.doctor.settings import DoctorSettings
from prefold.doctor.vectors import look_at_vectors

__all__ = ["examine", "main"]

_DESCRIPTION = """Looks at the stores and says what is not as promised, and how to mend it. Changes nothing.
Leaves with 0 when all is well, 1 when something is not as promised or cannot be known, 2 for wrong usage."""


def main(argv: Sequence[str]) -> int:
    """0 all is well, 1 something is not as promised or not known. Raises ``ConfigurationError``: wrong settings."""
    parser = argparse.ArgumentParser(prog="prefold doctor", description=_DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_flags(parser, DoctorSettings)
    parsed = parser.parse_args(argv)
    settings = located(settings_from(DoctorSettings, parsed))
    configure_logging("doctor", settings)
    findings = asyncio.run(examine(settings))
    print(as_json(findings) if parsed.json else as_text(findings))
    return 0 if is_well(findings) else 1


async def examine(settings: DoctorSettings) -> list[Finding]:
    """All findings, part by part. Takes seconds also when nothing answers."""
    looks = (
        look_at_sessions(settings),
        look_at_queue(settings),
        look_at_vectors(settings),
        look_at_model(settings),
    )
    found = [one for findings in await asyncio.gather(*looks) for one in findings]
    order = ("sessions", "queue", "vectors", "model", "machine", "work")
    return sorted([*found, *look_at_machine(settings)], key=lambda one: order.index(one.part.split(" ")[0]))
