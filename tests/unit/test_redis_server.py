"""Which Redis server the stack embeds, and how."""

from pathlib import Path

import pytest

from prefold.errors import ConfigurationError
from prefold.stack.redis_server import (
    RedisServer,
    bundled_redis_server,
    find_redis_server,
    queue_options,
    session_options,
    with_options,
)


def program(folder: Path, name: str, says: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def test_a_new_enough_server_on_the_path_is_taken(tmp_path: Path) -> None:
    found = program(tmp_path, "redis-server", "echo Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc")
    assert find_redis_server(str(tmp_path)) == found


def test_valkey_is_taken_before_redis(tmp_path: Path) -> None:
    program(tmp_path, "redis-server", "echo Redis server v=8.2.3 sha=0")
    found = program(tmp_path, "valkey-server", "echo Valkey server v=9.1.2 sha=0")
    assert find_redis_server(str(tmp_path)) == found


@pytest.mark.parametrize(
    "says", ["echo Redis server v=6.2.14 sha=0", "exit 1", "echo something else", "exec /no/such/interpreter"]
)
def test_a_server_that_is_old_or_broken_is_passed_over_for_the_wheels(tmp_path: Path, says: str) -> None:
    program(tmp_path, "redis-server", says)
    assert find_redis_server(str(tmp_path)) == bundled_redis_server()


def test_without_a_server_on_the_path_the_wheels_is_taken(tmp_path: Path) -> None:
    assert find_redis_server(str(tmp_path)) == bundled_redis_server()


def test_a_socket_path_that_the_kernel_would_cut_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        RedisServer(bundled_redis_server(), Path("/tmp") / ("x" * 100) / "redis.sock", tmp_path)


def pairs(options: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(options[::2], options[1::2], strict=True))


@pytest.mark.parametrize(("durability", "fsync"), [("durable", "always"), ("fast", "everysec")])
def test_the_durability_class_decides_when_the_file_is_synced(durability: str, fsync: str) -> None:
    options = pairs(session_options("durable" if durability == "durable" else "fast"))
    assert (options["--appendonly"], options["--appendfsync"]) == ("yes", fsync)


def test_no_server_drops_data_to_make_room() -> None:
    for options in (session_options("durable"), queue_options()):
        assert pairs(options)["--maxmemory-policy"] == "noeviction"


def test_a_later_option_wins() -> None:
    assert pairs(with_options(queue_options(), appendonly="yes"))["--appendonly"] == "yes"
