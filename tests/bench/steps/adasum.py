"""Adasum in place of the sum of ranks' gradients under 0c, weight by weight, before Adam.

--combine sum is what the program does.

    distgnn partition amazon-photo --parts 4 --update copies --out parts/amazon-photo-4
    mpiexec -n 4 python tests/bench/steps/adasum.py parts/amazon-photo-4 [--combine sum]

    a + b  ->  (1 - <a, b> / 2 |a|^2) a + (1 - <a, b> / 2 |b|^2) b, over ranks as a tree; a rank's gradient is that
    of the mean over its own rows, as the source has it.

Source: Maleki et al., MLSys'21.
"""

from passes import gradients, model_and_graph, options_of, race

# isort: split
import torch

from distgnn.comm import sum_over_ranks


def adasum(pieces: list[torch.Tensor]) -> torch.Tensor:
    """Of the gradients of all ranks, a tree of pairs."""
    while len(pieces) > 1:
        pairs = [pieces[place : place + 2] for place in range(0, len(pieces), 2)]
        pieces = [one[0] if len(one) == 1 else _pair(*one) for one in pairs]
    return pieces[0]


def _pair(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    dot, tiny = (a * b).sum(), 1e-30
    return (1 - dot / (2 * (a * a).sum() + tiny)) * a + (1 - dot / (2 * (b * b).sum() + tiny)) * b


def main() -> None:
    options = options_of(__doc__, lr=0.001, combine="adasum")
    model, graph = model_and_graph(options, algorithm="0c", update="copies")
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    mine = int(graph.train_mask[: graph.num_owned].sum())

    def steps():
        for step in range(options.most):
            gradients(model, graph, step)
            for parameter in model.parameters():
                share = parameter.grad.numpy()
                if options.combine == "sum":
                    parameter.grad = torch.from_numpy(sum_over_ranks(graph.comm, share))
                else:
                    share = share * (graph.num_labelled("train") / max(mine, 1))
                    parameter.grad = adasum([torch.from_numpy(one) for one in graph.comm.allgather(share)])
                parameter._distgnn_unsummed = -1  # torch's optimisers refuse a step on gradients that were not summed
            optimizer.step()
            yield step + 1

    race(f"{options.combine} of {graph.num_ranks} ranks, Adam {options.lr}", model, graph, options, steps)


if __name__ == "__main__":
    main()
