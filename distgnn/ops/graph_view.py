"""GraphView: the graph that operators and layers take, for type checkers.

It is a DistGraph of any kind. A `BatchGraph` has the members that layers on sums of neighbours ask for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distgnn.graph.dist_graph import DistGraph as GraphView
else:
    GraphView = Any
