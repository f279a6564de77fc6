"""Runs a program that does not outlive the process that asked for it.

``python -I -S leash.py SIGNAL PARENT_PID PROGRAM ARGUMENTS…`` becomes the program (Linux: the kernel sends SIGNAL to
it when the parent is gone) or stays beside it as its guardian (elsewhere: the end of the parent closes our standard
input). Standard library only: it starts in isolated mode, before the environment's packages are known.

A trap on Linux: the kernel's signal follows the *thread* that started us, so that thread must live as long as
the program is wanted.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_GUARDIAN_GRACE_SECONDS = 4.0


def leashed(command: Sequence[str], *, death_signal: signal.Signals = signal.SIGKILL) -> list[str]:
    """The command line that runs ``command`` on a leash held by this process."""
    return [sys.executable, "-I", "-S", __file__, str(int(death_signal)), str(os.getpid()), *command]


def _exec_leashed(command: Sequence[str], death_signal: int, parent: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it died before the kernel knew that we want to hear of it
        sys.exit(0)
    os.execv(command[0], list(command))


def _guard(command: Sequence[str], death_signal: int) -> int:
    child = subprocess.Popen(list(command), stdin=subprocess.DEVNULL)

    def until_parent_is_gone() -> None:
        while os.read(0, 1):
            pass
        child.send_signal(death_signal)
        try:
            child.wait(_GUARDIAN_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()

    for forwarded in (signal.SIGTERM, signal.SIGINT):
        signal.signal(forwarded, lambda number, _frame: child.send_signal(number))
    threading.Thread(target=until_parent_is_gone, daemon=True).start()
    code = child.wait()
    if code < 0:  # end as it ended, so that our parent sees the signal
        with suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def main(argv: Sequence[str]) -> int:
    """Run ``argv`` (signal, parent, program, arguments); the guardian returns the program's exit code."""
    death_signal, parent, command = int(argv[0]), int(argv[1]), argv[2:]
    if sys.platform == "linux":
        _exec_leashed(command, death_signal, parent)
    return _guard(command, death_signal)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
