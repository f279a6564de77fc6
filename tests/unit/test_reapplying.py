"""Which erasures an audit log tells of, and what becomes of each at a gateway that answers so or so."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from prefold.audit import AuditLog
from prefold.cli.main import main as prefold
from prefold.reapplying.calling import Eraser, Outcome
from prefold.reapplying.reading import Erasure, erasures_since

BEGUN = datetime(2026, 11, 30, 3, tzinfo=UTC)
RESTORED = BEGUN + timedelta(hours=6)
CLEAN = {"keys_left": 0, "vectors_left": 0, "sessions_left": [], "not_checked": []}
GONE = Erasure("session", "acme", ("gone",), BEGUN)
ANNA = Erasure("user", "acme", ("anna/b",), BEGUN)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of this process are not the command's to set up."""
    monkeypatch.setattr("prefold.reapplying.main.configure_logging", lambda *_: None)


def written(path: Path, *notes: tuple[float, str, str, dict[str, str]]) -> Path:
    """An audit log: hours after the backup was begun, action, tenant, subject."""
    for hours, action, tenant, subject in notes:
        at = (BEGUN + timedelta(hours=hours)).timestamp()
        AuditLog(path, role="gateway", clock=lambda at=at: at).note(action, tenant=tenant, subject=subject)  # type: ignore[misc, arg-type]
    return path


def test_what_was_erased_since_the_backup_is_found_once_each_in_order_over_all_files(tmp_path: Path) -> None:
    first = written(
        tmp_path / "one",
        (-1, "session_erased", "acme", {"session": "before"}),
        (2, "user_erased", "acme", {"user": "anna"}),
        (1, "key_created", "acme", {"key": "k1"}),
    )
    second = written(
        tmp_path / "two",
        (1, "session_erased", "acme", {"session": "s", "incarnation": "x"}),
        (3, "session_erased", "acme", {"session": "s", "incarnation": "y"}),
        (0, "turn_removed", "beta", {"session": "s", "turn": "t:1"}),
        (4, "fact_deleted", "beta", {"user": "bo", "fact": "f1"}),
        (5, "erasures_reapplied", "beta", {"erased": "2"}),
    )
    found = erasures_since([first, second], BEGUN)
    assert [(one.kind, one.tenant, one.names) for one in found.erasures] == [
        ("turn", "beta", ("s", "t:1")),
        ("user", "acme", ("anna",)),
        ("session", "acme", ("s",)),
        ("fact", "beta", ("bo", "f1")),
    ]
    assert (found.earlier, found.entries, found.broken) == (1, 8, ())
    assert len(erasures_since([first, second], None).erasures) == 5


def test_a_line_that_tells_of_an_erasure_no_more_is_named(tmp_path: Path) -> None:
    log = written(tmp_path / "log", (1, "session_erased", "acme", {}), (1, "user_erased", "acme", {"user": "anna"}))
    with log.open("a") as torn:
        torn.write('{"at":"2026-11-30T05:00:00.000Z","action":"session_er')
    found = erasures_since([log], BEGUN)
    assert [one.names for one in found.erasures] == [("anna",)]
    assert found.broken == (f"{log}: entry 1", f"{log}:3")


Answer = tuple[int, dict[str, object]]


def outcomes(
    erasures: list[Erasure], answers: Iterator[Answer], **options: object
) -> tuple[list[Outcome], list[httpx.Request]]:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        status, body = next(answers)
        if status == 0:
            raise httpx.ConnectError("refused")
        return httpx.Response(status, json=body)

    now = iter(range(1000))
    with httpx.Client(transport=httpx.MockTransport(answer), base_url="http://gateway") as http:
        eraser = Eraser(
            http,
            {"acme": "pf_key"},
            patience=timedelta(seconds=4),
            restored=RESTORED,
            clock=lambda: float(next(now)),
            pause=lambda _: None,
        )
        return list(eraser.run(erasures)), asked


@pytest.mark.parametrize(
    ("answers", "result"),
    [
        ([(200, CLEAN)], "erased"),
        ([(404, {"code": "session_not_found"})], "nothing_there"),
        ([(410, {"code": "session_erased"})], "nothing_there"),
        ([(404, {"detail": "Not Found"})], "failed"),
        ([(404, {"code": "not_found"})], "failed"),
        ([(200, {})], "failed"),
        ([(409, {"code": "begun_since"})], "spared"),
        ([(409, {"code": "something_else"})], "failed"),
        ([(403, {"code": "scope_missing"})], "failed"),
        ([(503, {"code": "unavailable"}), (0, {}), (200, CLEAN)], "erased"),
        ([(200, {**CLEAN, "vectors_left": None, "not_checked": ["vectors"]}), (200, CLEAN)], "erased"),
        ([(200, {**CLEAN, "keys_left": 1})] * 9, "failed"),
        ([(503, {"code": "unavailable"})] * 9, "failed"),
    ],
)
def test_an_erasure_counts_as_done_only_with_a_clean_receipt(answers: list[Answer], result: str) -> None:
    (outcome,), asked = outcomes([GONE], iter(answers))
    assert outcome.result == result
    assert asked[0].method == "DELETE"
    assert asked[0].headers["authorization"] == "Bearer pf_key"
    assert asked[0].url.path == "/v1/sessions/gone"
    assert asked[0].url.params["before"] == RESTORED.isoformat()


def test_a_user_whose_receipt_was_not_clean_is_asked_for_again_although_the_mark_is_there() -> None:
    unclean = {**CLEAN, "vectors_left": None, "not_checked": ["vectors"]}
    (outcome,), asked = outcomes([ANNA], iter([(200, unclean), (200, CLEAN)]))
    assert outcome.result == "erased"
    assert [one.url.raw_path.partition(b"?")[0] for one in asked] == [b"/v1/users/anna%2Fb"] * 2
    assert ["before" in one.url.params for one in asked] == [True, False]


def test_a_tenant_without_a_key_fails_and_the_others_go_on() -> None:
    other = Erasure("fact", "beta", ("bo", "f1"), BEGUN)
    done, asked = outcomes([other, GONE], iter([(200, CLEAN)]))
    assert [(one.erasure.tenant, one.result) for one in done] == [("beta", "failed"), ("acme", "erased")]
    assert len(asked) == 1


@pytest.mark.parametrize(("keys", "told"), [({}, "wants keys"), ({"acme": "pf_old"}, "another key for this tenant")])
def test_a_gateway_that_wants_keys_gets_the_flag_named(keys: dict[str, str], told: str) -> None:
    refusing = httpx.MockTransport(lambda _: httpx.Response(401, json={"code": "unauthenticated"}))
    with httpx.Client(transport=refusing, base_url="http://gateway") as http:
        (outcome,) = Eraser(http, keys, patience=timedelta(0)).run([GONE])
    assert outcome.result == "failed"
    assert "401 unauthenticated" in outcome.why
    assert told in outcome.why
    assert "--keys" in outcome.why


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 1), ("\n", 1), ('{"event":"gateway_ready"}\n', 1), (None, 0)],
    ids=["empty", "blank", "no log of that kind", "entries without an erasure"],
)
def test_files_without_any_entry_are_no_proof_that_nothing_was_erased(
    text: str | None, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(text or "")
    second.touch()
    if text is None:
        written(first, (1, "key_created", "acme", {"key": "k1"}))
    for more in ([], ["--dry-run"]):
        words = [str(first), str(second), "--all", "--ignore-broken", "--url", "http://127.0.0.1:9", *more]
        assert prefold(["reapply-erasures", *words]) == code
        assert ("no audit entry in these files" in capsys.readouterr().err) == bool(code)


def test_a_dry_run_tells_and_calls_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path / "log", (1, "session_erased", "acme", {"session": "gone"}))
    nobody = ["--url", "http://127.0.0.1:9", "--dry-run", "--json"]
    assert prefold(["reapply-erasures", str(log), "--since", BEGUN.isoformat(), *nobody]) == 0
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["result"], first["names"], last["planned"]) == ("planned", ["gone"], 1)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["missing", "--all"], 2),
        (["log"], 2),
        (["log", "--since", "2026-11-30T03:00:00"], 2),
        (["log", "--all", "--keys", "keys"], 2),
        (["log", "--all", "--patience", "0", "--url", "http://127.0.0.1:9"], 1),
    ],
)
def test_the_exit_code_tells_of_what_is_not_done(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "log", (1, "session_erased", "acme", {"session": "gone"}))
    (tmp_path / "keys").write_text("acme one secret-too-many\n")
    assert exit_code(lambda: prefold(["reapply-erasures", *arguments])) == code
    assert "secret" not in "".join(capsys.readouterr())


def exit_code(call: Callable[[], int]) -> int:
    try:
        return call()
    except SystemExit as ended:
        return int(ended.code or 0)
