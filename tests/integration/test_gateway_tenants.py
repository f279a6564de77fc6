"""Keys and quotas at the door of a real gateway process, over connections that are kept."""

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from prefold.access import KeyFile, parse_allowances
from prefold.cli.main import main as prefold
from prefold.keys.editing import change_key_file
from tests.support.gateway_process import running_gateway
from tests.support.redis import running_redis
from tests.support.waiting import wait_until

TURN = {"role": "user", "content": "Hello, is anybody there?"}
QUOTAS = {
    "slow": {"turns_per_second": 2},
    "small": {"tokens_per_day": 300},
    "few": {"sessions": 1},
    "one": {"sessions": 1},
}


@dataclass
class House:
    """A gateway with keys, and the files that it looks at each second."""

    url: str
    keys: Path
    secret: Path
    made: list[str] = field(default_factory=list)
    """Texts of keys."""

    def flags(self) -> list[str]:
        files = {"keys-file": self.keys, "keys-secret-file": self.secret}
        flags = [word for name, path in files.items() for word in (f"--api-{name}", str(path))]
        return [*flags, "--audit-file", str(self.keys.with_name("audit"))]

    def connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=20)
        connection.connect()
        return connection


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """The logs of this process are not the command's to set up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prefold.keys.main.configure_logging", lambda *_: None)
        yield


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, quiet: None) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("tenants")
    keys, secret = folder / "keys.json", folder / "keys.secret"
    flags = ["--api-keys-file", str(keys), "--api-keys-secret-file", str(secret)]
    flags += ["--audit-file", str(folder / "audit")]
    assert prefold(["keys", "init", *flags]) == 0
    assert prefold(["keys", "create", "--tenant", "first", "--scopes", "admin", *flags]) == 0
    change_key_file(keys, lambda file: KeyFile(file.keys, parse_allowances(QUOTAS), QUOTAS, file.mark))
    with running_redis() as redis:
        more = ["--redis-url", redis.url, "--durability", "fast", "--keys-check-seconds", "1"]
        with running_gateway(folder, *more, *flags) as (_, url):
            house = House(url, keys, secret)
            yield house
    written = (folder / "gateway.log").read_text() + (folder / "audit").read_text() + keys.read_text()
    assert "keys_reloaded" in written
    assert [one for one in (secret.read_text().strip(), *house.made) if one in written] == []


def new_key(house: House, capsys: pytest.CaptureFixture[str], tenant: str, scopes: str = "append,read") -> str:
    """A key that the gateway knows already."""
    capsys.readouterr()
    assert prefold(["keys", "create", "--tenant", tenant, "--scopes", scopes, *house.flags()]) == 0
    key = capsys.readouterr().out.strip()
    house.made.append(key)
    connection = house.connect()
    wait_until("the key is known", lambda: ask(connection, key, "GET", "/v1/nothing")[0] == 404)
    connection.close()
    return key


def ask(
    connection: http.client.HTTPConnection, key: str, method: str, path: str, body: object = None
) -> tuple[int, dict[str, Any], http.client.HTTPMessage]:
    """Status, document and headers of the answer, over a connection that the server keeps."""
    headers = {"Authorization": f"Bearer {key}"} | ({"Content-Type": "application/json"} if body else {})
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    text = answer.read()
    assert connection.sock is not None, "the server closed the connection"
    return answer.status, json.loads(text), answer.headers


def append(
    connection: http.client.HTTPConnection, key: str, session: str, turns: int = 1
) -> tuple[int, dict[str, Any], Any]:
    body = {"turns": [TURN] * turns}
    return ask(connection, key, "POST", f"/v1/sessions/{session}/turns", body)


def test_a_revoked_key_is_refused_on_the_connection_that_it_keeps(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    key, other = new_key(house, capsys, "acme"), new_key(house, capsys, "acme")
    connection = house.connect()
    socket = connection.sock
    for _ in range(3):
        assert append(connection, key, "s1")[0] == 201
    assert prefold(["keys", "revoke", key.split("_")[1], *house.flags()]) == 0
    wait_until("the key is refused", lambda: append(connection, key, "s1")[0] == 401, timeout=5)
    assert ask(connection, key, "GET", "/v1/sessions/s1/context")[0] == 401
    assert append(connection, other, "s1")[0] == 201
    assert connection.sock is socket  # one connection all the time
    connection.close()


def test_a_stream_of_events_ends_with_the_key_that_opened_it(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    key = new_key(house, capsys, "acme")
    connection = house.connect()
    assert append(connection, key, "s2")[0] == 201
    connection.request("GET", "/v1/sessions/s2/events", headers={"Authorization": f"Bearer {key}"})
    stream = connection.getresponse()
    assert stream.readline() == b"retry: 2000\n"
    assert prefold(["keys", "revoke", key.split("_")[1], *house.flags()]) == 0
    assert b"event:" not in stream.read()  # it ends, long before its ten minutes
    connection.close()


def test_a_key_without_the_scope_is_refused_on_the_short_way_too(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = new_key(house, capsys, "acme", "read"), new_key(house, capsys, "acme", "append")
    connection = house.connect()
    assert append(connection, writer, "s3")[0] == 201
    assert append(connection, reader, "s3")[1]["code"] == "scope_missing"
    assert ask(connection, writer, "GET", "/v1/sessions/s3/context")[1]["code"] == "scope_missing"
    assert ask(connection, reader, "GET", "/v1/sessions/s3/context")[0] == 200
    connection.close()


def test_turns_above_the_rate_are_refused_with_a_time_to_come_back_and_others_are_not(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    slow, other = new_key(house, capsys, "slow"), new_key(house, capsys, "acme")
    connection = house.connect()
    start, taken = time.monotonic(), 0
    while (answer := append(connection, slow, "s1", 2))[0] == 201:
        taken += 2
    assert 2 <= taken <= 2 * (2 + time.monotonic() - start) + 2 + 2  # rate, burst; two batches, one request
    status, problem, headers = answer
    assert (status, problem["code"], problem["quota"]) == (429, "quota_exceeded", "turns_per_second")
    assert 1 <= int(headers["Retry-After"]) <= 10
    assert [append(connection, other, "s4")[0] for _ in range(20)] == [201] * 20
    assert ask(connection, slow, "GET", "/v1/sessions/s1/context")[0] == 200  # reading goes on
    wait_until("there are turns again", lambda: append(connection, slow, "s1")[0] == 201, timeout=15)
    connection.close()


def test_tokens_of_a_day_end_with_a_refusal_until_the_next_one(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    key = new_key(house, capsys, "small")
    connection = house.connect()
    answers = [append(connection, key, "s1", 5) for _ in range(10)]
    status, problem, headers = answers[-1]
    assert (status, problem["quota"]) == (429, "tokens_per_day")
    assert 1 <= int(headers["Retry-After"]) <= 86_400
    stored = sum(turn["tokens"] for _, answer, _ in answers if "turns" in answer for turn in answer["turns"])
    assert 300 - 5 <= stored <= 300 + 100
    connection.close()


def test_another_session_than_the_tenant_may_have_is_refused_however_it_is_begun(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    key = new_key(house, capsys, "few", "admin")
    connection = house.connect()
    assert append(connection, key, "s1")[0] == 201
    for status, problem, _ in (
        append(connection, key, "s2"),
        ask(connection, key, "PUT", "/v1/sessions/s2", {"user": "ada"}),
        ask(connection, key, "POST", "/v1/sessions/s1/fork", {"session": "s2"}),
    ):
        assert (status, problem["quota"]) == (429, "sessions")
    assert append(connection, key, "s1")[0] == 201
    assert ask(connection, key, "DELETE", "/v1/sessions/s1")[0] == 200
    assert append(connection, key, "s2")[0] == 201
    connection.close()


def test_a_session_that_was_refused_takes_no_place_of_another(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    key = new_key(house, capsys, "one", "admin")
    connection = house.connect()
    assert append(connection, key, "s1")[0] == 201
    assert ask(connection, key, "DELETE", "/v1/sessions/s1")[0] == 200
    two_of_a_name = {"turns": [{**TURN, "id": "t"}, {**TURN, "id": "t", "content": "something else"}]}
    for number, (method, path, body, expected) in enumerate(
        [
            ("POST", "/v1/sessions/s1/turns", TURN, 410),
            ("POST", "/v1/sessions/new1/turns", two_of_a_name, 409),
            ("PUT", "/v1/sessions/new2", {"system": "word " * 900, "limits": {"hard_limit_tokens": 1000}}, 422),
            ("POST", "/v1/sessions/s1/fork", {"session": "new3", "at_seq": 1}, 410),
        ]
    ):
        assert ask(connection, key, method, path, body)[0] == expected
        assert append(connection, key, f"next{number}")[0] == 201
        assert ask(connection, key, "DELETE", f"/v1/sessions/next{number}")[0] == 200
    connection.close()


def test_a_header_that_is_huge_is_refused_before_it_is_read_as_a_key(house: House) -> None:
    connection = house.connect()
    connection.request("GET", "/v1/sessions/s1", headers={"Authorization": "Bearer " + "x" * 1_000_000})
    answer = connection.getresponse()
    assert answer.status == 431
    connection.close()
