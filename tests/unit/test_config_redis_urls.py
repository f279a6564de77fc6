"""Addresses of Redis: which are taken, and what they mean."""

import traceback

import pytest
from pydantic import ValidationError

from prefold.client import AsyncPrefold, Prefold
from prefold.config.flags import redacted_url
from prefold.config.redis_urls import ClusterAddress, check_server_url, check_sessions_url, is_cluster_url
from prefold.config.settings import QueueSettings, RedisSettings
from prefold.errors import InvalidInputError
from prefold.storage.hot import serves


def test_a_cluster_is_named_by_some_of_its_nodes() -> None:
    address = ClusterAddress.parse("redis+cluster://a.example:7000,10.0.0.2,[2001:db8::1]:7002")
    assert address.seeds == (("a.example", 7000), ("10.0.0.2", 6379), ("2001:db8::1", 7002))
    assert address.node_url("a.example", 7000) == "redis://a.example:7000/0"
    assert address.node_url("2001:db8::1", 7002) == "redis://[2001:db8::1]:7002/0"


def test_credentials_and_options_hold_for_every_node() -> None:
    address = ClusterAddress.parse("rediss+cluster://app:s%40cret@a:1,b:2/0?ssl_ca_certs=/etc/ca.pem&client_name=x")
    assert address.node_url("c", 3) == "rediss://app:s%40cret@c:3/0?ssl_ca_certs=/etc/ca.pem&client_name=x"
    assert not serves(address.node_url("c", 3))
    assert serves(ClusterAddress.parse("redis+cluster://:pw@a:1").node_url("c", 3))


@pytest.mark.parametrize(
    "url",
    [
        "redis+cluster://",
        "redis+cluster://a:1,",
        "redis+cluster://,a:1",
        "redis+cluster://a:0",
        "redis+cluster://a:65536",
        "redis+cluster://a:x",
        "redis+cluster://a:1/1",
        "redis+cluster://a:1#x",
        "redis+cluster://u:secret@p@a:1",
        "redis+cluster://[::1:7000",
        "unix+cluster:///a.sock",
    ],
)
def test_what_is_no_cluster_address_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ValueError, match=r"expected|only") as refusal:
        check_sessions_url(url)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("url", ["redis://h:1/0", "rediss://u:p@h", "unix:///run/redis.sock"])
def test_one_server_is_named_as_ever(url: str) -> None:
    assert check_sessions_url(url) == check_server_url(url) == url
    assert not is_cluster_url(url)


def test_sessions_may_live_on_a_cluster_and_the_queue_may_not() -> None:
    url = "redis+cluster://127.0.0.1:7000"
    assert RedisSettings(redis_url=url).redis_url == url
    with pytest.raises(ValidationError, match="only the sessions"):
        QueueSettings(queue_url=url)


@pytest.mark.parametrize(
    "url", ["http://app:secret@h:1", "127.0.0.1:6379", "", "redis://app:secret/x@h:1/0", "redis+cluster://secret@"]
)
def test_a_client_on_redis_itself_refuses_any_other_url_and_does_not_tell_it(url: str) -> None:
    for client in (Prefold, AsyncPrefold):
        with pytest.raises(InvalidInputError, match=r"expected redis://.*\(field redis_url\)$") as refused:
            client.direct(url)
        assert refused.value.field == "redis_url"
        assert "secret" not in "".join(traceback.format_exception(refused.value, limit=0))


def test_a_clusters_password_is_not_shown() -> None:
    assert redacted_url("redis+cluster://app:secret@a:1,b:2") == "redis+cluster://********@a:1,b:2"
