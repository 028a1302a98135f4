"""The epoch and the memory of one choice (ranks, algorithm, wire, dtype) in closed form: prices times loads.

Legend: V vertices, A arcs, X rows sent by all ranks in one layer and direction, P ranks, L layers, W hidden width.

    arcs      A / P · balance, aggregated in L - 1 layers (the first is kept), forward and backward
    dense     V / P rows (with update on copies, halo copies too): in_l · out_l products of every layer
    bytes     X · (bytes of a row of each exchanged layer on the wire) · 2, over P; of cd-R the R-th part
    epoch     from max(compute, network), all messages hidden, to 1.1 compute + network, none hidden

With few nodes the sum of gradients and its latencies count as well. Prices are measured on the ranks that will train
(`distgnn prices FILE`). A JSON file:

    {"format_version": 1, "width": 256, "num_layers": 3,
     "seconds_per_arc_value": 1.6e-10, "seconds_per_dense_row": 4e-6, "seconds_per_exchanged_row": 9e-7, ...}

Each price is for one layer, forward and backward; more keys (ranks, threads, hosts) say where they were measured.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from distgnn.config import Settings, row_bytes
from distgnn.errors import InputError
from distgnn.extras.replay.network import Network, sum_seconds
from distgnn.extras.replay.planning.graph_sizes import GraphSizes
from distgnn.system.regular_file import read_text
from distgnn.train.run.estimate import estimate_bytes

BALANCE = 1.05  # of the largest rank: what cuts promise (arcs 1.03, rows 1.05)
ROWS_BALANCE = 1.3  # of rows sent by the largest rank: measured 1.0 to 2.8, mostly below this
# Of the largest rank's memory: owned rows of graphs with both arcs were 1.000, rows sent in 8 parts 1.00 to 1.28
OWNED_IN_MEMORY, ROWS_IN_MEMORY = 1.01, 1.15
PACK_BYTES = 4e9  # per second, read and write of a core that copies rows
MEMORY_BOUND_THREADS = 6  # beyond this number, more threads of a socket aggregate no faster
FORMAT_VERSION = 1  # of a file of prices
MOST_SECONDS = 1e6  # for one arc or row
PRICES = ("seconds_per_arc_value", "seconds_per_dense_row", "seconds_per_exchanged_row")


@dataclass(frozen=True)
class EpochPrices:
    """Seconds of the three things that an epoch is made of, forward and backward; see above."""

    seconds_per_arc_value: float
    seconds_per_dense_row: float
    seconds_per_exchanged_row: float
    width: int = 256
    num_layers: int = 3

    def check(self) -> "EpochPrices":
        """Return self; raise `InputError` for prices that cannot be."""
        for name, value in asdict(self).items():  # JSON's true is an int in Python; a NaN fails both comparisons
            kind, least, most = (int | float, 0, MOST_SECONDS) if name in PRICES else (int, 1, 2**31 - 1)
            if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
                words = f"seconds, from 0 to {MOST_SECONDS:g}" if name in PRICES else "a whole number, 1 or more"
                raise InputError(f"{name} is {str(value)[:40]}: expected {words}")
        if not any(getattr(self, name) for name in PRICES):
            raise InputError("all prices are 0: every cut would cost the same")
        return self


# Seconds of a Zen 4 core (docs/benchmarks/epoch.md): for whom has measured nothing.
ASSUMED = EpochPrices(1.6e-10, 4e-6, 9e-7)


def read_prices(path: str | Path) -> EpochPrices:
    """Prices from a file of `distgnn prices`. Raises: InputError that names the file and its fault."""
    try:
        found = json.loads(read_text(path))
    except OSError as error:
        raise InputError(f"cannot read prices {path}: {error.strerror}: distgnn prices writes them") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON ({error}): distgnn prices writes prices") from None
    if not isinstance(found, dict) or found.get("format_version") != FORMAT_VERSION:
        raise InputError(f"{path} is no file of prices of format version {FORMAT_VERSION}")
    names = (*PRICES, "width", "num_layers")
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}")
    try:
        # Other keys, which say where prices were measured, are left out.
        return EpochPrices(**{name: found[name] for name in names}).check()
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Choice:
    """What is chosen: ranks, and settings of `distgnn train`."""

    ranks: int
    algorithm: str = "cd-0"
    wire: str = "float32"
    dtype: str = "float32"


@dataclass(frozen=True)
class Estimate:
    """Of a choice: the expected epoch between its least and its most, and what a rank needs."""

    choice: Choice
    epoch_seconds: float
    least_seconds: float
    most_seconds: float
    compute_seconds: float
    network_seconds: float
    sent_bytes: float
    memory_bytes: int

    @property
    def efficiency(self) -> float:
        """Share of the epoch that a rank computes."""
        return self.compute_seconds / self.epoch_seconds

    def as_dict(self) -> dict[str, Any]:
        found = asdict(self)
        return found.pop("choice") | found | {"efficiency": self.efficiency}


def assumed_prices(threads: int) -> EpochPrices:
    """Prices of a rank with these threads, where none were measured."""
    shared = min(threads, MEMORY_BOUND_THREADS)
    arcs, dense = ASSUMED.seconds_per_arc_value / shared, ASSUMED.seconds_per_dense_row / max(1.0, 0.8 * threads)
    return replace(ASSUMED, seconds_per_arc_value=arcs, seconds_per_dense_row=dense)


@dataclass(frozen=True)
class Rank:
    """What a rank computes with: prices, its threads, and how wrong prices may be as a factor (1: measured)."""

    prices: EpochPrices
    threads: int = 1
    spread: float = 1.0


def estimate(sizes: GraphSizes, choice: Choice, settings: Settings, rank: Rank, network: Network) -> Estimate:
    prices, spread = rank.prices, rank.spread
    settings = settled(settings, choice)
    hidden, inner = settings.model.hidden_feats, [settings.model.hidden_feats] * (settings.model.num_layers - 1)
    widths = list(zip([sizes.num_feats or hidden, *inner], [*inner, sizes.num_classes], strict=True))
    exchanged = [min(pair) if settings.run.transform_first else pair[0] for pair in widths]
    if settings.run.cache_first:
        exchanged = exchanged[1:]
    rows = sizes.exchange_rows(choice.ranks) if settings.algorithm.exact or settings.algorithm.delay else 0.0
    copies = settings.run.update == "copies"
    halos = sizes.exchange_rows(choice.ranks) / 2 if copies else 0.0
    narrow = 0.75 if choice.dtype == "bfloat16" else 1.0
    arcs = BALANCE * sizes.num_arcs / choice.ranks * prices.seconds_per_arc_value * sum(exchanged) * narrow
    each = prices.seconds_per_dense_row / prices.width**2
    dense = BALANCE * (sizes.num_nodes + halos) / choice.ranks * each * sum(i * o for i, o in widths) * narrow
    crossing = 2 * rows / (settings.algorithm.delay or 1)
    item = 8 if choice.dtype == "float64" else row_bytes(1, choice.dtype)
    sent = crossing * sum(row_bytes(width, choice.wire, item) for width in exchanged)
    of_rank = ROWS_BALANCE * sent / choice.ranks
    packed = ROWS_BALANCE * crossing * sum(exchanged) * 4 / choice.ranks
    pack = 2 * packed / (PACK_BYTES * min(rank.threads, MEMORY_BOUND_THREADS))
    compute = arcs + dense + pack
    travel = _network_seconds(network, choice.ranks, of_rank, 4 * sum(2 * i * o for i, o in widths))
    least, most = max(compute / spread, travel), 1.1 * compute * spread + travel
    if settings.algorithm.delay or not rows:
        most = max(1.1 * compute * spread, travel) + 0.1 * travel
    likely = max(compute, travel) + (0.5 * min(compute, travel) if settings.algorithm.exact else 0.0)
    likely = min(max(likely, least), most)
    memory = memory_bytes(sizes, choice, settings)
    return Estimate(choice, likely, least, most, compute, travel, sent, memory)


def settled(settings: Settings, choice: Choice) -> Settings:
    run = replace(settings.run, algorithm=choice.algorithm, dtype=choice.dtype, update=None)
    schedule = replace(settings.schedule, wire=choice.wire, wire_backward=None)
    return replace(settings, run=run, schedule=schedule).checked()


def _network_seconds(network: Network, ranks: int, sent_bytes: float, gradient_bytes: int) -> float:
    """Seconds of a rank's messages and of the sum of gradients, when nothing else happens."""
    if ranks == 1:
        return 0.0
    nodes = -(-ranks // network.ranks_per_node)
    crossing = (ranks - network.ranks_per_node) / max(ranks - 1, 1) if nodes > 1 else 0.0
    rate = min(network.bandwidth / network.ranks_per_node, network.rank_bandwidth)
    if network.nodes_per_switch and nodes > network.nodes_per_switch:
        rate /= network.oversubscription
    inside = (1 - crossing) * sent_bytes * network.ranks_per_node / network.memory_bandwidth
    latencies = 8 * (network.latency + min(ranks - 1, 64) * network.overhead)
    return crossing * sent_bytes / rate + inside + latencies + sum_seconds(network, nodes, gradient_bytes)


def memory_bytes(sizes: GraphSizes, choice: Choice, settings: Settings) -> int:
    """Memory of the largest rank: what `distgnn train` would say of such a part."""
    owned = int(OWNED_IN_MEMORY * sizes.num_nodes / choice.ranks)
    sent = int(ROWS_IN_MEMORY * sizes.exchange_rows(choice.ranks) / choice.ranks)
    arcs = int(BALANCE * sizes.num_arcs / choice.ranks)
    # Indices and ids of arcs; ids, degrees, offsets and masks of rows: as written by `distgnn partition`.
    files = {"structure": {"bytes": 4 * arcs + 40 * owned}, "arc_ids": {"bytes": 8 * arcs}}
    files["feats"] = {"bytes": 4 * owned * sizes.num_feats}
    part = {"owned": owned, "rows": owned + sent // 2, "arcs": arcs, "files": files, "symmetric": True}
    graph = {"num_feats": sizes.num_feats, "num_classes": sizes.num_classes}
    return estimate_bytes({"parts": [part], "graph": graph, "pair_rows": [[sent]]}, 0, settings.sections())
