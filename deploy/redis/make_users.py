"""Makes the Redis users of roles.toml: ACL files for both servers, and the address with its password for each process.

    make_users.py FOLDER [--direct acme,beta] [--ingest acme] [--sessions host:port] [--queue host:port]

FOLDER gets ``sessions.acl``, ``queue.acl``, a file ``ROLE.env`` for each role, ``qdrant.env`` and ``vectors.env`` (a key
of Qdrant for its server and for its clients), and ``passwords.json``, which is what another call starts from: it keeps what is there, so a tenant can be added at any time. ``--rotate ROLE`` gives a role a
new password and leaves the old one valid, until ``--retire ROLE``. Load the files with ACL LOAD: connections of users
that are as before stay open. Standard library only (Python 3.11).
"""

import argparse
import hashlib
import json
import re
import secrets
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

ROLES = Path(__file__).with_name("roles.toml")
SERVERS = ("sessions", "queue")
VARIABLES = {"sessions": "PREFOLD_REDIS_URL", "queue": "PREFOLD_QUEUE_URL"}
NO_DEFAULT = "user default off sanitize-payload resetchannels resetkeys -@all"
"""Nobody gets in without a name."""
_QDRANT = {"qdrant": "QDRANT__SERVICE__API_KEY", "vectors": "PREFOLD_QDRANT_API_KEY"}
LEFT_OUT = {"valkey": (), "redis": ("_valkey",), "redis-7.0": ("_valkey", "_72")}
"""By server: ends of the names of groups whose commands it does not know."""
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+=|~-]{0,127}")

Passwords = dict[str, list[str]]
"""By role, the newest first."""


def main(argv: Sequence[str]) -> int:
    """Write the folder. SystemExit with a message for a tenant or role that cannot be."""
    arguments = _parse(argv)
    roles = tomllib.loads(ROLES.read_text("utf-8"))
    tenants = {"direct": _names(arguments.direct), "ingest": _names(arguments.ingest)}
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True, mode=0o750)
    passwords = _passwords(folder, roles, tenants)
    for role in [*arguments.rotate, *arguments.retire]:
        if role not in passwords:
            sys.exit(f"make_users: there is no role {role!r}: {', '.join(sorted(passwords))}")
    for role in arguments.rotate:
        passwords[role].insert(0, secrets.token_urlsafe(32))
    for role in arguments.retire:
        del passwords[role][1:]
    _write(folder / "passwords.json", json.dumps(passwords, indent=1))
    for server in SERVERS:
        lines = acl_lines(roles, server, tenants, passwords, LEFT_OUT[arguments.server])
        _write(folder / f"{server}.acl", "\n".join(lines) + "\n", mode=0o644)  # hashes of long random passwords
    addresses = {"sessions": arguments.sessions, "queue": arguments.queue}
    for role in passwords:
        _write(folder / f"{role}.env", "".join(env_lines(roles, role, tenants, passwords, addresses)))
    for name, variable in _QDRANT.items():
        _write(folder / f"{name}.env", f"{variable}={passwords['qdrant'][0]}\n")
    return 0


def acl_lines(
    roles: Mapping[str, Any],
    server: str,
    tenants: Mapping[str, Sequence[str]],
    passwords: Passwords,
    left_out: Sequence[str] = (),
) -> Iterator[str]:
    """One line a user, as Redis reads them from its ``aclfile``; passwords as SHA-256 only."""
    yield NO_DEFAULT
    for name, tenant, role in _users(roles, server, tenants):
        commands = dict.fromkeys(_commands(roles["groups"], role, left_out))
        rules = [
            *(f"#{hashlib.sha256(one.encode()).hexdigest()}" for one in passwords[name]),
            *("sanitize-payload", "resetchannels", *role.get("channels", ())),
            *("resetkeys", *(key.replace("{tenant}", tenant) for key in role["keys"])),
            *("-@all", *(f"+{command}" for command in commands)),
        ]
        yield f"user {name} on {' '.join(rules)}"


def env_lines(
    roles: Mapping[str, Any],
    role: str,
    tenants: Mapping[str, Sequence[str]],
    passwords: Passwords,
    addresses: Mapping[str, str],
) -> Iterator[str]:
    """What the process of that role is started with."""
    for server in SERVERS:
        if any(name == role for name, _, _ in _users(roles, server, tenants)):
            address = addresses[server]
            parts = urlsplit(address if "://" in address else f"redis://{address}")
            user = f"{quote(role, safe='')}:{passwords[role][0]}"
            yield f"{VARIABLES[server]}={parts.scheme}://{user}@{parts.netloc}{parts.path}\n"


def _users(
    roles: Mapping[str, Any], server: str, tenants: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Name, tenant or nothing, and rules of each user of a server."""
    for name, role in roles[server].items():
        kind, _, is_of_tenant = name.partition("-{tenant}")
        if not is_of_tenant and "{tenant}" not in name:
            yield name, "", role
            continue
        for tenant in tenants[kind]:
            yield f"{kind}-{tenant}", tenant, role


def _commands(groups: Mapping[str, Sequence[str]], role: Mapping[str, Any], left_out: Sequence[str]) -> Iterator[str]:
    for group in role["groups"]:
        if not group.endswith(tuple(left_out)):
            yield from groups[group]
    yield from role["commands"]


def _passwords(folder: Path, roles: Mapping[str, Any], tenants: Mapping[str, Sequence[str]]) -> Passwords:
    """Those that are there, and a new one for each role that has none."""
    kept: Passwords = {}
    if (folder / "passwords.json").exists():
        kept = json.loads((folder / "passwords.json").read_text("utf-8"))
    names = [name for server in SERVERS for name, _, _ in _users(roles, server, tenants)] + ["qdrant"]
    return {name: kept.get(name) or [secrets.token_urlsafe(32)] for name in dict.fromkeys(names)}


def _names(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if _TENANT.fullmatch(name) is None:
            raise SystemExit(f"make_users: {name!r} is no name of a tenant")
    return names


def _write(path: Path, text: str, *, mode: int = 0o640) -> None:
    """At once, and readable for its owner and group only unless ``mode`` says otherwise."""
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.chmod(mode)
    fresh.write_text(text, "utf-8")
    fresh.rename(path)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make_users.py", description="Makes the Redis users of roles.toml.")
    parser.add_argument("folder", type=Path, help="where the files go; keep it secret")
    parser.add_argument("--direct", default="", help="tenants whose backends use the direct SDK, by commas")
    parser.add_argument("--ingest", default="", help="tenants that publish on their ingest stream, by commas")
    parser.add_argument("--sessions", default="redis-sessions:6379", help="host:port of the sessions' server")
    parser.add_argument("--queue", default="redis-queue:6379", help="host:port of the queue's")
    parser.add_argument(
        "--server", choices=LEFT_OUT, default="valkey", help="Valkey 8.1 or later, Redis 7.2 or later, or Redis 7.0"
    )
    parser.add_argument("--rotate", action="append", default=[], metavar="ROLE", help="give it a second password")
    parser.add_argument("--retire", action="append", default=[], metavar="ROLE", help="drop the older one")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
