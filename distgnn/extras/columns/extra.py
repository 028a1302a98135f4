"""What columns attach: a class of graphs with its setting, the ranks of a part, and what they do not go with."""

from dataclasses import dataclass

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import option


@dataclass
class ColumnOptions:
    """How many ranks share a part."""

    split_columns: int = option(
        1,
        "Number of ranks that share a part, split its rows, and aggregate its columns: fewer rows travel on dense "
        "graphs with 16 ranks and more, one a node (models of sums and means).",
        panel="",
        least=1,
    )


LINES = (
    ("--split-columns is for exact rows: leave it out, or choose algorithm cd-0 and float32 on the wire",
     lambda split_columns, algorithm, wire, wire_backward:
         split_columns > 1 and (not algorithm.exact or {wire, wire_backward} - {"float32", None})),
    ("with --split-columns ranks are started again as many as before: leave --min-ranks and --parts-for out",
     lambda split_columns, min_ranks, parts_for: split_columns > 1 and (min_ranks, parts_for) != (None, None)),
    ("--split-columns is for models of sums and means: {by_arc} works arc by arc; leave --split-columns out",
     lambda split_columns, by_arc: split_columns > 1 and by_arc),
    ("inductive training is for one rank a part: leave --split-columns or --inductive out",
     lambda split_columns, inductive: split_columns > 1 and inductive),
)  # fmt: skip

EXTRA = Extra(
    options={"Schedule": ColumnOptions},
    rules=tuple(Rule(*line) for line in LINES),
    hooks={"graph": "graph:ColumnGraph"},
    ranks_per_part="split_columns",
)
