"""Import PyG, or say in one line how to get it."""

import importlib
import sys
from types import ModuleType

from distgnn.errors import InputError


def import_pyg() -> ModuleType:
    """Import and return the module `torch_geometric`.

    Raises: InputError where PyG is not installed or does not load.
    """
    loaded = sys.modules.get("torch_geometric")
    if loaded is not None:
        return loaded
    try:
        return importlib.import_module("torch_geometric")
    except (ImportError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"this needs PyG, which does not load here ({reason}); pip install 'distgnn[pyg]'") from error
