"""Starting a process sooner: most of a rank's start is imports, torch's more than half of it.

- Python's collector of garbage rests while modules are imported. torch and numba make a million objects that stay;
  looking for garbage among them, again and again, was a fifth of the import.
- torch imports what only its compiler and its exporter need (how every operation changes shapes, written in Python):
  that is deferred in the program's own processes until somebody asks for it.
"""

import contextlib
import gc
import importlib
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from types import ModuleType
from typing import Any

TRIED_TORCH = ("2.13.",)  # another may need at its import what is deferred: there nothing is
SHAPES, EXPORT = "torch._meta_registrations", "torch.export"
NEED_SHAPES = ("torch._dynamo", "torch._inductor")  # they compile operations, and ask for none of its names


@contextlib.contextmanager
def resting_collector() -> Iterator[None]:
    """A block in which nothing is collected; what is not collected in it is found later."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def import_for_good(*modules: str) -> None:
    """Import modules without what is seldom needed, and take all that is there by then out of the collector's sight.

    Notes: for a program's own process: nothing made before is garbage there, and no code of a user's runs in it. In a
        user's, `resting_collector` alone.
    """
    if "torch" not in sys.modules and metadata.version("torch").startswith(TRIED_TORCH):
        sys.meta_path.insert(0, _Deferring())
    with resting_collector():
        for module in modules:
            importlib.import_module(module)
    gc.freeze()


class _Deferring:
    """Finds the modules that are deferred, and loads them before modules that need them unnamed."""

    def find_spec(self, name: str, path: Sequence[str] | None, _: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name in NEED_SHAPES and isinstance(sys.modules.get(SHAPES), _Deferred):
            sys.modules[SHAPES].load()
        if name not in (SHAPES, EXPORT):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)  # type: ignore[assignment]
        return spec


class _Later:
    """A loader that makes a module and runs its code when a name in it is asked for."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing yet."""


class _Deferred(ModuleType):
    """A module whose code has not run."""

    def load(self) -> None:
        """Run it."""
        assert self.__spec__ is not None and isinstance(self.__spec__.loader, _Later)
        self.__class__, loader = ModuleType, self.__spec__.loader.loader
        self.__spec__.loader = loader
        with resting_collector():
            loader.exec_module(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.load()
        return getattr(self, name)
