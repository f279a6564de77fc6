"""Case files: TOML, read and checked before anything runs. What is wrong is told with file and key."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from prefold.errors import ConfigurationError
from prefold.evaluation.shapes import ACTIONS, AnyStep, Ask, CaseFile, Facts, Search, Session, Table

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation, or several that belong together, with what is asked."""

    name: str
    """Of its file, without the ending."""
    about: str
    sessions: dict[str, Session]
    steps: tuple[AnyStep, ...]
    """Each names its session."""

    @property
    def tenants(self) -> frozenset[str]:
        return frozenset(session.tenant for session in self.sessions.values())

    @property
    def checks(self) -> int:
        return sum(len(step.expect) for step in self.steps if isinstance(step, Ask | Facts | Search))


def shipped_folder() -> Path:
    """Our own cases: beside this module in a wheel, under ``examples/`` in a checkout."""
    here = Path(__file__).resolve()
    for folder in (here.with_name("examples"), here.parents[3] / "examples" / "eval"):
        if folder.is_dir():
            return folder
    raise ConfigurationError("the shipped cases are not installed: reinstall prefold")


def read_cases(paths: Sequence[Path]) -> list[Case]:
    """Every case of the files and folders. Raises ConfigurationError for the first thing that is wrong."""
    files = [file for path in paths for file in (sorted(path.glob("*.toml")) if path.is_dir() else [path])]
    if not files:
        raise ConfigurationError(f"{', '.join(map(str, paths))}: holds no case (*.toml)")
    cases = [read_case(file) for file in files]
    for number, case in enumerate(cases):
        if case.name in {other.name for other in cases[:number]}:
            raise ConfigurationError(f"{files[number]}: another file is called {case.name} too")
    return cases


def read_case(path: Path) -> Case:
    """The case of one file. Raises ConfigurationError."""
    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: is not TOML: {error}") from error
    file = _checked(CaseFile, document, f"{path}: ")
    steps = tuple(_steps(path, file))
    case = Case(path.stem, file.about, file.sessions, steps)
    if not case.checks:
        raise ConfigurationError(f"{path}: steps: nothing is asked: add a step with ask, facts or search")
    return case


def _steps(path: Path, file: CaseFile) -> Iterator[AnyStep]:
    for number, table in enumerate(file.steps):
        where = f"{path}: steps[{number}]"
        given = [key for key in ACTIONS if key in table and not _is_other_key(key, table)]
        if len(given) != 1:
            has = " and ".join(given) or "none"
            raise ConfigurationError(f"{where}: must have one of {', '.join(ACTIONS)}; it has {has}")
        yield _checked(ACTIONS[given[0]], {**table, "session": _session(where, table, file)}, f"{where}.")


def _is_other_key(key: str, table: Table) -> bool:
    return key == "text" and "edit" in table


def _session(where: str, table: Table, file: CaseFile) -> object:
    named = table.get("session", next(iter(file.sessions)) if len(file.sessions) == 1 else None)
    if named is None:
        raise ConfigurationError(f"{where}.session: must say which of {', '.join(file.sessions)}")
    if isinstance(named, str) and named not in file.sessions:
        raise ConfigurationError(f"{where}.session: {named!r} is none of {', '.join(file.sessions)}")
    return named


def _checked(shape: type[ModelT], document: Table, where: str) -> ModelT:
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = _key(first["loc"])
        raise ConfigurationError(
            f"{where}{key}: {_told(first['type'], first['msg'])}"
            if key
            else f"{where.rstrip('.: ')}: {_told(first['type'], first['msg'])}"
        ) from error


def _key(location: Sequence[int | str]) -> str:
    """``expect[0].section``. Names of alternatives of a type, which no reader wrote, are left out."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier() or path.endswith("sessions"):
            path += f".{part}" if path else part
    return path


def _told(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "is no key that can stand here"
    if kind == "missing":
        return "is missing"
    return message.removeprefix("Value error, ").removeprefix("Input ").replace("should be", "must be")
