"""Muon: momentum whose singular values are made equal, for matrices; Adam 0.001 for the rest.

Source: Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024.
"""

from passes import gradients, model_and_graph, options_of, race

# isort: split
import torch


def orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Five steps of Newton and Schulz towards the nearest matrix with singular values 1."""
    a, b, c = 3.4445, -4.7750, 2.0315
    rows = matrix / (matrix.norm() + 1e-7)
    rows = rows.T if len(matrix) > matrix.shape[1] else rows
    for _ in range(5):
        square = rows @ rows.T
        rows = a * rows + (b * square + c * square @ square) @ rows
    return rows.T if len(matrix) > matrix.shape[1] else rows


def main() -> None:
    options = options_of(__doc__, lr=0.02)
    model, graph = model_and_graph(options)
    matrices = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    adam = torch.optim.Adam([parameter for parameter in model.parameters() if parameter.dim() != 2], lr=0.001)
    momenta = [torch.zeros_like(matrix) for matrix in matrices]

    def steps():
        for step in range(options.most):
            gradients(model, graph, step)
            with torch.no_grad():
                for matrix, momentum in zip(matrices, momenta, strict=True):
                    momentum.mul_(0.95).add_(matrix.grad)
                    ahead = matrix.grad + 0.95 * momentum
                    scale = max(1.0, len(matrix) / matrix.shape[1]) ** 0.5
                    matrix.add_(orthogonal(ahead), alpha=-options.lr * scale)
            adam.step()
            yield step + 1

    race(f"muon {options.lr}", model, graph, options, steps)


if __name__ == "__main__":
    main()
