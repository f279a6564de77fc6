"""Which processes make the stack, and how each is started."""

import http
import http.client
import os
import secrets
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from prefold.config.flags import environment_of, variable_of
from prefold.stack.places import DataFolder, check_port_is_free, free_port
from prefold.stack.redis_server import RedisServer, find_redis_server, queue_options, session_options
from prefold.stack.settings import StackSettings
from prefold.stack.supervisor import Part

LOOPBACK = "127.0.0.1"

_SOON = {"PREFOLD_WORKER_STOP_SECONDS": "1"}
"""A worker that is told to stop gives its work back while there is time: parts are killed after seconds."""

_GATEWAYS_OWN = frozenset({"PREFOLD_API_KEYS_SECRET", "PREFOLD_API_KEYS_SECRET_FILE"})
"""Nobody else needs it."""

_NICE = {"worker memory": 10}
"""By how much a role yields the CPU to the others from its first moment: what is remembered may come later."""

RoleCommand = Callable[[str], list[str]]
"""Command line of a role such as ``worker embed``."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The processes by stage, and the addresses at which they will be."""

    stages: tuple[tuple[Part, ...], ...]
    gateway_url: str
    probe_url: str
    """Of the gateway: its metrics, without a key."""
    redis_url: str
    queue_url: str
    qdrant_url: str
    qdrant_api_key: str | None = field(repr=False)


def role_command(role: str) -> list[str]:
    """``prefold ROLE``, by the script that belongs to this interpreter, so that ``ps`` shows the role."""
    script = Path(sysconfig.get_path("scripts")) / "prefold"
    program = [str(script)] if script.exists() else [sys.executable, "-m", "prefold.cli.main"]
    return [*program, *role.split()]


def make_plan(settings: StackSettings, folder: DataFolder, command: RoleCommand = role_command) -> Plan:
    """Decide on ports and programs. Raises ConfigurationError where the port is taken or no Redis is found."""
    if settings.port:
        check_port_is_free(settings.host, settings.port)
    port = settings.port or free_port(settings.host)
    probe_host, probe_port = _probe_of(settings)
    qdrant_url = settings.qdrant_url or f"http://{LOOPBACK}:{free_port(LOOPBACK)}"
    servers = _redis_servers(settings, folder)
    redis_url = settings.redis_url or servers["sessions"].url
    queue_url = settings.queue_url or servers["queue"].url

    api_key = _vectors_key(settings)
    environment = environment_of_parts(settings)
    environment |= {} if api_key is None else {"PREFOLD_QDRANT_API_KEY": api_key}
    environment |= {
        "PREFOLD_REDIS_URL": redis_url,
        "PREFOLD_QUEUE_URL": queue_url,
        "PREFOLD_QDRANT_URL": qdrant_url,
        "PREFOLD_PORT": str(port),
    }
    inner = {name: value for name, value in environment.items() if name not in _GATEWAYS_OWN}
    redis = tuple(_redis_part(name, server, folder) for name, server in servers.items())
    vectors = () if settings.qdrant_url else (_vectors_part(qdrant_url, inner, folder, command),)
    roles = tuple(
        Part(f"{role} {number}" if number > 1 else role, command(role), inner, nice=_NICE.get(role, 0), starts="last")
        for role, number in _numbered(roles_of(settings))
    )
    is_ready = _gateway_is_ready(settings.host, port)
    probed = environment | {"PREFOLD_PROBE_HOST": probe_host, "PREFOLD_PROBE_PORT": str(probe_port)}
    gateway = Part("gateway", command("gateway"), probed, is_ready=is_ready, starts="early")
    stages = (redis, vectors, (gateway, *roles))
    probe_url = _url(_reachable(probe_host), probe_port)
    return Plan(stages, _url(settings.host, port), probe_url, redis_url, queue_url, qdrant_url, api_key)


def _probe_of(settings: StackSettings) -> tuple[str, int]:
    """Host and port of the gateway's. ConfigurationError: the port is taken."""
    if not settings.probe_port:
        return LOOPBACK, free_port(LOOPBACK)
    check_port_is_free(settings.probe_host, settings.probe_port)
    return settings.probe_host, settings.probe_port


def _vectors_key(settings: StackSettings) -> str | None:
    """The configured key, else a new one for the embedded store: other users of this machine can reach its port."""
    if settings.qdrant_api_key is not None:
        return settings.qdrant_api_key.get_secret_value()
    return None if settings.qdrant_url else secrets.token_urlsafe(32)


def roles_of(settings: StackSettings) -> list[str]:
    """One entry a process; the same role may stand more than once."""
    workers = {"embed": settings.embed_workers, "compact": settings.compact_workers, "memory": settings.memory_workers}
    return ["dispatcher", *(f"worker {queue}" for queue, count in workers.items() for _ in range(count))]


def environment_of_parts(settings: StackSettings) -> dict[str, str]:
    """What every process gets: our own environment with the settings that hold here."""
    ours = {variable_of(StackSettings, name) for name in StackSettings.model_fields}
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    # One port for all of them would let the first one start, and no other: the gateway alone gets one.
    fixed = {"PREFOLD_LOG_FORMAT": "json", "PREFOLD_PROBE_PORT": "0"}
    return _SOON | inherited | environment_of(settings) | fixed


def _redis_servers(settings: StackSettings, folder: DataFolder) -> dict[str, RedisServer]:
    wanted = {}
    if settings.redis_url is None:
        wanted["sessions"] = session_options(settings.durability)
    if settings.queue_url is None:
        wanted["queue"] = queue_options()
    if not wanted:
        return {}
    program = find_redis_server()
    return {
        name: RedisServer(program, folder.sockets / f"{name}.sock", folder.folder(name), options)
        for name, options in wanted.items()
    }


def _redis_part(name: str, server: RedisServer, folder: DataFolder) -> Part:
    return Part(
        f"redis {name}",
        server.command(),
        dict(os.environ),
        is_ready=server.answers,
        ready_within=timedelta(minutes=10),  # it may have a long file to load
        stop_within=timedelta(seconds=0.8),
        death_signal=signal.SIGTERM,  # it writes what it still holds, which matters for the class `fast`
        inherits=(folder.lock_descriptor,),
    )


def _vectors_part(url: str, environment: dict[str, str], folder: DataFolder, command: RoleCommand) -> Part:
    port = url.rpartition(":")[2]
    return Part(
        "vectors",
        command("vectors"),
        environment | {"PREFOLD_VECTORS_HOST": LOOPBACK, "PREFOLD_VECTORS_PORT": port},
        is_ready=lambda: _answers_http(LOOPBACK, int(port), "/readyz"),
        stop_within=timedelta(seconds=0.8),
        inherits=(folder.lock_descriptor,),
    )


def _gateway_is_ready(host: str, port: int) -> Callable[[], bool]:
    return lambda: _answers_http(_reachable(host), port, "/readyz")


def _reachable(host: str) -> str:
    return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)  # noqa: S104 - only compared


def _answers_http(host: str, port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=1)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _numbered(names: Sequence[str]) -> Iterator[tuple[str, int]]:
    for index, name in enumerate(names):
        yield name, names[: index + 1].count(name)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
