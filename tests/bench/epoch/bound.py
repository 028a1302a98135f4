"""What no epoch can undercut: its bare matrix products, and the bytes of its aggregations at copy bandwidth.

Products run into results that are there already, one after the other, so nothing but arithmetic and the reading of
operands is timed; float32 ones are the kernels' (twice as fast as torch's on this project's machine), and so are
bfloat16's where they are widened.
Aggregation bytes: each arc reads a row of its source and an index, each vertex writes a row; what the caches save is
not taken off, so on small graphs the bound is no bound. Element-wise work, loss and optimiser count
as nothing. The first aggregation of a convolution's input is constant and counts as nothing. The first layer has no
gradient of its input, except GIN's, which needs it for eps.

Legend: V vertices, E arcs, D width.
"""

import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import torch
from mpi4py import MPI

from distgnn import kernels
from distgnn.config import ModelConfig, num_threads
from distgnn.graph.loader import use_threads
from distgnn.graph.tuning import job_tuning
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.rowwise.products import product_dtype, turned_product
from distgnn.partition import load_part

PRODUCTS_PER_LAYER = {"sage": 2, "gcn": 1, "gat": 1, "gin": 1}
GATHERS = 2  # of a layer, forward and backward: as few as we know how
COPY_BYTES = 1 << 28


class Products:
    """The products of an epoch: V x a times a x b forward, its two gradients backward."""

    def __init__(self, order: dict, dtype: torch.dtype = torch.float32):
        use_threads(num_threads())
        config = ModelConfig(**order["model"])
        local = load_part(order["parts"], 0)
        widths = [local.feats.shape[1], *[config.hidden_feats] * (config.num_layers - 1), local.graph["num_classes"]]
        self.config, self.dtype, self.num_nodes, self.num_arcs = config, dtype, local.num_nodes, local.num_arcs
        self.layers = list(pairwise(widths))
        if config.name == "gat":
            a, b = self.layers[-1]
            self.layers[-1] = (a, b * config.num_heads)
        self.products = self.layers
        if config.name == "gin":  # two linear layers each
            self.products = [pair for a, b in self.layers for pair in ((a, b), (b, b))]
        graph: Any = SimpleNamespace(tuning=job_tuning(MPI.COMM_SELF, local.num_arcs, None, dtype == torch.bfloat16))
        multiplied = product_dtype(graph, dtype)
        self.ours = multiplied == torch.float32
        self.rows = {width: torch.randn(local.num_nodes, width).to(dtype) for pair in self.products for width in pair}
        self.out = {width: torch.empty_like(rows) for width, rows in self.rows.items()}
        self.weights = [torch.randn(a, b).to(multiplied) for a, b in self.products]
        self.grads = [torch.empty_like(weight) for weight in self.weights]
        self.source, self.target = torch.ones(COPY_BYTES // 4), torch.empty(COPY_BYTES // 4)
        self.copy_seconds: list[float] = []

    def start_loss(self) -> None:
        return None

    def train_epoch(self) -> float:
        for _ in range(PRODUCTS_PER_LAYER[self.config.name]):
            for layer, (a, b) in enumerate(self.products):
                self._multiply(self.rows[a], self.weights[layer], self.out[b])
                self._multiply_rows(self.rows[a], self.rows[b], self.grads[layer])
                if layer > 0 or self.config.name == "gin":
                    self._multiply(self.rows[b], self.weights[layer].T, self.out[a])
        return 0.0

    def _multiply(self, rows: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> None:
        if self.ours:
            kernels.product(as_array(rows), as_array(weight.contiguous()), out=as_array(out))
        else:
            torch.mm(rows, weight, out=out)

    def _multiply_rows(self, rows: torch.Tensor, grads: torch.Tensor, out: torch.Tensor) -> None:
        if self.ours:
            kernels.inner_product(as_array(rows), as_array(grads))
        else:
            out.copy_(turned_product(rows, grads))

    def facts(self) -> dict:
        """Bytes of all aggregations, the copy bandwidth, and the products' arithmetic."""
        for _ in range(8):
            started = time.perf_counter()
            self.target.copy_(self.source)
            self.copy_seconds.append(time.perf_counter() - started)
        bandwidth = 2 * COPY_BYTES / min(self.copy_seconds)
        moved = self.aggregation_bytes()
        return {"bandwidth": bandwidth, "aggregation_bytes": moved, "aggregation_seconds": moved / bandwidth}

    def aggregation_bytes(self) -> int:
        attention = self.config.name == "gat"
        size, total = self.dtype.itemsize, 0
        for layer, (a, b) in enumerate(self.layers):
            if layer == 0 and not attention:
                continue
            width = b if attention else min(a, b)
            total += GATHERS * (self.num_arcs * (width * size + 4) + self.num_nodes * width * size)
        return total
