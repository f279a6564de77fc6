"""Turns whose JSON is easily written in two ways: what all transports have to take for the same."""

from typing import Any

ODD_TURNS: list[dict[str, Any]] = [
    {"id": "o1", "role": "system", "content": "Be exact."},
    {"id": "o2", "role": "user", "content": 'Zürich, 東京, 👩‍👩‍👧, \u2028 and \x7f\x1b, "quoted" \\ /slashes/'},
    {"id": "o3", "role": "user", "content": "a NUL \x00 within", "name": "ann", "ts": 1764500000.25},
    {"id": "o4", "role": "assistant", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
    {
        "id": "o5",
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {
                "type": "tool_use",
                "id": "call_1",
                "name": "look",
                "input": {"tiny": 1.5e-7, "small": 0.00001, "big": 1.5e300, "long": 12345678901234567890123, "z": -0.0},
            },
        ],
        "usage": {"input_tokens": 120, "output_tokens": 8},
    },
    {"id": "o6", "role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "42 °C"}]},
    {
        "id": "o7",
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_2", "type": "function", "function": {"name": "f", "arguments": '{"é":[1,2]}'}}],
    },
    {
        "id": "o8",
        "role": "tool",
        "tool_call_id": "call_2",
        "content": "done",
        "metadata": {"nested": [{"b": 1, "a": None}]},
    },
    {"id": "o9", "role": "assistant", "content": "word " * 900},
]
