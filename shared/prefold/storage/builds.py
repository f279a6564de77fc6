"""Arguments and replies of the build scripts."""

from typing import Any

from prefold.storage.types import BuildTicket, BuiltSummary, CommitResult, SessionRef

__all__ = ["commit_args", "parse_begin", "parse_commit"]


def parse_begin(ref: SessionRef, reply: list[Any]) -> BuildTicket | str:
    """A ticket, or the reason why there is none."""
    if reply[0] != b"ok":
        return str(reply[0].decode())
    _, epoch, covers_to, base, lease_ms, hard, fixed, calibration, carried, first_user, urgent, wanted, head = reply
    return BuildTicket(
        ref=ref,
        epoch=epoch,
        covers_to=covers_to,
        base_covers_to=base,
        lease_ms=lease_ms,
        hard_limit_tokens=hard,
        fixed_tokens=fixed,
        calibration=calibration / 1000,
        carried_turn=carried,
        first_user_seq=first_user,
        is_urgent=urgent == 1,
        wanted_at_ms=wanted,
        head_seq=head,
    )


def commit_args(now: str | int, label: str, ticket: BuildTicket, summary: BuiltSummary) -> list[str | bytes | int]:
    """ARGV of ``commit_build.lua``. The record is one line: it stands before the head's lines in one value."""
    if "\n" in summary.record:
        raise AssertionError("a record is one line of JSON")
    coverage = "" if summary.coverage is None else f"{summary.coverage:.4f}"
    args: list[str | bytes | int] = [
        now,
        label,
        ticket.ref.incarnation,
        ticket.epoch,
        ticket.covers_to,
        summary.record,
        coverage,
        len(summary.fragments),
    ]
    for fragment in summary.fragments:
        args += (fragment.part, fragment.tokens, fragment.content)
    return args


def parse_commit(reply: list[Any]) -> CommitResult:
    """What became of the build."""
    outcome = reply[0].decode()
    if outcome in ("standby", "swapped"):
        return CommitResult(outcome=outcome, version=reply[1], tokens=reply[2], waited_ms=reply[3])
    return CommitResult(outcome=outcome)
