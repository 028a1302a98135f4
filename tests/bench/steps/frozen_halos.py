"""Subgraph approximation: what remote vertices contribute is frozen and made anew in every R-th step. Adam.

In the steps between, a rank takes the source halos and the partial sums that it got last; gradients of its rows are not
exchanged. --every 1 is what the program does.

    distgnn partition amazon-photo --parts 2 --direction both --out parts/amazon-photo-2
    mpiexec -n 2 python tests/bench/steps/frozen_halos.py parts/amazon-photo-2 --every 10

Source: Angerd et al., Distributed training of graph convolutional networks using subgraph approximation, 2020.
"""

from passes import gradients, model_and_graph, options_of, race

# isort: split
import numpy as np
import torch

from distgnn.comm import sum_over_ranks


class Frozen:
    """In place of a delayed exchange: exact in every `every`-th step; between, what arrived last, or nothing."""

    def __init__(self, exact, every: int, keeps: bool):
        self.exact, self.every, self.keeps = exact, every, keeps
        self.transport, self.rows, self.partials = exact.transport, {}, {}

    def at(self, site: int, step: int, seed: int = 0):
        self.site, self.fresh = site, step % self.every == 0
        return self

    def start_broadcast(self, rows) -> None:
        self.width, self.dtype = rows.shape[1], rows.dtype
        if self.fresh:
            self.exact.start_broadcast(rows)

    def finish_broadcast(self):
        if self.fresh:
            self.rows[self.site] = self.exact.finish_broadcast().copy()
        if self.fresh or self.keeps:
            return self.rows[self.site]
        return np.zeros((int(self.exact.plan.source_indptr[-1]), self.width), self.dtype)

    def target_rows(self, like):
        return self.exact.target_rows(like)

    def target_pieces(self):
        return self.exact.target_pieces() if self.fresh else []

    def start_reduce(self, targets) -> None:
        if self.fresh:
            self.exact.start_reduce(targets)

    def finish_reduce(self, out) -> None:
        if self.fresh:
            self.partials[self.site] = self.exact._arrived().copy()
        if self.fresh or self.keeps:
            self.exact.add_partials(out, self.partials[self.site])

    def progress(self) -> bool:
        return self.exact.progress()


def main() -> None:
    options = options_of(__doc__, lr=0.001, every=10)
    model, graph = model_and_graph(options, algorithm="cd-1")  # whose plans take the gradient of what was used
    forward, backward = graph.forward_arcs, graph.backward_arcs(False)
    forward.delayed = Frozen(forward.exchange, options.every, keeps=True)
    backward.delayed = Frozen(backward.exchange, options.every, keeps=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)

    def steps():
        for step in range(options.most):
            gradients(model, graph, step)
            for parameter in model.parameters():
                parameter.grad = torch.from_numpy(sum_over_ranks(graph.comm, parameter.grad.numpy()))
                parameter._distgnn_unsummed = -1  # torch's optimisers refuse a step on gradients that were not summed
            optimizer.step()
            yield step + 1

    name = f"remote terms refreshed every {options.every} steps, {graph.num_ranks} ranks, Adam {options.lr}"
    race(name, model, graph, options, steps)


if __name__ == "__main__":
    main()
