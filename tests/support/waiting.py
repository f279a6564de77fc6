"""Waiting for a condition in tests, instead of sleeping."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_PAUSE_SECONDS = 0.01


def wait_until(description: str, predicate: Callable[[], T], timeout: float = 10.0) -> T:
    """The first truthy value of ``predicate``; fails the test, saying ``description``, after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain until {description} (last: {value!r})")
        time.sleep(_PAUSE_SECONDS)
    return value


async def wait_until_async(description: str, predicate: Callable[[], Awaitable[T]], timeout: float = 10.0) -> T:
    """The same for an async ``predicate``, which may do I/O; the loop goes on between two looks."""
    deadline = time.monotonic() + timeout
    while not (value := await predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain until {description} (last: {value!r})")
        await asyncio.sleep(_PAUSE_SECONDS)
    return value
