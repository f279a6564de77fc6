"""Looking at processes of this machine, without owning them. Linux only, as CI is."""

from contextlib import suppress
from pathlib import Path


def is_running(pid: int) -> bool:
    """False too for a zombie: it holds nothing any more."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def command_line(pid: int) -> str:
    """Empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def open_files(pid: int) -> set[Path]:
    """Files that it holds open now."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(link.readlink())
    return found


def descendants(pid: int) -> set[int]:
    """Children of ``pid`` and theirs, as they are now."""
    children: dict[int, set[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, set()).add(int(path.name))
    found, todo = set[int](), [pid]
    while todo:
        new = children.get(todo.pop(), set()) - found
        found |= new
        todo.extend(new)
    return found
