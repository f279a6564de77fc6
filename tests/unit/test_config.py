"""Settings from the environment and from flags."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefold.config.flags import describe, environment_of, is_secret, load_settings, redacted_url, variable_of
from prefold.config.settings import (
    CHUNK_MARGIN,
    DataDirSettings,
    EmbedderSettings,
    ListenSettings,
    ProcessSettings,
    QueueSettings,
    RedisSettings,
    SummarizerSettings,
    VectorSettings,
    check_summarizer,
)
from prefold.dispatcher.settings import DispatcherSettings
from prefold.errors import ConfigurationError
from prefold.stack.settings import StackSettings


class EverySettings(
    DataDirSettings, EmbedderSettings, ListenSettings, QueueSettings, RedisSettings, SummarizerSettings, VectorSettings
):
    """All that can be inherited."""


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (EverySettings, StackSettings):
        for name in kind.model_fields:
            monkeypatch.delenv(variable_of(kind, name), raising=False)


def load(*flags: str) -> EverySettings:
    return load_settings(EverySettings, flags, prog="prefold test")


def test_a_variable_sets_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFOLD_PORT", "8123")
    assert load().port == 8123


def test_a_flag_wins_over_the_variable_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFOLD_REDIS_URL", "redis://from-the-variable:1")
    assert load("--redis-url", "unix:///from/the/flag").redis_url == "unix:///from/the/flag"


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFOLD_PORT", "")
    assert load().port == 7077


def test_keys_of_a_provider_keep_the_providers_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    key = load().anthropic_api_key
    assert key is not None
    assert key.get_secret_value() == "sk-very-secret"


def test_settings_cannot_be_changed() -> None:
    settings = load()
    with pytest.raises(ValueError, match="frozen"):
        setattr(settings, "port", 1)  # noqa: B010 - mypy sees the other form


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--port", "65536"),
        ("--port", "-1"),
        ("--port", "http"),
        ("--redis-url", "localhost:6379"),
        ("--redis-url", "unix://relative.sock"),
        ("--qdrant-url", "localhost:6333"),
        ("--summarizer", "magic"),
        ("--embedder", "magic"),
        ("--redis-max-connections", "0"),
        ("--log-level", "loud"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_variable(flag: str, value: str) -> None:
    variable = "PREFOLD_" + flag.removeprefix("--").replace("-", "_").upper()
    with pytest.raises(ConfigurationError) as refusal:
        load(flag, value)
    assert refusal.value.field == variable
    assert variable in refusal.value.detail


@pytest.mark.parametrize(
    ("given", "wrong"),
    [("acme,be ta", "'be ta'"), ("acme,,beta", "an empty text"), ("acme, -x", "'-x'"), ("a" * 129, f"'{'a' * 60}'")],
)
def test_a_tenant_that_is_no_name_is_said_in_words(given: str, wrong: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(DispatcherSettings, ["--ingest-tenants", given], prog="prefold dispatcher")
    assert str(caught.value).startswith(f"PREFOLD_INGEST_TENANTS: {wrong} is no name of a tenant: 1 to 128 of A-Z")


def test_tenants_of_ingest_streams_are_named_once_each_and_none_is_nobody() -> None:
    names = [
        DispatcherSettings(ingest_tenants=given).ingest_names for given in ("acme, b+1@x ,acme", "none", "a" * 128)
    ]
    assert names == [("acme", "b+1@x"), (), ("a" * 128,)]


def test_all_wrong_values_are_named_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"PREFOLD_PORT.*PREFOLD_QUEUE_URL|PREFOLD_QUEUE_URL.*PREFOLD_PORT"):
        load("--port", "x", "--queue-url", "x")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org"])
def test_without_keys_nothing_but_loopback_is_served(host: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        load("--host", host)
    assert refusal.value.field == "PREFOLD_HOST"
    assert "PREFOLD_API_KEYS_FILE" in refusal.value.detail


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_keys(host: str) -> None:
    assert load("--host", host).host == host


def test_with_keys_any_address_is_served(tmp_path: Path) -> None:
    assert load("--host", "0.0.0.0", "--api-keys-file", str(tmp_path / "keys")).host == "0.0.0.0"


def test_no_secret_has_a_flag() -> None:
    secret = [name for name, field in EverySettings.model_fields.items() if is_secret(field)]
    assert set(secret) == {"api_keys_secret", "qdrant_api_key", "anthropic_api_key", "embedder_api_key"}
    for name in secret:
        with pytest.raises(SystemExit):
            load("--" + name.replace("_", "-"), "value")


def test_the_printed_configuration_shows_every_variable_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFOLD_QDRANT_API_KEY", "s3cret-one")
    monkeypatch.setenv("PREFOLD_REDIS_URL", "rediss://alice:s3cret-two@example.org:6380/1")
    with pytest.raises(SystemExit) as end:
        load("--check-config")
    printed = capsys.readouterr().out
    assert end.value.code == 0
    assert "s3cret" not in printed
    assert "PREFOLD_REDIS_URL=rediss://********@example.org:6380/1\n" in printed
    assert {line.partition("=")[0] for line in printed.splitlines()} == {
        variable_of(EverySettings, name) for name in EverySettings.model_fields
    }


def test_help_names_variable_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load("--help")
    assert "(PREFOLD_PORT, default 7077)" in " ".join(capsys.readouterr().out.split())


def test_what_is_given_to_another_process_makes_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFOLD_EMBEDDER_API_KEY", "k")
    settings = load("--port", "9000", "--data-dir", "/somewhere")
    monkeypatch.delenv("PREFOLD_EMBEDDER_API_KEY")
    for variable, value in environment_of(settings).items():
        monkeypatch.setenv(variable, value)
    assert load() == settings


@pytest.mark.parametrize("kind", [EverySettings, StackSettings])
def test_every_setting_says_what_it_is_and_every_number_is_bounded(kind: type[ProcessSettings]) -> None:
    for name, field in kind.model_fields.items():
        assert field.description, name
        if field.annotation in (int, float):
            bounds = {type(limit).__name__ for limit in field.metadata}
            assert {"Ge", "Le"} <= bounds, name


def test_a_model_needs_a_key_and_chunks_that_go_into_its_window(monkeypatch: pytest.MonkeyPatch) -> None:
    check_summarizer(load())
    with pytest.raises(ValueError, match="ANTHROPIC_API_KEY: "):
        check_summarizer(load("--summarizer", "anthropic"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    with pytest.raises(ValueError, match="ANTHROPIC_API_KEY: "):
        check_summarizer(load("--summarizer", "anthropic"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk")
    check_summarizer(load("--summarizer", "anthropic"))
    most = int((32_000 - 8_000) / CHUNK_MARGIN)
    window = ("--summarizer", "anthropic", "--summarizer-window-tokens", "32000", "--summarizer-chunk-tokens")
    check_summarizer(load(*window, str(most)))
    with pytest.raises(ValueError, match=f"PREFOLD_SUMMARIZER_CHUNK_TOKENS: at most {most} go into"):
        check_summarizer(load(*window, str(most + 1)))


def test_a_stack_without_the_key_of_its_model_does_not_start() -> None:
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY: PREFOLD_SUMMARIZER=anthropic needs a key"):
        load_settings(StackSettings, ("--summarizer", "anthropic"), prog="prefold up")


@given(st.text(st.characters(codec="ascii", exclude_characters="/@\n#?"), min_size=1, max_size=20))
def test_no_password_survives_redaction(password: str) -> None:
    assert redacted_url(f"redis://user:{password}@host:1/0") == "redis://********@host:1/0"


def test_a_description_is_sorted_lines() -> None:
    lines = describe(load()).splitlines()
    assert lines == sorted(lines)
    assert all(re.fullmatch(r"[A-Z_]+=.*", line) for line in lines)
