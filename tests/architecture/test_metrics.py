"""Dashboard, rules and docs name what the code declares, and all of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from prefold.telemetry import metrics
from prefold.telemetry.metrics import Declared, declared, exposition

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "prefold.json"
RULES = sorted((ROOT / "deploy" / "prometheus").glob("*.yml"))
SCALERS = ROOT / "deploy" / "kubernetes" / "keda" / "scaled-objects.yaml"
DOCS = ROOT / "docs" / "observability.md"

NAME = re.compile(r"\b(?:prefold|process)_[a-z_]+")
SELECTOR = re.compile(r"\b(prefold_[a-z_]+)\{([^}]*(?:\{[^}]*\}[^}]*)*)\}")
LABEL = re.compile(r'([a-z_]+)\s*(?:=~|!~|!=|=)\s*"')
GROUPED = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
FOREIGN_LABELS = {"le", "job", "instance"}
OF_THE_LIBRARY = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
FORBIDDEN = {"tenant", "session", "user", "key", "incarnation", "id", "query_text"}
SERIES: dict[str, Declared] = {
    f"{one.name}{suffix}": one
    for one in declared()
    for suffix in (("_bucket", "_sum", "_count") if one.kind == "histogram" else ("",))
}


def panels() -> Iterator[dict[str, Any]]:
    """Those that show something."""
    return (one for one in json.loads(DASHBOARD.read_text("utf-8"))["panels"] if one["type"] != "row")


def dashboard_expressions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def rules() -> list[dict[str, Any]]:
    documents = [yaml.safe_load(path.read_text("utf-8")) for path in RULES]
    return [rule for document in documents for group in document.get("groups", ()) for rule in group["rules"]]


def scaler_expressions() -> list[str]:
    """What the number of workers follows on Kubernetes."""
    documents = yaml.safe_load_all(SCALERS.read_text("utf-8"))
    triggers = [trigger for one in documents for trigger in one["spec"].get("triggers", ())]
    return [trigger["metadata"]["query"] for trigger in triggers if trigger["type"] == "prometheus"]


EXPRESSIONS = {
    **{f"dashboard: {one}": one for one in dashboard_expressions()},
    **{f"scaler: {one}": one for one in scaler_expressions()},
    **{f"rule: {rule.get('alert', rule.get('record'))}": rule["expr"] for rule in rules()},
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS.keys())
def test_an_expression_names_series_that_are_served_and_labels_that_they_have(expression: str) -> None:
    names = set(NAME.findall(expression))
    assert names <= SERIES.keys() | OF_THE_LIBRARY
    for name, inside in SELECTOR.findall(expression):
        assert set(LABEL.findall(inside)) <= {*SERIES[name].labels, *FOREIGN_LABELS}
    grouped = {label.strip() for group in GROUPED.findall(expression) for label in group.split(",")}
    known = {label for name in names & SERIES.keys() for label in SERIES[name].labels}
    assert grouped <= known | FOREIGN_LABELS
    assert all(expression.count(left) == expression.count(right) for left, right in ("()", "[]", "{}"))


def test_a_job_that_an_expression_names_is_one_that_is_scraped() -> None:
    scraped = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text("utf-8"))
    jobs = {job["job_name"] for job in scraped["scrape_configs"]}
    named = {job for expression in EXPRESSIONS.values() for job in re.findall(r'job="([^"]*)"', expression)}
    assert named
    assert named <= jobs
    assert all(job.startswith("prefold-") for job in jobs), "the dashboard asks for prefold-.*"


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {name for expression in dashboard_expressions() for name in NAME.findall(expression)}
    assert {one.name for one in declared()} - {SERIES[name].name for name in shown & SERIES.keys()} == set()


def test_the_docs_tell_of_every_metric_and_alert_and_of_no_other() -> None:
    told = DOCS.read_text("utf-8")
    rows = {line.split("`")[1].partition("{")[0] for line in told.splitlines() if line.startswith("| `prefold_")}
    assert rows == {one.name for one in declared()}
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert {line.split("`")[1] for line in told.splitlines() if line.startswith("| `Prefold")} == alerts


def test_the_docs_give_the_labels_of_each_metric() -> None:
    told = DOCS.read_text("utf-8")
    for one in declared():
        labels = f"{{{','.join(one.labels)}}}" if one.labels else ""
        assert f"| `{one.name}{labels}` |" in told, one.name


def test_a_counter_is_read_as_a_rate_and_a_gauge_is_not() -> None:
    for expression in EXPRESSIONS.values():
        for name in set(NAME.findall(expression)) & SERIES.keys():
            is_counted = SERIES[name].kind in ("counter", "histogram")
            in_range = re.search(rf"\b{name}(?:\{{[^[]*\}})?\[", expression) is not None
            if is_counted:
                assert in_range, f"{name} in {expression}"


def test_what_dispatchers_read_alike_is_never_added_up_over_them() -> None:
    gauges = {one.name for one in declared() if one.owner == "dispatcher" and one.kind == "gauge"}
    for expression in EXPRESSIONS.values():
        for name in gauges & set(NAME.findall(expression)):
            around = re.search(rf"(\w+)(?: by \(\w+\))? ?\((?:deriv\()?{name}", expression)
            assert around is not None and around[1] in ("max", "absent"), expression


def test_no_label_can_tell_of_anybody() -> None:
    assert {label for one in declared() for label in one.labels} & FORBIDDEN == set()


def test_names_say_kind_and_unit() -> None:
    for one in declared():
        assert one.name.endswith("_total") == (one.kind == "counter"), one.name
        assert one.name.endswith("_seconds") or one.kind != "histogram", one.name


def test_everything_that_is_declared_is_served() -> None:
    families = set(re.findall(r"^# TYPE (\S+)", exposition().decode(), re.MULTILINE))
    assert {one.name for one in declared() if one.kind != "recorded"} <= families


def test_a_process_serves_its_own_metrics_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_hidden", set[str]())
    metrics.serve_as("worker-compact")
    families = set(re.findall(r"^# TYPE (prefold_\S+)", exposition().decode(), re.MULTILINE))
    owners = {one.owner for one in declared() if one.name in families}
    assert owners == {"every", "worker", "gateway, dispatcher, worker"}


def test_an_alert_says_what_to_do() -> None:
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in ("warning", "critical")
            assert rule["annotations"]["action"].rstrip("`").endswith(".")


def test_panels_do_not_lie_over_one_another() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels():
        at = panel["gridPos"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
                assert x < 24
