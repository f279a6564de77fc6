"""``prefold top`` on a terminal of its own."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.support.waiting import wait_until
from tests.support.worker_jobs import COMMAND, environment

ROWS, COLUMNS = 24, 80
CTRL_C = b"\x03"


@dataclass
class Terminal:
    """The far end of a terminal in which ``prefold top`` runs."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    shown: bytes = b""

    def has_shown(self, text: bytes) -> bool:
        self.shown += os.read(self.master, 65_536)
        return text in self.shown

    def settings(self) -> list[object]:
        return list(termios.tcgetattr(self.slave))


@contextmanager
def top(queue_url: str, redis_url: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    os.set_blocking(master, True)
    env = environment(queue_url, redis_url, gateway_url="http://127.0.0.1:9") | {
        "TERM": "xterm",
        "COLUMNS": "",
        "LINES": "",
    }
    process = subprocess.Popen(
        [*COMMAND, "top"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 (a system call alone; Ctrl-C needs it)
    )
    try:
        yield Terminal(process, master, slave)
    finally:
        process.kill()
        process.wait(10)
        os.close(master)
        os.close(slave)


def ends_at(key: bytes, queue_url: str, redis_url: str) -> None:
    with top(queue_url, redis_url) as terminal:
        before = terminal.settings()
        wait_until("the picture stands", lambda: terminal.has_shown(b"q or Ctrl-C ends"), timeout=40)
        assert b"events" in terminal.shown
        assert b"gateway http://127.0.0.1:9/metrics: no answer" in terminal.shown
        assert terminal.settings() != before, "keys come one by one"
        os.write(terminal.master, key)
        assert terminal.process.wait(20) == 0
        assert terminal.settings() == before


def test_it_draws_until_q_and_leaves_the_terminal_as_it_was(queue_url: str, redis_url: str) -> None:
    ends_at(b"q", queue_url, redis_url)


@pytest.mark.long
def test_it_draws_until_ctrl_c_likewise(queue_url: str, redis_url: str) -> None:
    ends_at(CTRL_C, queue_url, redis_url)
