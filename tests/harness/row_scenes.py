"""Rows [41, 8] of P ranks beside the same as whole tensors: value and gradients of a function on either."""

import numpy as np
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.graph.face.row_graph import with_rows
from distgnn.rows import RowTensor

N, D, CLASSES = 41, 8, 4
_draw = torch.Generator().manual_seed(1)


def _random(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=_draw)


W, T, ALL_MASK = _random(D, 5), _random(N, D), torch.arange(N) < 20
IDS, PAIRS = torch.tensor([3, 40, 7, 7, 0, 12]), torch.randint(0, N, (2, 30), generator=_draw)
PERM = torch.randperm(N, generator=_draw)
CLASS_WEIGHT = torch.rand(CLASSES, dtype=torch.float64, generator=_draw)
ODD = torch.zeros(N, D)
ODD[5, 0], ODD[7, 1], ODD[9, 2], ODD[30] = torch.nan, torch.inf, -torch.inf, 7.0
ODD[20:, 3], ODD[:, 4] = torch.nan, torch.inf


def modules():
    """A linear layer and a batch norm, the same at each call."""
    torch.manual_seed(2)
    return torch.nn.Linear(D, CLASSES).double(), torch.nn.BatchNorm1d(D).double()


class Scene:
    """Rows `x`, labels `y`, a mask `m`, modules `lin`, `bn`, and `e`, PyG's edge_index."""

    def __init__(self, x, y, m, edges):
        self.x, self.y, self.m, self._edges = x, y, m, edges
        self.lin, self.bn = modules()

    e = property(lambda scene: scene._edges())


def scenes(comm) -> tuple[Scene, Scene]:
    """(of whole tensors, of rows)."""
    source = random_graph(2, num_nodes=N, num_feats=D, num_edges=120)
    labels = torch.from_numpy(np.asarray(source.labels)).long().clamp_min(0)
    x = torch.from_numpy(np.asarray(source.feats)).double()
    face = with_rows(dist_graph(source, comm))
    face.y, face.train_mask = labels, ALL_MASK
    ours = Scene(face.x, face.y, face.train_mask, lambda: face.edge_index)
    return Scene(x, labels, ALL_MASK, lambda: source.to_pyg().edge_index), ours


def run(scene: Scene, function) -> dict[str, torch.Tensor]:
    """The value, the gradient of the rows and of each parameter, and running statistics."""
    scene.lin, scene.bn = modules()
    x = scene.x.detach().clone().requires_grad_()
    value = function(scene, x)
    found = {"value": value}
    if isinstance(value, torch.Tensor) and value.requires_grad:
        value.sin().sum().backward()
        found |= {"rows": x.grad, "running": scene.bn.running_var.clone()}
        parameters = [*scene.lin.named_parameters(), *scene.bn.named_parameters()]
        found |= {f"parameter {name}": one.grad for name, one in parameters if one.grad is not None}
    whole = {name: one.whole() if isinstance(one, RowTensor) else one for name, one in found.items()}
    return {name: torch.as_tensor(one).detach() for name, one in whole.items()}


def same_on_rows(comm, functions, rtol=1e-10, atol=1e-10) -> None:
    """Raise AssertionError unless functions of (scene, x) give on rows what they give on whole tensors."""
    plain, rows = scenes(comm)
    for number, function in enumerate(functions):
        expected, found = run(plain, function), run(rows, function)
        assert expected.keys() == found.keys(), number
        for name, value in expected.items():
            says = f"{number}, {name}"
            torch.testing.assert_close(
                *(found[name], value), rtol=rtol, atol=atol, equal_nan=True, msg=lambda text, at=says: f"{at}: {text}"
            )
