"""The gist of tool calls and of what came back."""

from dataclasses import replace

import orjson

from prefold.compaction.reading.results import call_gist, result_gist
from tests.support.compaction import call, result, small_talk, summarize, talk


def test_a_short_output_is_its_own_gist() -> None:
    assert result_gist("344\n(ok)", is_error=False)[0] == "344 (ok)"


def test_the_error_line_of_a_long_output_is_the_gist() -> None:
    output = (
        "Traceback (most recent call last):\n" + '  File "a.py", line 3\n' * 50 + "ValueError: window is too small\n"
    )
    gist, is_error, values = result_gist(output, is_error=False)
    assert gist == "ValueError: window is too small"
    assert is_error
    assert values[0].text == gist


def test_an_error_title_takes_its_text_along() -> None:
    assert result_gist("ERROR:\nNo replacement was performed in a.py", is_error=False)[:2] == (
        "ERROR: No replacement was performed in a.py",
        True,
    )


def test_raw_output_is_clipped_with_its_size() -> None:
    gist, is_error, _ = result_gist("word " * 2000, is_error=False)
    assert len(gist) < 200
    assert "(10,000 characters)" in gist
    assert not is_error


def test_values_of_a_json_output_know_their_keys() -> None:
    output = orjson.dumps({"email": "a@b.org", "seats": [{"number": "12A"}], "note": "all fine here"}).decode()
    _, _, values = result_gist(output, is_error=False)
    assert [(value.label, value.text) for value in values] == [("email", "a@b.org"), ("number", "12A")]


def test_arguments_are_said_in_few_words() -> None:
    assert (
        call_gist('{"flights":[{"n":"HAT1"}],"cabin":"economy","bags":2}')
        == "cabin=economy, bags=2, flights=[{n=HAT1}]"
    )


def test_a_round_is_one_line_with_its_outcome() -> None:
    turns = talk(
        ("user", "Please cancel order A-17."),
        ("assistant", call("cancel_order", "c1", order_id="A-17")),
        ("user", result("c1", "Error: order A-17 was shipped", is_error=True)),
        ("assistant", call("get_order", "c2", order_id="A-17")),
        ("user", result("c2", "shipped on 2024-05-01")),
    )
    text = summarize(turns, 200).text
    assert "[2 assistant] cancel_order(order_id=A-17) → ERROR: Error: order A-17 was shipped" in text
    assert "get_order(order_id=A-17) → shipped on 2024-05-01" in text


def test_a_call_without_a_result_says_so() -> None:
    turns = talk(("user", "Go ahead with it, please."), ("assistant", call("send_mail", "c1", to="ann@example.org")))
    turns += small_talk(3, 8)
    assert "send_mail(to=ann@example.org) → (no result)" in summarize(turns, 60).text


def test_numbers_keep_their_digits() -> None:
    output = '{"account":12345678901234567890123,"price":19.90}'
    assert result_gist(output, is_error=False)[0] == "account=12345678901234567890123, price=19.90"
    turns = [*talk(("user", "Pay it."), ("assistant", call("pay", "c1", account=1))), *small_talk(3, 20)]
    content = turns[1].content.replace(b'"account":1}', b'"account":12345678901234567890123}')
    turns[1] = replace(turns[1], content=content)
    assert "pay(account=12345678901234567890123)" in summarize(turns, 100).text


def test_deep_json_is_only_looked_into_so_far() -> None:
    assert result_gist("[" * 900 + "]" * 900, is_error=False)[0] == "[[[[[…]]]]]"
    assert call_gist('{"a":' * 900 + "1" + "}" * 900) == "a={a={a={a={a={a=…}}}}}"
