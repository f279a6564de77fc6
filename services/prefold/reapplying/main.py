"""The command ``prefold reapply-erasures``."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import httpx

from prefold.audit import AuditLog
from prefold.config.logs import configure_logging
from prefold.errors import ConfigurationError
from prefold.reapplying.arguments import ReapplyArguments, parse_arguments
from prefold.reapplying.calling import Eraser, Outcome
from prefold.reapplying.reading import Erasure, Found, erasures_since

_ANSWER_SECONDS = 90.0
"""A gateway gives the erasure of a user a minute."""


def main(argv: Sequence[str]) -> int:
    """0: every store is clean of what was erased. 1: something may still be there, or the files hold no entry."""
    arguments = parse_arguments(argv)
    configure_logging("reapply-erasures", arguments.settings)
    found = _read(arguments)
    for place in found.broken:
        print(f"cannot be read: {place}", file=sys.stderr)
    if not found.entries:
        print(
            "no audit entry in these files: nothing is known to erase; give the gateways' audit logs", file=sys.stderr
        )
    told = _Told(arguments.is_json)
    if arguments.is_dry:
        for erasure in found.erasures:
            told.planned(erasure)
    else:
        _apply(arguments, found, told)
    told.end(found)
    is_incomplete = not found.entries or (bool(found.broken) and not arguments.takes_broken)
    return int(told.failures > 0 or is_incomplete)


def _read(arguments: ReapplyArguments) -> Found:
    try:
        return erasures_since(arguments.audits, arguments.since)
    except OSError as error:
        raise ConfigurationError(f"the audit log cannot be read: {error}") from error


def _apply(arguments: ReapplyArguments, found: Found, told: "_Told") -> None:
    with ExitStack() as ends:
        http = ends.enter_context(httpx.Client(base_url=arguments.url, timeout=_ANSWER_SECONDS, trust_env=False))
        eraser = Eraser(http, arguments.keys, patience=arguments.patience, restored=arguments.restored)
        for outcome in eraser.run(found.erasures):
            told.done(outcome)
    audit = AuditLog(arguments.settings.audit_file, role="reapply-erasures")
    for tenant, counts in sorted(told.by_tenant.items()):
        subject = {result: str(count) for result, count in sorted(counts.items())}
        audit.note("erasures_reapplied", tenant=tenant, subject=subject)


@dataclass
class _Told:
    """Says what is done, and keeps count."""

    is_json: bool
    by_tenant: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        return self._counts()["failed"]

    def planned(self, erasure: Erasure) -> None:
        """Of a dry run."""
        self._count(erasure.tenant, "planned")
        self._say(erasure, "planned", "")

    def done(self, outcome: Outcome) -> None:
        self._count(outcome.erasure.tenant, outcome.result)
        self._say(outcome.erasure, outcome.result, outcome.why)

    def end(self, found: Found) -> None:
        """The last line."""
        counts = dict(sorted(self._counts().items()))
        if self.is_json:
            print(json.dumps({**counts, "earlier": found.earlier, "broken": len(found.broken)}))
            return
        said = (
            ", ".join(f"{count} {result.replace('_', ' ')}" for result, count in counts.items()) or "nothing to erase"
        )
        print(f"{said}; {found.earlier} entries from before the backup, {len(found.broken)} lines that cannot be read")

    def _say(self, erasure: Erasure, result: str, why: str) -> None:
        if self.is_json:
            row = {"kind": erasure.kind, "tenant": erasure.tenant, "names": erasure.names}
            print(json.dumps({**row, "at": erasure.at.isoformat(), "result": result, "why": why}))
            return
        print(
            f"{result.replace('_', ' '):<14}{erasure.kind:<8}{erasure.tenant}/{'/'.join(erasure.names)}  {why}".rstrip()
        )

    def _count(self, tenant: str, result: str) -> None:
        self.by_tenant.setdefault(tenant, Counter())[result] += 1

    def _counts(self) -> Counter[str]:
        return sum(self.by_tenant.values(), Counter())
