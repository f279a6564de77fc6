"""Makes .venv hold what the lock says: ``install.py runtime|dev STAMP``. Called by ./run; standard library only.

Safe to interrupt (the next start begins with a new folder) and to start twice at once (the second waits).
"""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UNFINISHED = VENV / ".unfinished"


def main(kind: str, stamp: str) -> int:
    """Install and write the stamp that ./run compares; returns the exit code."""
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_current(kind, stamp):  # another start did it while we waited
            return 0
        return install(kind, stamp)


def install(kind: str, stamp: str) -> int:
    """Bring the folder to what the lock says, keeping what is already right."""
    started = time.monotonic()
    say(f"preparing .venv ({kind}), once")
    try:
        if not is_usable():
            shutil.rmtree(VENV, ignore_errors=True)
            run(sys.executable, "-m", "venv", str(VENV))
        UNFINISHED.touch()
        pip("--no-deps", "--require-hashes", "-r", str(ROOT / "lock" / f"{kind}.txt"))
        pip("--no-deps", "--no-build-isolation", "-e", str(ROOT))
    except subprocess.CalledProcessError as error:
        say(f"failed: {' '.join(map(str, error.cmd))}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next start begins anew")
        return 130
    UNFINISHED.unlink()
    write_stamp(kind, stamp)
    say(f"ready after {time.monotonic() - started:.0f} s")
    return 0


def is_current(kind: str, stamp: str) -> bool:
    """True when a finished install has left this stamp; ``dev`` holds ``runtime`` too."""
    stamps = {VENV / f".stamp-{kind}", VENV / ".stamp-dev"}
    return any(path.exists() and path.read_text().strip() == stamp for path in stamps)


def is_usable() -> bool:
    """False for a folder that is half made, was moved here, or whose Python is gone or too old."""
    try:
        if UNFINISHED.exists() or str(VENV) not in (VENV / "bin" / "activate").read_text():
            return False
        check = [str(PYTHON), "-c", "import sys, pip; sys.exit(sys.version_info < (3, 11))"]
        return subprocess.run(check, stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def write_stamp(kind: str, stamp: str) -> None:
    """Replace the stamps of an older lock by this one, at once or not at all."""
    for old in VENV.glob(".stamp-*"):
        old.unlink()
    fresh = VENV / ".fresh-stamp"
    fresh.write_text(stamp + "\n")
    fresh.rename(VENV / f".stamp-{kind}")


def pip(*arguments: str) -> None:
    """``pip install``: silent when all goes well. The index is whatever this machine's pip is set up to use."""
    run(str(PYTHON), "-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check", *arguments)


def run(*command: str) -> None:
    """Run to the end; raises CalledProcessError. Standard output stays free for the command to come."""
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    subprocess.run(command, check=True, stdout=sys.stderr, env=outside)


def say(text: str) -> None:
    """Tell the person at the terminal."""
    print(f"run: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
