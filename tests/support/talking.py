"""A few words with a gateway over HTTP, and what it says of them."""

from typing import Any

import httpx


def talk(api: httpx.Client, session: str, *said: str, user: str | None = None, turns: int = 1) -> None:
    options = {"hard_limit_tokens": 1000, "close_after_seconds": 1, **({"user": user} if user else {})}
    api.put(f"/v1/sessions/{session}", json=options).raise_for_status()
    for number in range(turns):
        body = [
            {"id": f"u{number}", "role": "user", "content": f"{said[number % len(said)]} It is about floor {number}."},
            {"id": f"a{number}", "role": "assistant", "content": "Noted, let me see what fits."},
        ]
        api.post(f"/v1/sessions/{session}/turns", json={"turns": body}).raise_for_status()


def seen(api: httpx.Client, session: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/v1/sessions/{session}").raise_for_status().json()
    return found


def is_clean(receipt: dict[str, Any]) -> bool:
    left = [count for name, count in receipt.items() if name.endswith("_left")]
    return all(count in (0, []) for count in left) and receipt["not_checked"] == []
