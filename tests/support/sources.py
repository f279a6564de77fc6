"""The project's own source files, as architecture tests look at them."""

import ast
import importlib.metadata
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE_ROOTS = tuple(ROOT / name / "prefold" for name in ("services", "workers", "shared"))


def portions() -> list[Path]:
    """Folders of the portions: ``services/prefold/gateway`` and so on."""
    return sorted(path for root in SOURCE_ROOTS for path in root.iterdir() if path.name != "__pycache__")


def source_files(*suffixes: str) -> list[Path]:
    """Our files with these endings, Python by default."""
    wanted = suffixes or (".py",)
    return sorted(path for portion in portions() for path in portion.rglob("*") if path.suffix in wanted)


def module_name(path: Path) -> str:
    """``prefold.gateway.main`` for ``services/prefold/gateway/main.py``."""
    parts = path.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports_of_portions() -> dict[str, frozenset[str]]:
    """Name of a portion → the modules that its files import, wherever they do."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in source_files():
        portion = module_name(path).split(".")[1]
        found[portion].update(_imported(ast.parse(path.read_text())))
    return {portion: frozenset(modules) for portion, modules in found.items()}


def third_party_modules_of(portion_names: set[str]) -> set[str]:
    """Modules of others that these portions, and those of ours that they import, import."""
    todo, seen, modules = list(portion_names), set(portion_names), set[str]()
    while todo:
        for module in imports_of_portions().get(todo.pop(), frozenset()):
            top, *rest = module.split(".")
            if top != "prefold":
                modules.add(module)
            elif rest and rest[0] not in seen:
                seen.add(rest[0])
                todo.append(rest[0])
    return {module for module in modules if top_of(module) not in sys.stdlib_module_names}


def top_of(module: str) -> str:
    """``pydantic`` for ``pydantic.fields``."""
    return module.partition(".")[0]


def distributions_of(modules: set[str]) -> set[str]:
    """Names, as pip knows them, of the distributions that bring these modules; the top package's where unknown."""
    known = importlib.metadata.packages_distributions()
    tops = {top_of(module) for module in modules}
    return {owner.lower().replace("_", "-") for top in tops for owner in known.get(top, [top])}


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
