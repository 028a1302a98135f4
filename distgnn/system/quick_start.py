"""Starting a process sooner: most of a rank's start is imports, torch's more than half of it.

- Python's collector of garbage rests while modules are imported. torch and numba make a million objects that stay;
  looking for garbage among them, again and again, was a fifth of the import.
- torch imports what only its compiler and its exporter need (how every operation changes shapes, written in Python),
  distributions and masked tensors, and scipy numpy's Fortran reader: all that is deferred in the program's own
  processes until somebody asks for it.
- torch asks `inspect` where some of its operations are defined, and that compares the files of all modules: the module
  of a line is known by its name.
"""

import contextlib
import gc
import importlib
import importlib.machinery
import inspect
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from types import ModuleType
from typing import Any

TRIED_TORCH = ("2.13.",)  # another may need at its import what is deferred: there nothing is
SHAPES = "torch._meta_registrations"
DEFERRED = (SHAPES, "torch.export", "torch.distributions", "torch.masked", "numpy.f2py")
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
    with resting_collector(), modules_by_name():
        for module in modules:
            importlib.import_module(module)
    gc.freeze()


@contextlib.contextmanager
def modules_by_name() -> Iterator[None]:
    """A block in which `inspect` finds the module of a frame by its name, not by comparing files."""
    by_file = inspect.getmodule

    def getmodule(thing: Any, *file: Any) -> ModuleType | None:
        return sys.modules.get(thing.f_globals.get("__name__", "")) if inspect.isframe(thing) else by_file(thing, *file)

    inspect.getmodule = getmodule  # type: ignore[assignment]
    try:
        yield
    finally:
        inspect.getmodule = by_file


class _Deferring:
    """Finds the modules that are deferred, and loads them before modules that need them unnamed."""

    def find_spec(self, name: str, path: Sequence[str] | None, _: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name in NEED_SHAPES and isinstance(sys.modules.get(SHAPES), _Deferred):
            sys.modules[SHAPES].load()
        package = sys.modules.get(name.rpartition(".")[0])
        if isinstance(package, _Deferred):
            package.load()
            return _there_already(name) if name in sys.modules else None
        if name not in DEFERRED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)  # type: ignore[assignment]
        return spec


def _there_already(name: str) -> importlib.machinery.ModuleSpec:
    """Of a module that its package has imported meanwhile: who asks for it gets that, and it is not run again."""
    module = sys.modules[name]
    # Python asks the module there for its specification, not the finder: for one import it has another one.
    module.__spec__ = importlib.machinery.ModuleSpec(name, _There(module))  # type: ignore[arg-type]
    return module.__spec__


class _There:
    """A loader that hands on the module that is there, with the specification that it had."""

    def __init__(self, module: ModuleType):
        self.module, self.before = module, module.__spec__

    def create_module(self, spec: Any) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.before


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
        later = self.__spec__.loader
        self.__class__, self.__spec__.loader = ModuleType, later.loader
        try:
            with resting_collector():
                later.loader.exec_module(self)
        except BaseException:
            self.__class__, self.__spec__.loader = _Deferred, later  # the next who asks sees the same error
            raise

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        self.load()
        return getattr(self, name)
