"""How rows travel between ranks: each pair by itself, or once per node."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from distgnn.config.options.option import check_choices, documented, option
from distgnn.errors import InputError

EXCHANGES = ("auto", "flat", "node")

_option = partial(option, panel="Algorithm and exchange")


@documented
@dataclass(frozen=True)
class ExchangeConfig:
    """Which way rows take."""

    exchange: str = _option(
        "auto",
        "flat: each pair of ranks sends messages. node: a row crosses the network once per node, and ranks of a node "
        "share memory. auto: node on two or more nodes of two or more ranks each.",
        choices=EXCHANGES,
    )
    ranks_per_node: int | None = _option(
        None, "Take so many consecutive ranks for a node.", default_text="the ranks that share memory"
    )
    columns: int = _option(
        1,
        "So many ranks share a part, split its rows, and aggregate its columns: fewer rows travel on dense graphs with "
        "one rank a node (models of sums and means).",
    )

    def check(self) -> None:
        """Raise InputError for a value that no run can have."""
        check_choices(self)
        if self.ranks_per_node is not None and self.ranks_per_node < 1:
            raise InputError(f"ranks_per_node is {self.ranks_per_node}: expected at least 1")


def check_columns(columns: int, update: str) -> None:
    """Raise InputError for a number of columns that is none, or that does not go with the update."""
    if isinstance(columns, bool) or not isinstance(columns, int) or columns < 1:
        raise InputError(f"columns is {columns!r}: expected a whole number of ranks that share a part, at least 1")
    if columns > 1 and update == "copies":
        raise InputError("columns are for update on owners: leave columns out, or choose update owners")


def check_beside_columns(model: Any, train: Any) -> None:
    """Raise InputError for what does not go with several ranks a part: a ModelConfig or None, and a TrainConfig."""
    if model is not None and model.by_arc:
        raise InputError(f"--columns is for models of sums and means: {model.by_arc}; leave --columns out")
    if train.num_batches:
        raise InputError("cluster batches are for one rank a part: leave --columns or --batch out")
    if train.inductive:
        raise InputError("inductive training is for one rank a part: leave --columns or --inductive out")
