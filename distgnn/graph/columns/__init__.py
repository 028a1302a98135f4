"""Groups of ranks that share a part: the rows of one rank, and the graph that a model sees of them."""

from distgnn.graph.columns.column_graph import ColumnGraph
from distgnn.graph.columns.row_share import RowShare, row_share

__all__ = ["ColumnGraph", "RowShare", "row_share"]
