"""Online distillation: two models, each of its own half of the ranks, learn from each other's late logits too. Adam.

The loss is the mean of cross entropy of training vertices and `share` times that of all vertices to the other model's
class probabilities, which are of an evaluation up to `every` passes ago; from pass `start` on. Both models see the
whole graph. A pass is one of each, which run side by side. One rank; --share 0: two models that know nothing of each
other. The first model to reach the target counts.

    python tests/bench/steps/distillation.py parts/amazon-photo --share 1

Source: Anil et al., Large scale distributed neural network training through online distillation, ICLR'18.
"""

from passes import model_and_graph, options_of, race

# isort: split
import torch
from torch.nn import functional

from distgnn.train.loss import rank_loss


class Better(torch.nn.Module):
    """The one of two models that is better on validation vertices, for `race`."""

    def __init__(self, models):
        super().__init__()
        self.models = torch.nn.ModuleList(models)

    def forward(self, graph, feats):
        chosen = graph.valid_mask
        return max((model(graph, feats) for model in self.models), key=lambda out: _right(out, graph.labels, chosen))


def _right(logits, labels, rows) -> float:
    return float((logits[rows].argmax(1) == labels[rows]).float().mean())


def main() -> None:
    options = options_of(__doc__, lr=0.001, share=1.0, every=1, start=5)
    first, graph = model_and_graph(options)
    options.seed += 100
    second = model_and_graph(options)[0]
    models = first, second
    optimizers = [torch.optim.Adam(model.parameters(), lr=options.lr) for model in models]
    taught: list = [None, None]

    def steps():
        for step in range(options.most):
            for number, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
                graph.step = 2 * step + number  # masks of its own
                model.train()
                optimizer.zero_grad()
                logits = model(graph, graph.feats)
                loss = rank_loss(graph, logits)
                if taught[1 - number] is not None and step >= options.start:
                    loss = loss + options.share * functional.cross_entropy(logits, taught[1 - number])
                loss.backward()
                optimizer.step()
            if step % options.every == 0 and options.share:
                with torch.no_grad():
                    taught[:] = [model.eval()(graph, graph.feats).softmax(1) for model in models]
            yield step + 1

    race(f"distillation {options.share}, every {options.every}", Better(models), graph, options, steps)


if __name__ == "__main__":
    main()
