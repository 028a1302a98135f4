"""L-BFGS with exact full gradients and a strong Wolfe line search; one dropout mask for `--each` evaluations.

A pass is an evaluation of loss and gradient. With --dropout 0 the function stays the same from step to step.
"""

from passes import gradients, model_and_graph, options_of, race

# isort: split
import torch

from distgnn.nn import Dropout


def main() -> None:
    options = options_of(__doc__, each=5, dropout=0.5)
    model, graph = model_and_graph(options)
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = options.dropout
    optimizer = torch.optim.LBFGS(
        model.parameters(), lr=1.0, max_iter=options.each, history_size=10, line_search_fn="strong_wolfe"
    )
    done = 0

    def steps():
        for step in range(options.most):

            def closure() -> float:
                nonlocal done
                done += 1
                return gradients(model, graph, step)  # noqa: B023 - called within this turn

            optimizer.step(closure)
            yield done

    race(f"lbfgs, {options.each} a mask, dropout {options.dropout}", model, graph, options, steps)


if __name__ == "__main__":
    main()
