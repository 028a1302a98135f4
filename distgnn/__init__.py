"""DistGNN: full-batch training of graph neural networks on clusters of CPU sockets."""

from pathlib import Path

__version__ = "0.1.0"

# In a checkout, `partition`, `kernels` and `datasets` stand beside this folder: let `distgnn.kernels` find them.
_root = Path(__file__).resolve().parent.parent
if (_root / "pyproject.toml").is_file():
    __path__.append(str(_root))
del _root
