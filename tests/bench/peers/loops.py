"""What whole training loops share: how one becomes a case, a net, and metrics in the manner of scikit-learn."""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from cases import Case, add
from torch import nn
from worlds import NUM_CLASSES, WIDTH


def loop(library: str = "pyg", world: str = "pages", random: bool = False, ids: bool = False) -> Callable:
    """A function of the graph as a case; the one line that a script changes is where it takes the graph from."""

    def keep(script: Callable) -> Callable:
        def run(peer):
            return script(peer.g, peer.ids) if ids else script(peer.g)

        name = f"loop: {library} {script.__name__.replace('_', ' ')}"
        add(Case(name, "whole loops", run, library, world, random, changed=1))
        return script

    return keep


class Net(nn.Module):
    """Two layers of a convolution of PyG."""

    def __init__(self, conv: Callable, hidden: int, wide: int = WIDTH, out: int = NUM_CLASSES, norm: object = None):
        super().__init__()
        self.conv1, self.conv2, self.norm = conv(wide, hidden), conv(hidden, out), norm or nn.Identity()

    def forward(self, x, edge_index, *rest):
        return self.conv2(F.relu(self.norm(self.conv1(x, edge_index, *rest))), edge_index, *rest)


class MLP2(nn.Sequential):
    """Two linear layers."""

    def __init__(self, wide: int, hidden: int, out: int):
        super().__init__(nn.Linear(wide, hidden), nn.PReLU(), nn.Linear(hidden, out))


def descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> float:
    """A step down a loss, and the loss."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def accuracy(out: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> float:
    """Share of right classes, as most scripts have it."""
    return (out[mask].argmax(dim=-1) == y[mask]).sum().item() / mask.sum().item()


def per_class_f1(out: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
    """F1 of each class, of NumPy's arrays."""
    pred, true = out[mask].argmax(-1).detach().cpu().numpy(), y[mask].cpu().numpy()
    scores = []
    for one in np.unique(true):
        right = np.sum((pred == one) & (true == one))
        scores.append(2 * right / max(np.sum(pred == one) + np.sum(true == one), 1))
    return np.array(scores)
