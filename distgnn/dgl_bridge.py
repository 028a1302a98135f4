"""Everything that touches DGL goes through here."""

from distgnn.datasets.dgl_import import import_dgl, register_packaging

__all__ = ["import_dgl", "register_packaging"]
