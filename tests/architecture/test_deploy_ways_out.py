"""What ``deploy/`` lets out of its networks: traces and texts for an embeddings API, each by its own switch."""

import re

import pytest
import yaml

from prefold.config.flags import variable_of
from prefold.embedding import check_embedder
from prefold.gateway.settings import GatewaySettings
from tests.support.deploy_files import component, compose, compose_with_a_way_out, documents, workloads

WORKLOADS = {one["metadata"]["name"] for one in workloads("kubernetes/base")}
EMBEDDING = {"gateway", "worker-embed", "worker-memory"}


def test_in_compose_traces_and_an_embeddings_api_have_their_settings_and_a_way_out() -> None:
    networks = compose()["networks"]
    for name, reached in compose_with_a_way_out().items():
        assert any(not (networks[one] or {}).get("internal") for one in reached), name
        given = compose()["services"][name]["environment"]
        assert given["OTEL_EXPORTER_OTLP_ENDPOINT"] == "${OTEL_EXPORTER_OTLP_ENDPOINT:-}"
        assert given["OTEL_EXPORTER_OTLP_HEADERS"] is None
        wanted = {variable_of(GatewaySettings, one) for one in GatewaySettings.model_fields if "embedder_" in one}
        assert (wanted - {"PREFOLD_EMBEDDER_THREADS"} <= given.keys()) == (name in EMBEDDING), name


@pytest.mark.parametrize(("name", "reaching"), [("traces", {*WORKLOADS}), ("embeddings", EMBEDDING)])
def test_in_the_cluster_each_has_a_component_with_its_settings_its_secret_and_a_way_out(
    name: str, reaching: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = component(name)
    (generated,), (base,) = found["configMapGenerator"], component("base")["configMapGenerator"]
    assert (generated["name"], generated["behavior"]) == (base["name"], "merge")
    assert generated["namespace"] == component("base")["namespace"]
    literals = dict(one.split("=", 1) for one in generated["literals"])
    assert literals.keys() <= {variable_of(GatewaySettings, one) for one in GatewaySettings.model_fields}
    for variable, value in literals.items():
        monkeypatch.setenv(variable, value)
    settings = GatewaySettings()
    check_embedder(settings)
    assert (settings.traces_endpoint is not None, settings.embedder == "http") == (name == "traces", name != "traces")
    ((patch,), (policy,)) = found["patches"], [one for one in documents(f"kubernetes/{name}") if "spec" in one]
    (added,) = yaml.safe_load(patch["patch"])
    assert added["path"] == "/spec/template/spec/containers/0/envFrom/-" and added["value"]["secretRef"]["optional"]
    assert {one for one in WORKLOADS if re.fullmatch(patch["target"].get("name", ".*"), one)} == reaching
    selected = policy["spec"]["podSelector"]
    if name == "traces":
        assert selected == {"matchLabels": {"app.kubernetes.io/part-of": "prefold"}}
    else:
        assert set(selected["matchExpressions"][0]["values"]) == reaching
    assert policy["spec"]["policyTypes"] == ["Egress"]
