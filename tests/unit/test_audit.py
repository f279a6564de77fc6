"""The audit log: whole lines, whoever writes, and whatever a crash or a full disk left."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from prefold.audit import ACTIONS, AuditEntry, AuditLog, BrokenLine, parse_entry, read_audit
from prefold.telemetry.metrics import exposition
from tests.support.metrics import Scrape


def unwritten() -> float:
    return Scrape(exposition().decode()).value("prefold_audit_unwritten_total")


def entries_of(path: Path) -> list[AuditEntry]:
    return [one for one in read_audit(path) if isinstance(one, AuditEntry)]


def test_an_entry_is_one_line_of_ids_and_reads_as_it_was_written(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit", role="gateway", clock=lambda: 1_796_040_000.5)
    log.note("session_erased", tenant="ann", key_id="k1", subject={"session": "s\u00e9\n1", "incarnation": "abc"})
    [line] = (tmp_path / "audit").read_bytes().splitlines()
    assert json.loads(line)["at"] == "2026-11-30T12:00:00.500Z"
    assert entries_of(tmp_path / "audit") == [
        AuditEntry(
            "2026-11-30T12:00:00.500Z",
            "session_erased",
            "ann",
            "k1",
            "gateway",
            {"session": "s\u00e9\n1", "incarnation": "abc"},
        )
    ]
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o600


def test_a_line_that_a_crash_cut_off_spoils_only_itself(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit", role="gateway")
    log.note("user_erased", tenant="ann", subject={"user": "ada"})
    with (tmp_path / "audit").open("ab") as file:
        file.write(b'{"at":"2026')
    log.note("user_erased", tenant="ann", subject={"user": "bob"})
    first, broken, last = read_audit(tmp_path / "audit")
    assert isinstance(first, AuditEntry) and broken == BrokenLine(2)
    assert isinstance(last, AuditEntry) and last.subject == {"user": "bob"}


def test_many_writers_lose_and_mix_nothing(tmp_path: Path) -> None:
    def write(number: int) -> None:
        log = AuditLog(tmp_path / "audit", role="gateway")
        for _ in range(20):
            log.note("session_erased", tenant=f"t{number}", subject={"session": "x" * 1_000})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entries_of(tmp_path / "audit")) == 120
    assert not any(isinstance(one, BrokenLine) for one in read_audit(tmp_path / "audit"))


def test_a_file_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit", role="gateway")
    log.note("key_revoked", tenant="ann")
    (tmp_path / "audit").rename(tmp_path / "audit.1")
    log.note("key_created", tenant="ann")
    assert [one.action for one in entries_of(tmp_path / "audit")] == ["key_created"]


def test_an_erasure_is_on_disk_before_it_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    log = AuditLog(tmp_path / "audit", role="gateway")
    for action, times in (("key_created", 0), ("session_erased", 1), ("fact_deleted", 2)):
        log.note(action, tenant="ann")  # type: ignore[arg-type]
        assert len(synced) == times


def test_without_a_file_it_is_an_event_of_the_log() -> None:
    with capture_logs() as events:
        AuditLog(None, role="keys").note("key_created", tenant="ann", subject={"key": "k1"})
    [event] = events
    assert (event["event"], event["action"], event["subject"]) == ("audit", "key_created", {"key": "k1"})


def test_what_cannot_be_written_is_done_all_the_same_and_stands_in_the_log(tmp_path: Path) -> None:
    before = unwritten()
    with capture_logs() as events:
        AuditLog(tmp_path, role="gateway").note("session_erased", tenant="ann", subject={"session": "s1"})
    assert unwritten() == before + 1
    [event] = events
    assert (event["event"], event["log_level"], event["subject"]) == ("audit_unwritten", "error", {"session": "s1"})


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"7",
        b"[]",
        b'{"at":"x","tenant":"ann"}',
        b'{"at":"x","action":"read","tenant":"ann"}',
        b'{"at":1,"action":"key_created","tenant":"ann"}',
        b'{"at":"x","action":"key_created","tenant":"ann","subject":{"key":7}}',
        b'{"at":"x","action":"key_created","tenant":"ann","subject":["key"]}',
        b'{"at":"x","action":["key_created"],"tenant":"ann"}',
    ],
)
def test_what_is_no_entry_is_none(line: bytes) -> None:
    assert parse_entry(line) is None


def test_every_action_reads_back(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit", role="gateway")
    for action in ACTIONS:
        log.note(action, tenant="ann")
    assert [one.action for one in entries_of(tmp_path / "audit")] == list(ACTIONS)
