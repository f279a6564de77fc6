"""The command ``prefold``: hands over to a role or tool, imported only when it is asked for.

Runs with the base dependencies alone; a role whose extra is missing says which one to install.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from prefold.errors import ConfigurationError, PrefoldError, UnauthenticatedError

USAGE_ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


class Command(NamedTuple):
    """One subcommand; ``target`` is ``module:function`` of a ``main(argv) -> exit code``."""

    target: str
    help: str


COMMANDS = {
    "up": Command("prefold.stack.main:main", "start everything on this machine, and keep it running"),
    "demo": Command("prefold.replay.main:demo", "replay a support conversation and watch the context"),
    "replay": Command("prefold.replay.main:main", "publish a JSONL conversation turn by turn"),
    "context": Command("prefold.replay.main:context", "show what the model would see of a session"),
    "eval": Command("prefold.evaluation.main:main", "play cases and check what the memory shows"),
    "doctor": Command("prefold.doctor.main:main", "say what is not as promised, and how to mend it"),
    "dead-letters": Command("prefold.deadletters.main:main", "list, replay or erase work that was set aside"),
    "status": Command("prefold.status.main:main", "say what the running parts do"),
    "top": Command("prefold.status.main:top", "watch them live"),
    "keys": Command("prefold.keys.main:main", "make, list, rotate and revoke API keys"),
    "plan": Command("prefold.planning.main:main", "say what a load needs, with the arithmetic"),
    "reapply-erasures": Command("prefold.reapplying.main:main", "after a restore, erase again what was erased since"),
    "cost": Command("prefold.cost.main:main", "say what model calls cost, and what would cost less"),
    "gateway": Command("prefold.gateway.main:main", "process: the HTTP API"),
    "dispatcher": Command("prefold.dispatcher.main:main", "process: turns events into jobs"),
    "worker": Command("prefold.worker.main:main", "process: runs jobs; worker embed | compact | memory"),
    "vectors": Command("prefold.vectorstore.main:main", "process: the embedded vector store"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 2 for wrong usage or settings, 130 after Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if arguments else USAGE_ERROR
    if arguments[0] in ("-V", "--version", "version"):
        print(f"prefold {version()}")
        return 0
    return _run(arguments[0], arguments[1:], resolve if argv is not None else _resolve_for_good)


def usage() -> str:
    """What ``prefold --help`` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    tail = ["", "prefold COMMAND --help tells a command's flags; prefold --version the version."]
    return "\n".join(["usage: prefold COMMAND [arguments]", "", *lines, *tail])


def version() -> str:
    """The installed version."""
    from importlib.metadata import version as installed_version

    return installed_version("prefold")


def resolve(target: str) -> Callable[[list[str]], int]:
    """The function that ``module:function`` names."""
    module_name, _, function_name = target.partition(":")
    function: Callable[[list[str]], int] = getattr(import_module(module_name), function_name)
    return function


def _resolve_for_good(target: str) -> Callable[[list[str]], int]:
    """The same in a process of its own, where what is imported stays.

    Looking for garbage among it takes a fifth of the time of a start, and a pause now and then later on.
    """
    gc.disable()
    try:
        return resolve(target)
    finally:
        gc.freeze()
        gc.enable()


def _run(name: str, arguments: list[str], resolved: Callable[[str], Callable[[list[str]], int]]) -> int:
    command = COMMANDS.get(name)
    if command is None:
        return _complain("prefold", f"there is no command {name!r}\n\n{usage()}", USAGE_ERROR)
    prog = f"prefold {name}"
    try:
        return resolved(command.target)(arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "prefold":
            raise
        return _complain(prog, f"{error.name} is not installed: pip install 'prefold[all]'", 1)
    except ConfigurationError as error:
        return _complain(prog, error.detail, USAGE_ERROR)
    except UnauthenticatedError as error:
        return _complain(prog, f"{error.detail}; PREFOLD_API_KEY takes the key", 1)
    except PrefoldError as error:
        return _complain(prog, error.detail, 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough: `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _complain(prog: str, message: str, code: int) -> int:
    print(f"{prog}: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
