"""A backend that forks sessions, compared with what the oracles expect."""

from dataclasses import replace
from typing import Any

from prefold.errors import PrefoldError, UnavailableError
from prefold.storage.limits import STAGE_HELD, milliseconds
from tests.property.histories.backend import Backend, LostError, must_be
from tests.property.histories.held import TENANT, Held
from tests.property.histories.wire import CONFIRMS_FORK


async def fork(backend: Backend, source: Held, target: Held, at_seq: int | None) -> None:
    """What else happens meanwhile comes before it, or the copy begins anew: the fork is what the source is at the end."""
    # A copy that begins anew finds the stage of its own first attempt.
    target.staged_until_ms = backend.now_ms + 9 * milliseconds(STAGE_HELD)
    try:
        view, _ = await backend.send(lambda: backend.sessions.fork(TENANT, source.name, target.name, at_seq), target)
    except LostError:
        await _lost(backend, source, target)
        return
    except UnavailableError:
        raise
    except PrefoldError as error:
        if error.code not in _answers(backend, source, target, at_seq):
            must_be(error, _refusal(source, target, at_seq))
        target.may_be_staged = target.may_be_staged or target.oracle is None
        backend.count(f"fork: {error.code}")
        return
    if backend.wire.interrupted == CONFIRMS_FORK:
        backend.count("fork: then its source changed")
        source = replace(source, oracle=source.before_interruption[0], incarnation=source.before_interruption[1])
    assert "" in _answers(backend, source, target, at_seq)
    if target.oracle is None or target.unconfirmed not in (None, source.life.changes):
        await _begins(backend, source, target)
        backend.count("fork: made")
    else:
        backend.count("fork: the same again")
    target.unconfirmed = None
    assert view.head_seq == target.life.head
    assert view.ref.incarnation not in target.former


async def _begins(backend: Backend, source: Held, target: Held) -> None:
    client: Any = backend.sessions.client
    label, upto = (await client.hget(target.keys.meta, "forked_from")).decode().split(" ")
    assert label == f"{source.keys.label}:{source.incarnation}", "made of another life"
    if target.oracle is not None:
        target.ends(erased=False)
    await backend.begins(target, source.life.forked(int(upto)))
    target.origin = (source.name, source.incarnation, int(upto))
    target.gone |= source.gone
    target.may_be_staged, target.staged_until_ms = False, 0
    source.forks.add(target.name)


async def _lost(backend: Backend, source: Held, target: Held) -> None:
    """Nobody knows; perhaps it is asked for again, perhaps its source changes before."""
    found = await backend.state(target)
    unchecked = await backend.sessions.client.hget(target.keys.meta, "unchecked")
    if found is None:
        if target.oracle is not None:
            assert target.unconfirmed not in (None, source.oracle and source.oracle.changes), "a sound fork is gone"
            target.ends(erased=False)
        target.may_be_staged = True
        backend.count("fork: left half done")
        return
    if target.oracle is None or found.incarnation != target.incarnation:
        await _begins(backend, source, target)
        backend.count("fork: made, nobody knows")
    target.unconfirmed = int(unchecked) if unchecked else None


def _answers(backend: Backend, source: Held, target: Held, at_seq: int | None) -> set[str]:
    """What may be said of it. How far a whole fork reaches is seen at its begin, before what may come between."""
    answers = {_refusal(source, target, at_seq)}
    if at_seq is None and backend.wire.interrupted and source.before_interruption[0] is not None:
        oracle, incarnation = source.before_interruption
        answers.add(_refusal(replace(source, oracle=oracle, incarnation=incarnation), target, at_seq))
    return answers


def _refusal(source: Held, target: Held, at_seq: int | None) -> str:
    if source.oracle is None:
        return "session_erased" if source.erased else "session_not_found"
    if at_seq is not None and at_seq > source.oracle.head:
        return "seq_ahead"
    upto = source.oracle.head if at_seq is None else at_seq
    if target.oracle is not None and target.origin != (source.name, source.incarnation, upto):
        return "session_exists"
    return ""
