"""The files of ``deploy/`` as data: who is started how, with which environment, under which bounds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from deploy.redis.make_users import main as make_users

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ROLES = ("gateway", "dispatcher", "worker embed", "worker compact", "worker memory")
_DEFAULT = re.compile(r"\$\{[A-Z_]+:-(?P<value>[^}]*)\}")


@dataclass(frozen=True)
class Started:
    """A process as some file starts it."""

    where: str
    role: str
    """``worker embed``; a store: its own name."""
    environment: dict[str, str]


@cache
def documents(folder: str) -> tuple[dict[str, Any], ...]:
    """Every YAML document below a folder of ``deploy/``."""
    paths = sorted(path for path in (DEPLOY / folder).rglob("*.y*ml"))
    return tuple(one for path in paths for one in yaml.safe_load_all(path.read_text("utf-8")) if one)


@cache
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return loaded


@cache
def compose_with_a_way_out() -> dict[str, Any]:
    """Networks of each service of ours with ``compose.out.yaml`` beside it: Compose puts lists together."""
    added = yaml.safe_load((DEPLOY / "compose.out.yaml").read_text("utf-8"))["services"]
    ours = {name: one for name, one in compose()["services"].items() if "build" in one}
    assert added.keys() <= ours.keys()
    return {name: {*one["networks"], *added.get(name, {}).get("networks", [])} for name, one in ours.items()}


def component(name: str) -> dict[str, Any]:
    """A kustomization below ``kubernetes/``."""
    return _kustomization(name)


def users(folder: Path) -> Path:
    """What ``make_users.py`` makes."""
    make_users([str(folder), "--direct=acme", "--ingest=acme"])
    return folder


def of_file(path: Path) -> dict[str, str]:
    """Variables of an environment file."""
    lines = (line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def of_image(target: str) -> dict[str, str]:
    """What an image's processes are given by the image."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    found: dict[str, str] = {}
    for stage in ("base", target):
        lines = text.partition(f" AS {stage}\n")[2].partition("\nFROM ")[0].splitlines()
        for line in lines:
            if line.startswith("ENV "):
                found |= dict(one.split("=", 1) for one in line.split()[1:])
    return found


def in_compose(made: Path) -> Iterator[Started]:
    for name, service in compose()["services"].items():
        environment = of_image(service["build"]["target"]) if "build" in service else {}
        for file in service.get("env_file", []):
            environment |= of_file(made / Path(file).name)
        environment |= {
            key: _DEFAULT.sub(r"\g<value>", str(one))
            for key, one in service.get("environment", {}).items()
            if one is not None  # given only where whoever starts it has it
        }
        is_ours = service["image"].startswith("prefold-")
        yield Started(f"compose {name}", " ".join(service["command"]) if is_ours else name, environment)


def in_kubernetes(made: Path) -> Iterator[Started]:
    settings = dict(one.split("=", 1) for one in _kustomization("base")["configMapGenerator"][0]["literals"])
    for workload in workloads("kubernetes"):
        for container in workload["spec"]["template"]["spec"]["containers"]:
            environment: dict[str, str] = {}
            for source in container.get("envFrom", []):
                if "configMapRef" in source:
                    environment |= settings
                elif not source["secretRef"].get("optional"):
                    environment |= of_file(made / f"{source['secretRef']['name'].removeprefix('prefold-')}.env")
            environment |= {one["name"]: str(one.get("value", "x")) for one in container.get("env", [])}
            is_ours = container["image"].startswith("prefold-")
            role = " ".join(container["args"]) if is_ours else container["name"]
            yield Started(f"kubernetes {workload['metadata']['name']}", role, environment)


def in_systemd(made: Path) -> Iterator[Started]:
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        environment: dict[str, str] = {}
        command = ""
        for line in path.read_text("utf-8").splitlines():
            key, _, value = line.partition("=")
            if key == "EnvironmentFile" and value != "-/etc/prefold/model.env":
                name = Path(value.removeprefix("-")).name
                environment |= of_file(DEPLOY / "systemd" / name if name == "common.env" else made / name)
            elif key == "Environment":
                name, _, given = value.partition("=")
                environment[name] = given.replace("%i", "1").replace("%l", "host")
            elif key == "ExecStart":
                command = value
        yield Started(f"systemd {path.stem}", command.partition("/prefold ")[2] or path.stem, environment)


def workloads(folder: str) -> list[dict[str, Any]]:
    return [one for one in documents(folder) if one.get("kind") in ("Deployment", "StatefulSet")]


def _kustomization(name: str) -> dict[str, Any]:
    text = (DEPLOY / "kubernetes" / name / "kustomization.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded
