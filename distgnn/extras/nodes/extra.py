"""What exchange by nodes attaches: a class of graphs with its setting, and what it does not go with."""

from dataclasses import dataclass

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import option


@dataclass
class NodeOptions:
    """Which ranks are a node."""

    ranks_per_node: int = option(
        1,
        "Number of consecutive ranks on a machine: a row crosses the network once for all of them.",
        panel="",
        least=1,
    )


EXTRA = Extra(
    options={"Schedule": NodeOptions},
    rules=(
        Rule(
            "--ranks-per-node is for exact rows: leave it out, or choose algorithm cd-0 and float32 on the wire",
            lambda ranks_per_node, algorithm, wire, wire_backward: (
                ranks_per_node > 1 and (not algorithm.exact or {wire, wire_backward} - {"float32", None})
            ),
        ),
        Rule(
            "rows of --offload travel in pieces between all ranks: leave --ranks-per-node or --offload out",
            lambda ranks_per_node, offload: ranks_per_node > 1 and offload,
        ),
    ),
    hooks={"graph": "exchange:NodeGraph"},
)
