"""Where and when something was measured."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path


def this_machine() -> dict[str, str | float | int]:
    """Date (UTC), processor, cores, system, Python, and how busy the machine was."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
