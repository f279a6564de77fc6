"""Secrets never reach a summary, and what only talks about them does."""

import pytest

from prefold.compaction.reading.redact import redact
from tests.support.compaction import ledger_of, summarize, users

# Written in two parts, so that no scanner of repositories takes them for real ones.
SECRETS = [
    ("my password is " + "hunter2!", "hunter2"),
    ("Password: " + "Tr0ub4dor&3", "Tr0ub4dor&3"),
    ('api_key="' + "abc123def456" + '"', "abc123def456"),
    ("use sk-" + "ant-api03-AbCdEfGhIjKlMnOpQrSt", "AbCdEfGhIjKlMnOpQrSt"),
    ("AKIA" + "IOSFODNN7EXAMPLE is the id", "IOSFODNN7EXAMPLE"),
    ("ghp_" + "abcdefghijklmnopqrstuvwxyz0123", "abcdefghijklmnopqrstuvwxyz0123"),
    ("Authorization: Bearer " + "abcdef0123456789abcdef", "abcdef0123456789abcdef"),
    ("redis://admin:" + "s3cr3t@db:6379", "s3cr3t"),
    ("card 4242 4242" + " 4242 4242 please", "4242 4242"),
    ("my PIN is " + "4821.", "4821"),
    ("密码是" + "abc12345", "abc12345"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + "IBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "IBAAKCAQEA"),
    ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123_x", "eyJzdWIiOiIxMjM0In0"),
]
HARMLESS = [
    "The password is required before you continue.",
    "password = data['password']",
    "I forgot my password, and it is late.",
    "Order 4827193061234567 has not come.",
    "credit_card_2929732 was used",
    "Call me on 415 555 0173.",
    "The API key: see the docs.",
    "The PIN code is wrong.",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_replaced(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert "[redacted: " in redact(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("text", [text for text, _ in SECRETS])
def test_redacting_twice_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_no_secret_is_quoted_or_kept_in_the_ledger(text: str, secret: str) -> None:
    turns = users("I want to set up my account for order A-1234 now.", text, "Please remember all of that for me.")
    assert secret not in summarize(turns, 300).text
    assert not [entry for entry in ledger_of(turns).entries if secret in entry.text]
