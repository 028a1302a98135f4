"""Import DGL and PyG, or say in one line how to get them: DGL 1.1.3 quietly, beside new setuptools."""

import importlib
import os
import sys
import warnings
from types import ModuleType

from distgnn.errors import InputError

PYTHON = sys.version_info[:2]


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
    if sys.modules.get("dgl") is not None:
        return sys.modules["dgl"]
    os.environ.setdefault("DGLBACKEND", "pytorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packaging = "setuptools.extern.packaging"
        try:
            importlib.import_module(packaging)
        except ImportError:  # setuptools no longer carries it
            importlib.import_module("packaging.version")
            sys.modules[packaging] = importlib.import_module("packaging")
        try:
            return importlib.import_module("dgl")
        except (ImportError, OSError) as error:
            if PYTHON >= (3, 12):
                raise InputError(
                    f"this needs DGL, which has no package for Python {PYTHON[0]}.{PYTHON[1]}: use "
                    "Python 3.10 or 3.11 for it; everything else of distgnn runs here, dg.nn has DGL's layers"
                ) from error
            raise _does_not_load("DGL", error, "dgl==1.1.3") from error


def import_pyg() -> ModuleType:
    """Import and return the module `torch_geometric`."""
    if sys.modules.get("torch_geometric") is not None:
        return sys.modules["torch_geometric"]
    try:
        return importlib.import_module("torch_geometric")
    except (ImportError, OSError) as error:
        raise _does_not_load("PyG", error, "'distgnn[pyg]'") from error


def _does_not_load(name: str, error: Exception, package: str) -> InputError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(f"this needs {name}, which does not load here ({reason}); pip install {package}")
