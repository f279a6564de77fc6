"""In which order the supervisor starts processes."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from prefold.errors import UnavailableError
from prefold.stack.supervisor import Part, Supervisor

WITHIN = timedelta(seconds=20)


def part(name: str, said: Path, is_ready: Callable[[], bool], **fields: str) -> Part:
    """A process that notes its name and stays."""
    command = ["/bin/sh", "-c", f"echo {name} >> {said}; exec sleep 60"]
    return Part(name, command, {}, is_ready=is_ready, ready_within=WITHIN, **fields)  # type: ignore[arg-type]


def test_an_early_part_starts_before_the_stage_before_it_is_ready_and_the_last_when_the_others_are(
    tmp_path: Path,
) -> None:
    said = tmp_path / "said"
    seen: list[set[str]] = []

    def names() -> set[str]:
        return set(said.read_text().split()) if said.exists() else set()

    def others_are_there() -> bool:
        seen.append(names())
        return {"store", "early"} <= seen[-1]

    stages = [
        [part("store", said, others_are_there)],
        [
            part("early", said, others_are_there, starts="early"),
            part("last", said, lambda: "last" in names(), starts="last"),
        ],
    ]
    supervisor = Supervisor(stages, tmp_path, lambda _: None)
    try:
        assert supervisor.start()
        assert names() == {"store", "early", "last"}
        assert all("last" not in one for one in seen)
        assert set(supervisor.pids()) == {"store", "early", "last"}
    finally:
        supervisor.stop()
    assert supervisor.pids() == {}


def test_an_early_part_that_ends_fails_the_start_and_nothing_is_left(tmp_path: Path) -> None:
    said = tmp_path / "said"
    broken = Part("early", ["/bin/sh", "-c", "echo no such thing; exit 3"], {}, is_ready=lambda: False, starts="early")
    stages = [[part("store", said, said.exists)], [broken, part("last", said, lambda: True, starts="last")]]
    supervisor = Supervisor(stages, tmp_path, lambda _: None)
    with pytest.raises(UnavailableError, match="early ended at its start"):
        supervisor.start()
    assert supervisor.pids() == {}
    assert "last" not in said.read_text()


def test_a_failed_start_shows_the_lines_of_this_run_alone(tmp_path: Path) -> None:
    (tmp_path / "mute.log").write_text("a line of the run before\n")
    (tmp_path / "loud.log").write_text("a line of the run before\n")
    for name, says, shown in (("mute", "", "has written nothing"), ("loud", "echo it is broken;", "it is broken")):
        broken = Part(name, ["/bin/sh", "-c", f"{says} exit 3"], {}, is_ready=lambda: False)
        with pytest.raises(UnavailableError, match=shown) as failed:
            Supervisor([[broken]], tmp_path, lambda _: None).start()
        assert "before" not in failed.value.detail
