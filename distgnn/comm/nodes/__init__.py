"""The node-aware exchange: a row crosses the network once per node, and ranks of a node share memory."""

from distgnn.comm.nodes.exchange import NodeExchange
from distgnn.comm.nodes.groups import Nodes, choose_nodes, find_nodes
from distgnn.comm.nodes.plan import NodePlan, make_node_plan

__all__ = ["NodeExchange", "NodePlan", "Nodes", "choose_nodes", "find_nodes", "make_node_plan"]
