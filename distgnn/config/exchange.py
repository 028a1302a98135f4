"""How rows travel between ranks: each pair by itself, or once per node."""

from dataclasses import dataclass
from functools import partial

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

    def check(self) -> None:
        """Raise InputError for a value that no run can have."""
        check_choices(self)
        if self.ranks_per_node is not None and self.ranks_per_node < 1:
            raise InputError(f"ranks_per_node is {self.ranks_per_node}: expected at least 1")
