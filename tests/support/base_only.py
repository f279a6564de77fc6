"""A beginning of a program that makes its interpreter refuse every package that the base installation has not."""

REFUSING = """
import importlib.abc, sys

BASE = {"prefold", "httpx", "redis", "httpcore", "h11", "anyio", "sniffio", "idna", "certifi", "typing_extensions"}

class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in BASE or top in sys.stdlib_module_names or top.startswith("_"):
            return None
        raise ModuleNotFoundError(f"not in the base installation: {name}", name=name)

sys.meta_path.insert(0, Refusing())
"""
