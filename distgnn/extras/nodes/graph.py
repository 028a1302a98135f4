"""NodeGraph: a DistGraph whose rows travel by nodes."""

from distgnn.comm import Exchange
from distgnn.config.extras import part_of
from distgnn.extras.nodes.exchange import NodeExchange
from distgnn.extras.nodes.extra import NodeOptions
from distgnn.extras.nodes.groups import find_nodes
from distgnn.extras.nodes.plan import make_node_plan
from distgnn.graph.dist_graph import DistGraph


class NodeGraph(DistGraph):
    """A DistGraph of ranks in nodes; it takes the same arguments."""

    def exact_exchanges(self) -> tuple[Exchange, Exchange]:
        if self.comm.size == 1:
            return super().exact_exchanges()
        nodes = find_nodes(self.comm, part_of(self.schedule, NodeOptions).ranks_per_node)
        plan = make_node_plan(self.plan, self.transport, nodes)
        return NodeExchange(plan, self.transport), NodeExchange(plan.transposed(), self.transport)
