"""API keys as ``prefold keys`` makes them, for processes of a test."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.worker_jobs import COMMAND, environment


class MadeKeys:
    """A file of keys with its secret, in a folder of the test."""

    def __init__(self, folder: Path, quotas: dict[str, Any] | None = None) -> None:
        self._file = folder / "keys.json"
        self.settings = {"api_keys_file": str(self._file), "api_keys_secret_file": str(folder / "keys.secret")}
        self._run("init")
        if quotas:
            kept = json.loads(self._file.read_text("utf-8"))
            self._file.write_text(json.dumps({**kept, "quotas": quotas}), "utf-8")

    def new(self, tenant: str, scopes: str) -> str:
        """The text of a new key. A gateway that runs already takes it some seconds later."""
        return self._run("create", "--tenant", tenant, "--scopes", scopes)

    def header(self, tenant: str, scopes: str) -> dict[str, str]:
        """What a client with a new key sends."""
        return {"authorization": f"Bearer {self.new(tenant, scopes)}"}

    def _run(self, *arguments: str) -> str:
        env = environment("", "", **self.settings)
        done = subprocess.run([*COMMAND, "keys", *arguments], env=env, capture_output=True, text=True, check=True)
        return done.stdout.strip()
