"""What a loss curve is worth in float32: how far one process moves when its first weights change in their last bit.

    python tests/bench/end_to_end/rounding.py 64 256     # hidden widths

cora, 3-layer GraphSAGE, dropout 0.5, layer norm, 30 epochs, one rank, one thread. Prints for each width the largest
relative difference of the losses to the unchanged run, for 12 random changes of every weight by -1, 0 or 1 unit in
the last place, smallest first. Differences of this size between rank counts say nothing about an exchange: Adam's
first step divides each gradient by its own size plus 1e-8, so that a gradient of 1e-8 turns rounding of 1e-9 into a
tenth of a full step.
"""

import sys

import numpy as np
import torch
from mpi4py import MPI
from program import DATA_ROOT, print_machine

from distgnn.config import ModelConfig, TrainConfig
from distgnn.datasets import load_graph
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.loader import use_threads
from distgnn.nn import build_model
from distgnn.partition import cut_edges, local_part
from distgnn.train import Trainer

CHANGES = 12


def losses(local, hidden: int, change: int) -> np.ndarray:
    """Thirty losses; `change` 0 leaves the weights as they are."""
    graph = DistGraph(local, MPI.COMM_SELF)
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=hidden), graph.num_feats, graph.num_classes)
    random = torch.Generator().manual_seed(change)
    if change:
        for weights in model.parameters():
            weights.data *= 1 + torch.randint(-1, 2, weights.shape, generator=random) * torch.finfo().eps
    return np.array(Trainer(model, graph, TrainConfig(epochs=30, eval_every=30)).fit().losses)


def main() -> None:
    """One line per width."""
    use_threads(1)
    print_machine()
    data = load_graph("cora", DATA_ROOT)
    edges = data.edge_list()
    local = local_part(data, edges, cut_edges(edges, 1), 0)
    for hidden in map(int, sys.argv[1:] or ["64", "256"]):
        expected = losses(local, hidden, 0)
        moved = sorted(np.max(np.abs(losses(local, hidden, change) / expected - 1)) for change in range(1, CHANGES + 1))
        print(f"hidden width {hidden}:", " ".join(f"{difference:.1e}" for difference in moved), flush=True)


if __name__ == "__main__":
    main()
