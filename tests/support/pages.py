"""Commands that stand in a page of the documentation, taken out and done."""

import re
import shlex
from typing import Any

import httpx

ADDRESS = "http://127.0.0.1:7077"
"""As the pages name the gateway."""
_BLOCK = re.compile(r"<!-- checked: (\w+) -->\n```\w+\n(.*?)```", re.DOTALL)


def checked_blocks(page: str) -> list[tuple[str, str]]:
    """Kind and text of each block that a test has to look at, in order."""
    return [(kind, text) for kind, text in _BLOCK.findall(page)]


def curl(command: str, gateway: str) -> Any:
    """What ``curl`` would do with the options that the pages use; its answer, which must be a success."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:2] == ["curl", "-s"]
    method, url, headers, body = "", "", {}, None
    rest = iter(words[2:])
    for word in rest:
        match word:
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(":")
                headers[name] = value.strip()
            case "-d":
                body = next(rest)
            case _:
                assert word.startswith(ADDRESS), word
                url = word.replace(ADDRESS, gateway)
    answer = httpx.request(method or ("POST" if body else "GET"), url, content=body, headers=headers)
    assert answer.is_success, f"{command}: {answer.status_code} {answer.text}"
    return answer.json()
