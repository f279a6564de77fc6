"""Source and declaration of the events agree."""

import pytest

from prefold.telemetry.events import _GROUPS, EVENTS
from tests.support.logged_events import NamelessEventError, events_in, events_of_the_source


def test_every_event_that_is_logged_is_declared_and_every_declared_one_is_logged() -> None:
    logged = events_of_the_source()
    assert {name: logged[name] for name in logged.keys() - EVENTS.keys()} == {}, "logged, not declared"
    assert EVENTS.keys() - logged.keys() == set(), "declared, not logged"


def test_an_event_is_declared_once() -> None:
    assert sum(map(len, _GROUPS)) == len(EVENTS)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("log.info('a', b=1)", ["a"]),
        ("log.warning('a' if x else 'b')", ["a", "b"]),
        ("level = log.info\nlevel('a')", ["a"]),
        ("other.info('a'); log.bind(x=1)", []),
    ],
)
def test_names_are_read_off_every_form_of_a_call(source: str, names: list[str]) -> None:
    assert list(events_in(source)) == names


@pytest.mark.parametrize("source", ["log.info(name)", "log.error(f'a_{b}')"])
def test_a_name_that_is_put_together_is_refused(source: str) -> None:
    with pytest.raises(NamelessEventError):
        list(events_in(source))
