"""A context that is served as it is stored is the same by the short way and by the general one."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prefold.assembly import ServedContext, assemble
from prefold.assembly.whole import whole
from prefold.conversation.project import parse_lines
from prefold.storage.types import StoredContext
from prefold.tokens import load_counter
from tests.support.contexts import random_context


def known(stored: StoredContext) -> StoredContext:
    return replace(stored, context_tokens=sum(one.tokens for one in parse_lines(stored.body)[1]))


def general(stored: StoredContext) -> ServedContext:
    return assemble(replace(stored, context_tokens=None), load_counter())


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
@example(seed=0)
def test_both_ways_serve_the_same(seed: int) -> None:
    stored = known(random_context(seed))
    short = whole(stored)
    if short is not None:
        assert short.to_json() == general(stored).to_json()
        assert short == general(stored)


def test_the_short_way_is_taken_by_contexts_that_fit() -> None:
    """Without this the test above could compare nothing."""
    taken = [whole(known(random_context(seed))) is not None for seed in range(60)]
    assert sum(taken) >= 15


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (b'"tokens":', b'"token":'),
        (b'"role":"user"', b'"role":"nobody"'),
        (b"]}\n", b"] }\n"),
        (b'"content":[', b'"content" :['),
    ],
)
def test_a_line_that_no_script_writes_is_refused_as_ever(good: bytes, bad: bytes) -> None:
    stored = next(one for one in (known(random_context(seed)) for seed in range(60)) if whole(one) is not None)
    head, lines = stored.body.split(b"\n", 1)
    broken = replace(stored, body=head + b"\n" + lines.replace(good, bad, 1))
    assert broken.body != stored.body
    with pytest.raises(ValueError, match="not a line of a context"):
        assemble(broken, load_counter())
