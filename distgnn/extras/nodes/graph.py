"""NodeGraph: a DistGraph whose rows travel by nodes."""

from distgnn.comm import Exchange
from distgnn.config.extras import part_of
from distgnn.extras.nodes.exchange import NodeExchange
from distgnn.extras.nodes.extra import NodeOptions
from distgnn.extras.nodes.plan import Nodes, make_node_plan
from distgnn.graph.dist_graph import DistGraph


class NodeGraph(DistGraph):
    """A DistGraph of ranks in nodes; it takes the same arguments."""

    def exact_exchanges(self) -> tuple[Exchange, Exchange]:
        nodes = Nodes(self.comm.size, part_of(self.schedule, NodeOptions).ranks_per_node)
        plan = make_node_plan(self.plan, self.comm, nodes)
        forward = NodeExchange(plan, self.transport)
        return forward, NodeExchange(plan.transposed(), self.transport, forward)
