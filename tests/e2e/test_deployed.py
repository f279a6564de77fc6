"""What ``deploy/`` ships, in use: Redis with its files, and every process under its own user."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from prefold.cli.main import main as prefold
from prefold.client import Prefold
from prefold.errors import PrefoldError
from prefold.storage.keys import SessionKeys, TenantKeys
from tests.support.deployed import PROBER, ROLES, Deployed, deployed
from tests.support.embedding_server import embedding_server
from tests.support.made_keys import MadeKeys
from tests.support.talking import is_clean, seen, talk
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(180)

QUOTAS = {"*": {"turns_per_second": 500, "sessions": 100, "tokens_per_day": 1_000_000, "builds_per_hour": 100}}
FORBIDDEN = (
    "FLUSHALL",
    "FLUSHDB",
    "KEYS *",
    "CONFIG SET maxmemory 1",
    "CONFIG REWRITE",
    "SHUTDOWN NOSAVE",
    "ACL LIST",
    "ACL SETUSER gateway nopass",
    "SCRIPT FLUSH",
    "FUNCTION FLUSH",
    "MONITOR",
    "CLIENT KILL TYPE normal",
    "REPLICAOF 127.0.0.1 1",
    "SWAPDB 0 1",
    "MIGRATE 127.0.0.1 1 key 0 1",
    "RESTORE pf1:other 0 x",
    "GET other:key",
    "SET other:key 1",
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> MadeKeys:
    return MadeKeys(tmp_path_factory.mktemp("keys"), QUOTAS)


@pytest.fixture(scope="module")
def backend(keys: MadeKeys) -> dict[str, str]:
    return keys.header("default", "append,read,erase,admin")


@pytest.fixture(scope="module")
def stack(keys: MadeKeys, backend: dict[str, str]) -> Iterator[Deployed]:
    with (
        embedding_server() as embeddings,
        deployed(embeddings, ingest_tenants="default,acme", **keys.settings) as running,
    ):
        running.start(*ROLES)
        yield running


@pytest.fixture
def api(stack: Deployed, backend: dict[str, str]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.gateway_url(), timeout=30, headers=backend) as client:
        yield client


def test_every_process_does_its_whole_job_under_its_own_user_and_nothing_of_it_is_refused(
    stack: Deployed, api: httpx.Client
) -> None:
    talk(api, "jobs", "I live in Lisbon, and the printer there jams.", user="mara", turns=40)
    with stack.redis("ingest-acme") as publisher:
        turn = {"id": "p1", "role": "user", "content": "The parcel is late."}
        for said in (json.dumps(turn), "no turn"):
            publisher.xadd(TenantKeys.of("acme").ingest, {"v": "1", "session": "published", "turn": said})
    with Prefold.direct(stack.address("direct-acme")["PREFOLD_REDIS_URL"], tenant="acme") as direct:
        direct.append("direct", "user", "The heron is grey.")
        assert "heron" in str(direct.context("direct").messages)
        wait_until("what was published is there", lambda: has_turn(direct, "published"), timeout=20)

    wait_until("a summary is written", lambda: seen(api, "jobs")["swaps"] or seen(api, "jobs")["standby"], timeout=30)
    wait_until("the turns are embedded", lambda: seen(api, "jobs")["embedded_to"] == 80, timeout=30)
    wait_until("a fact is learnt", lambda: api.get("/v1/users/mara/facts").json()["facts"], timeout=40)
    assert api.post("/v1/search", json={"query": "printer"}).raise_for_status().json()["results"]
    for call, path, body in (
        ("GET", "/context?query=printer", None),
        ("PUT", "/turns/u30", {"role": "user", "content": "Something else."}),
        ("DELETE", "/turns/u31", None),
        ("POST", "/rewind", {"to_seq": 70}),
        ("POST", "/fork", {"session": "fork", "at_seq": 20}),
        ("PUT", "/state", {"goal": "A printer that works."}),
        ("GET", "/contexts", None),
        ("POST", "/close", None),
    ):
        api.request(call, f"/v1/sessions/jobs{path}", json=body).raise_for_status()
    api.get("/v1/usage?days=3").raise_for_status()
    for path in ("sessions/jobs", "users/mara"):  # workers that have it in hand may write once more
        wait_until("the receipt is clean", lambda at=path: is_clean(api.delete(f"/v1/{at}").json()), timeout=20)  # type: ignore[misc]
    # A backend of one tenant may not read the server's settings, so its answers promise no more than `fast`.
    assert {(user, what) for user, _, what in stack.sessions.refusals()} == {("direct-acme", "config|get")}
    assert stack.queue.refusals() == []


def has_turn(direct: Prefold, session: str) -> bool:
    try:
        return direct.session(session).head_seq == 1
    except PrefoldError:
        return False


def test_an_operator_sees_the_stack_under_a_user_that_may_not_harm_it(
    stack: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**stack.address("operator"), "PREFOLD_QDRANT_URL": stack.vectors.url}.items():
        monkeypatch.setenv(name, value)
    for command in ("deadletters", "doctor", "status"):
        monkeypatch.setattr(f"prefold.{command}.main.configure_logging", lambda *_: None)
    for called in (["doctor"], ["dead-letters", "list"], ["status"], ["cost"]):
        assert prefold(called) in (0, 1)
        assert "permission" not in "".join(capsys.readouterr())
    assert {user for user, _, _ in stack.sessions.refusals() + stack.queue.refusals()} <= {"direct-acme"}


@pytest.mark.parametrize("server", ["sessions", "queue"])
def test_no_user_may_do_what_its_process_does_not_do(stack: Deployed, server: str) -> None:
    variable = {"sessions": "PREFOLD_REDIS_URL", "queue": "PREFOLD_QUEUE_URL"}[server]
    users = [path.stem for path in stack.folder.glob("*.env") if variable in stack.address(path.stem)]
    assert len(users) >= 6
    allowed = []
    for user in users:
        with Redis.from_url(stack.address(user)[variable], client_name=PROBER) as redis:
            assert redis.ping()
            allowed += [(user, one) for one in FORBIDDEN if not is_refused(redis, one)]
    assert allowed == []
    with Redis.from_url(f"unix://{stack.folder}/{server}.sock") as nobody, pytest.raises(AuthenticationError):
        nobody.ping()


def is_refused(redis: Redis, command: str) -> bool:
    try:
        ask: Any = redis.execute_command
        ask(*command.split())
    except NoPermissionError:
        return True
    except ResponseError:
        return False
    return False


def test_what_belongs_to_one_tenant_is_out_of_reach_for_the_users_of_another(
    stack: Deployed, api: httpx.Client
) -> None:
    talk(api, "private", "The canary is yellow.")
    keys = SessionKeys.of("default", "private")
    own, other = TenantKeys.of("acme").ingest, TenantKeys.of("default").ingest
    with stack.redis("ingest-acme", client_name=PROBER) as publisher:
        for refused in (
            ("XADD", other, "*", "v", "1"),
            ("XADD", keys.turns, "*", "v", "1"),
            ("XRANGE", own, "-", "+"),
            ("XLEN", own),
            ("XTRIM", own, "MAXLEN", "0"),
            ("DEL", own),
            ("GET", keys.context),
            ("EVALSHA", "0" * 40, "1", other),
        ):
            assert is_refused_as(publisher, refused), refused
    with stack.redis("direct-acme", client_name=PROBER) as direct:
        for refused in (
            ("GET", keys.context),
            ("HGETALL", keys.meta),
            ("XRANGE", keys.turns, "-", "+"),
            ("UNLINK", keys.turns),
            ("XADD", other, "*", "v", "1"),
        ):
            assert is_refused_as(direct, refused), refused
    url = stack.address("direct-acme")["PREFOLD_REDIS_URL"]
    with (
        Prefold.direct(f"{url}?client_name={PROBER}", tenant="default") as thief,
        pytest.raises((PrefoldError, NoPermissionError)),
    ):
        thief.append("private", "user", "Forged.")
    assert seen(api, "private")["head_seq"] == 2


def is_refused_as(redis: Redis, command: tuple[str, ...]) -> bool:
    try:
        ask: Any = redis.execute_command
        ask(*command)
    except NoPermissionError:
        return True
    return False
