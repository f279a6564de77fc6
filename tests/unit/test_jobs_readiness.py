"""What ``/readyz`` of the background says of a part that is not well."""

from redis.exceptions import NoPermissionError

from prefold.errors import UnavailableError
from prefold.jobs.readiness import states_of


async def well() -> None:
    return None


async def away() -> None:
    raise UnavailableError("does not answer")


async def closed() -> None:
    raise NoPermissionError("this user has no permissions")


async def test_whatever_is_wrong_with_a_part_is_said_of_that_part_alone() -> None:
    assert await states_of({"a": well, "b": away, "c": closed}) == {
        "a": "ok",
        "b": "does not answer",
        "c": "this user has no permissions",
    }
