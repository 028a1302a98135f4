"""Asynchronous steps: each gradient is of the weights of `late` steps before, as a parameter server would get it. Adam.

All ranks are equally late here, which is the least that asynchrony costs; --late 0 is what the program does. One rank:

    python tests/bench/steps/late_gradients.py parts/amazon-photo --late 2

Source: Downpour, Dean et al., Large scale distributed deep networks, NeurIPS'12.
"""

from collections import deque

from passes import gradients, model_and_graph, options_of, race

# isort: split
import torch


def main() -> None:
    options = options_of(__doc__, lr=0.001, late=1)
    model, graph = model_and_graph(options)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    waiting = deque()

    def steps():
        for step in range(options.most):
            gradients(model, graph, step)
            waiting.append([parameter.grad.clone() for parameter in model.parameters()])
            if len(waiting) > options.late:
                for parameter, grad in zip(model.parameters(), waiting.popleft(), strict=True):
                    parameter.grad = grad
                optimizer.step()
            yield step + 1

    race(f"gradients {options.late} steps late, Adam {options.lr}", model, graph, options, steps)


if __name__ == "__main__":
    main()
