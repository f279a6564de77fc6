"""Whose ingest streams are read, as it is set."""

import pytest
from pydantic import ValidationError

from prefold.conversation.ids import check_name
from prefold.dispatcher.settings import DispatcherSettings
from prefold.errors import InvalidInputError


def names(text: str) -> tuple[str, ...]:
    return DispatcherSettings(ingest_tenants=text).ingest_names


def test_tenants_are_named_by_commas_each_once_and_none_is_nobody() -> None:
    assert names("acme") == ("acme",)
    assert names("acme, beta ,acme,a.b@c") == ("acme", "beta", "a.b@c")
    assert names("none") == ()
    assert DispatcherSettings().ingest_names == ()


@pytest.mark.parametrize("name", ["a", "a:b", "ä", "-a", "a b", "a" * 128, "a" * 129, "A.z_0@+=|~-", "{a}", "*"])
def test_a_tenant_may_be_named_here_exactly_if_it_may_be_named_at_all(name: str) -> None:
    try:
        allowed = check_name(name, "tenant") == name
    except InvalidInputError:
        allowed = False
    if allowed:
        assert names(name) == (name,)
    else:
        with pytest.raises(ValidationError):
            names(name)


def test_a_list_with_a_gap_is_refused() -> None:
    with pytest.raises(ValidationError):
        names("acme,,beta")
