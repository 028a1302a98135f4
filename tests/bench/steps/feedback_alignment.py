"""Direct feedback alignment: hidden layers get the logits' gradient through fixed random matrices. Adam.

No gradient of rows is exchanged or aggregated but that of the last layer's narrow product.

Source: Nøkland, NeurIPS'16.
"""

from passes import model_and_graph, options_of, race

# isort: split
import torch

from distgnn.train.loss import rank_loss


def main() -> None:
    options = options_of(__doc__, lr=0.001)
    model, graph = model_and_graph(options)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    width = model.convs[1].in_feats
    ways = [torch.randn(graph.num_classes, width) / width**0.5 for _ in model.drops]

    def steps():
        for step in range(options.most):
            graph.step = step
            model.train()
            optimizer.zero_grad()
            feats, hidden = graph.feats, []
            for layer in range(len(model.drops)):
                hidden.append(model._hidden_layer(graph, layer, feats))
                feats = hidden[-1].detach()
            logits = model.convolve(graph, model.convs[-1], feats, last=True)
            logits.retain_grad()
            rank_loss(graph, logits).backward()
            for rows, way in zip(hidden, ways, strict=True):
                rows.backward(logits.grad @ way)
            optimizer.step()
            yield step + 1

    race(f"feedback alignment, Adam {options.lr}", model, graph, options, steps)


if __name__ == "__main__":
    main()
