"""Import DGL 1.1.3 quietly beside new setuptools: the one place that knows how."""

import importlib
import os
import sys
import warnings
from types import ModuleType

from distgnn.errors import InputError

PYTHON = sys.version_info[:2]


def register_packaging() -> None:
    """Offer `packaging` as `setuptools.extern.packaging`, where setuptools no longer carries it."""
    name = "setuptools.extern.packaging"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    except ImportError:
        importlib.import_module("packaging.version")
        sys.modules[name] = importlib.import_module("packaging")


def import_dgl() -> ModuleType:
    """Import and return the module `dgl`.

    Returns: the module.
    Raises: InputError where DGL is not installed or does not load.
    Notes: sets DGLBACKEND=pytorch if unset, so that DGL neither asks nor writes its settings into the user's home.

    Example:
        >>> dgl = dg.import_dgl()
        >>> dgl.graph(([0, 1], [1, 2])).num_edges()
        2
    """
    loaded = sys.modules.get("dgl")
    if loaded is not None:
        return loaded
    register_packaging()
    os.environ.setdefault("DGLBACKEND", "pytorch")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("dgl")
    except (ImportError, OSError) as error:
        if PYTHON >= (3, 12):
            raise InputError(
                f"this needs DGL, which has no package for Python {PYTHON[0]}.{PYTHON[1]}: use "
                "Python 3.10 or 3.11 for it; everything else of distgnn runs here, dg.nn has DGL's layers"
            ) from error
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"this needs DGL, which does not load here ({reason}); pip install dgl==1.1.3") from error
