"""How every kernel is compiled: without the GIL, cached on disk, once per machine.

`kernel` is numba's `njit` with four things added.

- `nogil=True`: a kernel works on a range of rows `[start, stop)` and `threads.run` calls it from several threads
  at once. Serial functions compile about six times faster than `parallel=True` ones (0.4 s against 2.5 s here)
  and need no OpenMP, TBB or workqueue layer.
- The cache of *all* kernels of a package is stale as soon as *any* of its files changes, or any of this package. numba
  itself looks only at the file that defines the function, not at the helpers that were inlined into it.
- Files that are whole or not used (kept_code.py): a damaged one is named in one line, and its kernel compiled again.
- A file lock for each kernel around look-up, compilation and writing: four ranks that start together compile each
  kernel once, three wait and load. It is shared while machine code is only loaded, so that the ranks of a node load at
  the same time; who finds nothing asks for it alone and looks again. A kernel that calls another is locked before it,
  always in this order, so nobody waits in a circle.

A kernel made inside a function (one per tile) may capture tiles, numbers and strings, but no compiled function: numba
could not tell its cached code from another's and would compile it in every process. What kernels share stands at the
top level of a module.

Over 300 lines: compiler, cache and lock hold one invariant together.
"""

import contextlib
import functools
import gc
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from numba import njit
from numba.core import config
from numba.core.caching import FunctionCache, NullCache, UserProvidedCacheLocator
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys

from distgnn.kernels.runtime.kept_code import DamagedError, KeptCode, doubt
from distgnn.kernels.runtime.memory import check_room

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: numba's own behaviour
    fcntl = None  # type: ignore[assignment]

RARE_COLLECTION = 100_000  # objects made between two looks for garbage while a kernel is compiled
NOWHERE = (
    "compiled kernels cannot be kept, every process compiles its own: neither the installation nor the user's cache "
    "folder can be written; set NUMBA_CACHE_DIR to a folder that can"
)
DOUBTED = (
    "compiled kernels in {folder} are not read, {instead}: {reason}, and could have put anything there to be executed; "
    "take the right to write from others (chmod -R go-w), or set NUMBA_CACHE_DIR to a folder of your own"
)
FULL = "compiled kernels cannot be kept in {folder} ({reason}): every process compiles its own"
AGAIN = "{fault}: its kernel is compiled again"
NOT_COMPILED = "check"  # the room of this package without a kernel: what is changed there needs no new machine code


def kernel(function: Callable | None = None, counted: bool = True) -> Any:
    """Compile a function of a row range.

    Args: counted: False: without numba's counts of references to arrays, for a function that makes none. A cut took
        1.2 to 1.3 times as long with them (60,000 vertices, 4 parts, one thread; Zen 3): of a tuple of arrays numba
        counts each field in each loop. The option has no public name in numba; here alone it has this one.
    """
    if function is None:
        return lambda f: kernel(f, counted)
    options = {} if counted else {"_nrt": False}
    dispatcher = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    if not getattr(config, "DISABLE_JIT", 0):
        # numba's `cache=True` would stamp one file; the dispatcher takes any cache with this interface.
        dispatcher._cache = _OnFirstUse(function)
        dispatcher.compile = _under_lock(dispatcher.compile, dispatcher)
    return dispatcher


def inline(function: Callable | None = None, counted: bool = True) -> Any:
    """Compile a helper that becomes part of the kernels that call it; nothing is cached for it alone.

    LLVM would leave a large one outside, and hand over some thirty arguments and all registers through memory.
    """
    if function is None:
        return lambda f: inline(f, counted)
    common = {"nogil": True, "error_model": "numpy", "forceinline": True} | ({} if counted else {"_nrt": False})
    if getattr(config, "DISABLE_JIT", 0):
        return njit(**common)(function)
    # Code that takes arguments from Python objects: a quarter of a cut's compiling, and only tests call helpers.
    without = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _Helper(function, targetoptions={**without, **common})


class _Helper(CPUDispatcher):
    """A helper that Python may call all the same: a function around it is compiled then, for every process anew.

    Without this a call from Python would run the form for Python that was not made: a segmentation fault.
    """

    @functools.cached_property
    def _called(self) -> Any:
        helper = self
        return njit(nogil=True, error_model="numpy")(lambda *args: helper(*args))

    def __call__(self, *args: Any) -> Any:
        return self._called(*args)


class _ReadOnlyFolder(UserProvidedCacheLocator):
    """NUMBA_CACHE_DIR that can be read only, as in an image: numba itself would pass over it and compile again."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: Any) -> Any:
        if not config.CACHE_DIR:
            return None
        found = cls(py_func, py_file)
        path = found.get_cache_path()
        return found if os.path.isdir(path) and not os.access(path, os.W_OK) else None


class _Files(FunctionCache._impl_class):
    _locator_classes = [_ReadOnlyFolder, *FunctionCache._impl_class._locator_classes]  # noqa: RUF012


class PackageCache(FunctionCache):
    """numba's cache, stamped with the files of the function's package and of this one instead of one file.

    Args: folder: another one than numba's; note: a line to say when the first kernel is compiled.
    """

    _impl_class = _Files

    def __init__(self, function: Callable, folder: Path | None = None, note: str = "") -> None:
        super().__init__(function)
        place: Path = folder or Path(self._impl.locator.get_cache_path())
        self._cache_path, self._note, self._fault = str(place), note, ""
        # One stamp for all files of a package: an upgrade of any helper leaves no old machine code behind.
        stamp, name = _package_stamp(_package_folder(function)), self._impl.filename_base
        self._cache_file = KeptCode(place, name, stamp, function.__code__.co_filename)
        self.lock_path: Path | None = place / f"{name}.lock"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code of a signature, or None: then numba compiles next, and the listeners are told."""
        # As numba's own, without `target_context.refresh()`: the tables of all types and functions it knows are a fifth
        # of a second of a rank's start. Compiling needs them, and makes them itself; machine code does not.
        rtsys.initialize(target_context)  # what counts references: part of the refresh, and called by machine code
        found = self._find(sig, target_context)
        if found is None and _lock_alone(self.lock_path):  # another process may have made it before we had the lock
            found = self._find(sig, target_context)
        if found is None:
            check_room()
            if self._note:
                _say(self._note)
            if self._fault:  # of the process that has the lock alone: the others load what it makes
                _say(AGAIN.format(fault=self._fault))
            _tell(0.0)
        return found

    def _find(self, sig: Any, target_context: Any) -> Any:
        self._fault = ""
        try:
            return self._load_overload(sig, target_context)
        except MemoryError:
            raise
        except DamagedError as fault:
            self._fault = str(fault)
        except Exception as error:  # of another release of numba, with the same number
            file = self._cache_file.file_of(self._index_key(sig, target_context.codegen()))
            self._fault = f"{file} is damaged ({type(error).__name__})"
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code; says once where the folder cannot be written or has no room."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say(FULL.format(folder=self._cache_path, reason=error.strerror))


class NoCache(NullCache):
    """Where no folder can be written, or the folder can be written by others: every process compiles for itself."""

    lock_path: Path | None = None

    def __init__(self, reason: str = NOWHERE):
        self.reason = reason

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """None, as of a cache that has nothing yet; says once what this costs."""
        check_room()
        _say(self.reason)
        _tell(0.0)


class _OnFirstUse:
    """The cache of a kernel, looked for when the kernel is first called: a process calls few of all kernels."""

    def __init__(self, function: Callable) -> None:
        self._function = function

    @functools.cached_property
    def _found(self) -> Any:
        return _cache_of(self._function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)


def _cache_of(function: Callable) -> PackageCache | NoCache:
    """A cache in the first folder that can be written: NUMBA_CACHE_DIR, beside the source, the user's cache folder.

    Where others can write there, one that is the user's own.
    """
    source = function.__code__.co_filename
    try:
        cache = PackageCache(function)
        reason = doubt(str(cache.cache_path), source)
        if reason is None:
            return cache
        own, facts = _own_folder(cache.cache_path), {"folder": cache.cache_path, "reason": reason}
        if own is None or doubt(str(own), source) is not None:
            return NoCache(DOUBTED.format(instead="every process compiles its own", **facts))
        return PackageCache(function, own, DOUBTED.format(instead=f"they are kept in {own}", **facts))
    except RuntimeError as error:  # numba: "cannot cache function: no locator available"
        if "no locator" not in str(error):
            raise
        return NoCache()


def _own_folder(beside: str) -> Path | None:
    """A folder that this user alone can write, in place of another one; None where there is none."""
    top = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "distgnn")
    folder = top / f"kernels-{hashlib.sha256(beside.encode()).hexdigest()[:16]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _say(line: str) -> None:
    """A line on standard error, once for a process."""
    if line not in _said:
        _said.append(line)
        print(f"distgnn: {line}", file=sys.stderr, flush=True)


def cache_folder() -> Path | None:
    """Where later processes find the kernels of this file's folder; None: nowhere, nothing can be kept."""
    cache = _cache_of(_package_folder)
    return Path(cache.cache_path) if isinstance(cache, PackageCache) else None


def _package_folder(function: Callable) -> Path:
    """The folder of the package `distgnn.NAME` that a function belongs to; of a function elsewhere, its own."""
    package = sys.modules.get(".".join(function.__module__.split(".")[:2]))
    file = getattr(package, "__file__", None) if hasattr(package, "__path__") else None
    return Path(file or function.__code__.co_filename).parent


def program_stamp() -> str:
    """Another one for other kernels."""
    return _package_stamp(_package_folder(kernel))


@functools.cache
def _package_stamp(folder: Path) -> str:
    """A hash over the files below `folder` and below this package, but for those without kernels."""
    ours = _package_folder(kernel)
    # Contents, not times: layers of a container keep whole seconds only, and kernels compiled in an image would be
    # stale in each container. Some 100 files are read once per process and package.
    found = hashlib.sha256()
    # Two folders where the kernel belongs to another package, which inlines helpers of this one.
    for top in sorted({ours, folder}):
        for file in sorted(top.rglob("*.py")):
            if file.name != "__init__.py" and (top / NOT_COMPILED not in file.parents or top != ours):
                content = file.read_bytes()
                found.update(f"{file.relative_to(top).as_posix()} {len(content)} ".encode() + content)
    return found.hexdigest()


def _under_lock(compile_signature: Any, dispatcher: Any) -> Callable:
    """Hold the compiler lock (threads), then the file lock (processes), while a signature is looked up or made."""

    def compile_once(signature: Any) -> Any:
        # Always in this order, threads then processes: two locks taken in two orders could wait for each other.
        with global_compiler_lock:
            start, misses = time.perf_counter(), sum(dispatcher.stats.cache_misses.values())
            before = len(_made)
            with _file_lock(dispatcher._cache.lock_path), _rare_collection():
                result = compile_signature(signature)
            compiled = sum(dispatcher.stats.cache_misses.values()) > misses
            # Kernels that this one calls were made within its time, and have reported their own.
            called = sum(seconds for _, seconds in _made[before:])
            seconds = time.perf_counter() - start - called
            _made.append((compiled, seconds))
            if compiled:
                _tell(seconds)
            return result

    return compile_once


class Compilation(NamedTuple):
    """What getting machine code has cost this process so far: kernels compiled and loaded, and seconds for both."""

    compiled: int
    loaded: int
    seconds: float


def compilation() -> Compilation:
    """Kernels compiled here, kernels loaded from the cache (perhaps after waiting for another process), and seconds."""
    compiled = sum(compiled for compiled, _ in _made)
    return Compilation(compiled, len(_made) - compiled, sum(seconds for _, seconds in _made))


def _tell(seconds: float) -> None:
    for listener in listeners:
        listener(seconds)


@contextlib.contextmanager
def _rare_collection() -> Iterator[None]:
    """Look for garbage less often: a compiler makes many objects that live long, and 10 % of its time went there."""
    thresholds = gc.get_threshold()
    if thresholds[0]:  # a user's choice to collect nothing stays
        gc.set_threshold(max(thresholds[0], RARE_COLLECTION), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextlib.contextmanager
def _file_lock(path: Path | None) -> Iterator[None]:
    """Lock between processes, shared until `_lock_alone`; the same lock again, by the same thread, passes."""
    if fcntl is None or path is None or path in _held:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError:  # a cache nobody can write: numba will not write it either
        yield
        return
    # A kernel that calls itself through another signature comes here again: flock on a second handle would wait for us.
    _held[path] = handle
    try:
        with contextlib.suppress(OSError):  # file systems without locks
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        del _held[path]
        os.close(handle)


def _lock_alone(path: Path | None) -> bool:
    """Make a lock that this process holds exclusive; is there one?

    Notes: flock gives the shared lock back first, so two processes that ask for this do not wait for each other.
    """
    if path not in _held:
        return False
    with contextlib.suppress(OSError):
        fcntl.flock(_held[path], fcntl.LOCK_EX)
    return True


# Called under the compiler lock before a kernel is compiled (with 0) and after it (with its seconds), not when one is
# loaded: see compile_line.py.
listeners: list[Callable[[float], None]] = []
_said: list[str] = []  # lines: once a process is enough
_made: list = []  # (compiled, seconds) of each signature; a look-up of one that is there costs nothing and is not in it
_held: dict[Path, int] = {}  # the locks this process holds; guarded by numba's compiler lock
