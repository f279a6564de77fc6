"""What a process writes to standard error. In processes of their own, because logging is configured once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from prefold.audit import AuditEntry, parse_entry, read_audit
from tests.support.sources import ROOT

CODE = """
import logging, structlog
from prefold.config.logs import configure_logging
from prefold.config.settings import ProcessSettings

configure_logging("gateway", ProcessSettings())
log = structlog.get_logger()
log.debug("hidden")
log.info("swap", session="s-1", freed_tokens=12)
logging.getLogger("rq.worker").warning("from a %s", "library")
logging.getLogger("httpx").info("hidden")
secret_local = "my secret"
try:
    try:
        {}["my words"]
    except KeyError as error:
        raise ValueError("my words, too") from error
except ValueError:
    log.exception("failed")
    logging.getLogger("library").exception("failed too")
"""


TOGETHER = """
import json, sys, threading
import structlog
from prefold.config.logs import configure_logging, logged_together
from prefold.config.settings import ProcessSettings

pieces = []

class Stream:
    def write(self, text):
        pieces.append(text)
    def flush(self):
        pieces.append("flushed")
    def isatty(self):
        return False

error, sys.stderr = sys.stderr, Stream()
with logged_together():
    pass
configure_logging("gateway", ProcessSettings())
log = structlog.get_logger()
with logged_together():
    pass
try:
    with logged_together():
        log.info("one")
        other = threading.Thread(target=lambda: log.info("other"))
        other.start()
        other.join()
        log.info("two")
        raise KeyError
except KeyError:
    pass
log.info("three")
lines = [piece if piece == "flushed" else [json.loads(line)["event"] for line in piece.splitlines()] for piece in pieces]
error.write(json.dumps(lines))
"""

AUDITED = """
import structlog
from prefold.audit import AuditLog
from prefold.config.logs import configure_logging
from prefold.config.settings import ProcessSettings

configure_logging("gateway", ProcessSettings())
structlog.get_logger().info("swap", session="s-1")
AuditLog(None, role="gateway").note("session_erased", tenant="acme", subject={"session": "s-1", "incarnation": "abc"})
"""


def run(code: str = CODE, **environment: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PREFOLD_")} | environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=30, check=True)
    assert done.stdout == ""
    return done.stderr


def events(**environment: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(**environment).splitlines()]


def test_away_from_a_terminal_every_event_is_a_line_of_json_with_its_role() -> None:
    found = events()
    assert [event["event"] for event in found] == ["swap", "from a library", "failed", "failed too"]
    assert {event["role"] for event in found} == {"gateway"}
    assert found[0]["freed_tokens"] == 12
    assert all({"level", "timestamp"} <= event.keys() for event in found)


def test_an_exception_comes_with_type_place_and_cause_and_without_its_message() -> None:
    for event in events():
        if event["level"] == "error":
            own, cause = event["exception"].splitlines()
            assert own.startswith("ValueError at <string>:17 ")
            assert cause.startswith("KeyError at <string>:15 ")
    assert "my words" not in run()


def test_the_command_of_the_page_on_restores_finds_the_audit_log_among_the_logs(tmp_path: Path) -> None:
    (tmp_path / "LOGS").write_text(run(AUDITED))
    [command] = re.findall(r"`(grep [^`]*audit\.jsonl)`", (ROOT / "docs" / "deployment.md").read_text("utf-8"))
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, timeout=30)
    [entry] = read_audit(tmp_path / "audit.jsonl")
    assert isinstance(entry, AuditEntry) and entry.action == "session_erased" and entry.subject["session"] == "s-1"


def test_a_key_is_all_that_its_command_prints_when_the_audit_file_cannot_be_written(tmp_path: Path) -> None:
    names = {
        "PREFOLD_API_KEYS_FILE": "keys",
        "PREFOLD_API_KEYS_SECRET_FILE": "secret",
        "PREFOLD_AUDIT_FILE": "no/audit",
    }
    env = os.environ | {name: str(tmp_path / path) for name, path in names.items()}

    def keys(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "prefold.cli.main", "keys", *words]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=30, check=True)

    keys("init")
    done = keys("create", "--tenant", "acme", "--scopes", "read")
    assert re.fullmatch(r"pf_[^\s]+\n", done.stdout)
    logged = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [(event["event"], event["action"]) for event in logged] == [("audit_unwritten", "key_created")]
    entry = parse_entry(json.dumps(logged[0]).encode())
    assert entry is not None and entry.tenant == "acme", "it can be added to the audit log as it is"


def test_the_folder_is_all_that_a_backup_prints_when_the_audit_file_cannot_be_written(
    tmp_path: Path, redis_url: str
) -> None:
    (tmp_path / "vectors").mkdir()
    command = [sys.executable, str(ROOT / "deploy" / "backup" / "backup.py"), str(tmp_path / "backups")]
    done = subprocess.run(
        [*command, "--sessions", redis_url, "--vectors-dir", str(tmp_path / "vectors")],
        env=os.environ | {"PREFOLD_AUDIT_FILE": str(tmp_path / "no" / "audit")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == [str(path) for path in (tmp_path / "backups").iterdir()]
    assert '"audit_unwritten"' in done.stderr


def test_the_level_is_set_by_a_variable() -> None:
    assert "hidden" in [event["event"] for event in events(PREFOLD_LOG_LEVEL="debug")]
    assert [event["event"] for event in events(PREFOLD_LOG_LEVEL="error")] == ["failed", "failed too"]


def test_the_readable_form_shows_no_local_variable() -> None:
    text = run(PREFOLD_LOG_FORMAT="console")
    assert "ValueError at <string>:17 " in text
    assert "my secret" not in text
    assert "my words" not in text


def test_what_a_thread_logs_together_is_written_in_one_piece_whatever_comes_of_it() -> None:
    assert json.loads(run(TOGETHER)) == [["other"], "flushed", ["one", "two"], "flushed", ["three"], "flushed"]
