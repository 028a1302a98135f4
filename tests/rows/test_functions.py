"""Functions of torch on rows of P ranks give what they give on whole tensors: value and every gradient, or one line."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from cut_graphs import dist_graph, random_graph

from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.rows import RowTensor, WholeTensor

N, D, CLASSES = 41, 6, 4
_draw = torch.Generator().manual_seed(1)


def _random(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=_draw)


W, T, ALL_MASK = _random(D, 5), _random(N, D), torch.arange(N) < 20
IDS, PAIRS = torch.tensor([3, 40, 7, 7, 0, 12]), torch.randint(0, N, (2, 30), generator=_draw)
PERM = torch.randperm(N, generator=_draw)
ENDS, KINDS = torch.randint(0, N, (2, 90), generator=_draw), torch.arange(90) % CLASSES
SPARSE = torch.sparse_coo_tensor(
    ENDS, torch.arange(90).double() - 30, (N, N), check_invariants=True
)  # with some entries twice
CLASS_WEIGHT = torch.rand(CLASSES, dtype=torch.float64, generator=_draw)


def modules():
    """A linear layer and a batch norm, the same at each call."""
    torch.manual_seed(2)
    return torch.nn.Linear(D, CLASSES).double(), torch.nn.BatchNorm1d(D).double()


def _set(*writes):
    def write(s, x):
        x = x.clone()
        for one in writes:
            one(s, x)
        return x

    return write


# Most functions run in tests/interop/test_peers.py; here are those that tests/bench/peers has not.
# s.y labels, s.m a mask, s.lin and s.bn modules; x rows [N, D]
FUNCTIONS = [
    lambda s, x: torch.linalg.norm(x),
    lambda s, x: x.max(0).indices,
    lambda s, x: x.argmax(),
    lambda s, x: torch.maximum(x, T),
    lambda s, x: torch.logsumexp(x, (0, 1)),
    lambda s, x: x.T @ T,
    lambda s, x: T.t() @ x,
    lambda s, x: s.lin(x),
    lambda s, x: torch.addmm(W[0], x, W),
    lambda s, x: x.view(-1, 2, 3) @ W[:3, :2],
    lambda s, x: torch.matmul(x, W @ torch.sigmoid(x.mean(0)[:5])),
    lambda s, x: torch.mm(mat2=W, input=x),
    lambda s, x: SPARSE @ (SPARSE @ x),
    lambda s, x: torch.sparse.mm(SPARSE.to_sparse_csr(), x),
    lambda s, x: torch.spmm(SPARSE.t(), s.lin(x)),
    lambda s, x: SPARSE.matmul(x[:, 0]),
    lambda s, x: torch.sparse.addmm(x, SPARSE, x, beta=0.5, alpha=2.0),
    lambda s, x: torch.sparse_coo_tensor(ENDS, s.lin.bias[KINDS], (N, N), check_invariants=True) @ x,
    lambda s, x: torch.cdist(x, T[:3]),
    lambda s, x: F.one_hot(s.y).double() @ W[:CLASSES],
    lambda s, x: s.bn(x),
    lambda s, x: s.bn(x[s.m]),
    lambda s, x: s.bn(x[:17]),
    lambda s, x: F.instance_norm(x.t()[None])[0].t(),
    lambda s, x: F.group_norm(x, 2),
    lambda s, x: F.threshold(x, 0.1, 20.0),
    lambda s, x: torch.complex(x, x * 2).abs(),
    lambda s, x: torch.searchsorted(CLASS_WEIGHT.sort().values, x[:, 0].contiguous()),
    lambda s, x: F.interpolate(x.view(-1, 2, 3), scale_factor=2),
    lambda s, x: F.softmin(x, 0),
    lambda s, x: x.new_zeros(CLASSES, D).scatter_reduce(0, s.y[:, None].expand(-1, D), x, "amax", include_self=False),
    lambda s, x: torch.exp(-(x + ODD)[:, 1:3].amax(0)),
    lambda s, x: torch.topk(x[:, 0], 3, largest=False).values,
    lambda s, x: x[s.m][x[s.m][:, 1].argsort(descending=True)[:4]],
    lambda s, x: x[:, 0].sort(stable=True)[0] * s.y.double()[x[:, 0].sort()[1]],
    lambda s, x: x * (x.detach() + np.linspace(0, 1, D)),
    lambda s, x: x.quantile(CLASS_WEIGHT, dim=1, keepdim=True),
    lambda s, x: F.dropout1d(x[:, None], 0.0, inplace=True)[:, 0],
    lambda s, x: F.rrelu(x.clone(), 0.25, 0.25, training=True, inplace=True),
    lambda s, x: x[..., None],
    lambda s, x: torch.index_select(x, 1, torch.tensor([1, 4])),
    lambda s, x: x[s.y],
    lambda s, x: CLASS_WEIGHT[s.y] * x[:, 0],
    lambda s, x: x[s.m] * T[:20],
    lambda s, x: T[s.m] * x[s.m],
    lambda s, x: torch.masked_select(x, s.m[:, None]),
    lambda s, x: x[PERM] - x,
    lambda s, x: torch.where(s.m[:, None], x, torch.zeros(1, dtype=torch.float64)),
    lambda s, x: x.prod(1),
    lambda s, x: F.prelu(x, torch.tensor([0.2], dtype=torch.float64)),
    lambda s, x: F.embedding(s.y, W),
    _set(lambda s, x: x.__setitem__(IDS, T[IDS])),
    _set(lambda s, x: x.__setitem__((slice(None), 1), T[:, 1]), lambda s, x: x.__setitem__((s.m, 2), 5.0)),
    _set(lambda s, x: x.__setitem__(s.m, T[:20]), lambda s, x: x.__setitem__(~s.m, x[~s.m] * 2)),
    _set(
        lambda s, x: x.__setitem__((slice(None), torch.arange(D) % 3 == 0), 0)
    ),  # feature masks of GRACE, BGRL, CCA-SSG
    _set(lambda s, x: x.__setitem__((slice(None), [1, 4]), T[:, :2])),
    _set(lambda s, x: x.__setitem__((slice(3, 30), torch.tensor([0, 2])), x[3:30, 4:])),
    _set(
        lambda s, x: x.__setitem__((7, [0, 2]), T[0, :2]),
        lambda s, x: x.__setitem__((torch.tensor([9]), [1, 2]), T[0, :2]),
    ),
    _set(lambda s, x: x.__setitem__((IDS[:3], s.y[IDS[:3]]), 1.0)),  # labels as features
    _set(
        lambda s, x: x.__setitem__((s.m, s.y[s.m]), T[:20, 0]),
        lambda s, x: x.__setitem__((~s.m, s.y[~s.m]), x[~s.m, 5]),
    ),
    _set(lambda s, x: x.__setitem__((s.m.nonzero().view(-1), 2), T[:20, 1])),
    _set(lambda s, x: x.index_put_((IDS,), T[:6], accumulate=True)),
    _set(
        lambda s, x: x.index_put_((s.y, s.y), x[:, 0], accumulate=True),
        lambda s, x: x.index_add_(0, IDS, T[:6], alpha=2),
    ),
    lambda s, x: x.index_put((IDS[:3],), x[IDS[3:]]),
    lambda s, x: torch.zeros(N, CLASSES).index_put_((PERM[:9], s.y[PERM[:9]]), torch.tensor(1.0)),
    lambda s, x: torch.zeros(N, D, dtype=torch.float64).add_(x.detach()).mul_(x.detach()[:, :1]),
    lambda s, x: torch.zeros(N, CLASSES).scatter_(1, s.y[:, None], 1.0),
    lambda s, x: torch.zeros(CLASSES, CLASSES).index_put_((s.y, s.y[PERM]), torch.tensor(1.0), accumulate=True),
    lambda s, x: torch.bincount(s.y * CLASSES + s.y[PERM], minlength=CLASSES**2).view(CLASSES, CLASSES),
    lambda s, x: torch.stack(list(x[IDS])) * torch.stack([x[3], *x[s.m][:5]]),
    _set(lambda s, x: x[5:10].zero_(), lambda s, x: x[2:30:3, 1:3].fill_(2.0)),  # ranges are views
    _set(lambda s, x: x[3].mul_(5.0), lambda s, x: x[-1].add_(1)),
    _set(lambda s, x: x.__setitem__(slice(5, 10), x[5:10].add_(T[5:10]))),  # what x[5:10] += t does
    lambda s, x: F.cross_entropy(x[:, :CLASSES], s.y, weight=CLASS_WEIGHT, label_smoothing=0.1),
    lambda s, x: F.cross_entropy(x[s.m][:, :CLASSES], s.y[s.m], label_smoothing=0.1),
    lambda s, x: F.cross_entropy(x[:, :CLASSES], s.y, ignore_index=2, label_smoothing=0.1),
    lambda s, x: F.cross_entropy(x, T.softmax(1), label_smoothing=0.1),
    lambda s, x: F.binary_cross_entropy_with_logits(
        x[:, :CLASSES], F.one_hot(s.y, CLASSES).double(), pos_weight=CLASS_WEIGHT
    ),
    lambda s, x: torch.cat([x[PAIRS[0]], T[:5]]),
    lambda s, x: torch.stack([x, T], -1),
    lambda s, x: s.y.unique(return_counts=True)[1],
    lambda s, x: torch.from_numpy(np.asarray(x.detach())),
    lambda s, x: torch.tensor(s.y.tolist()),
    lambda s, x: torch.allclose(x, x + 0),
]


class Scene:
    """Labels, a mask and modules beside the rows."""

    def __init__(self, x, y, m):
        self.x, self.y, self.m = x, y, m
        self.lin, self.bn = modules()


def scenes(comm) -> tuple[Scene, Scene]:
    """(of whole tensors, of rows)."""
    source = random_graph(2, num_nodes=N, num_feats=D, num_edges=120)
    labels = torch.from_numpy(np.asarray(source.labels)).long().clamp_min(0)
    x = torch.from_numpy(np.asarray(source.feats)).double()
    face = with_rows(dist_graph(source, comm))
    face.y, face.train_mask = labels, ALL_MASK
    return Scene(x, labels, ALL_MASK), Scene(face.x, face.y, face.train_mask)


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


@pytest.mark.mpi(1, 3)
@pytest.mark.filterwarnings("ignore:Sparse CSR")  # torch's own, at its first CSR matrix
@pytest.mark.filterwarnings("ignore:__array_wrap__")  # torch's own, beside NumPy
def test_value_and_gradients(comm):
    plain, rows = scenes(comm)
    for number, function in enumerate(FUNCTIONS):
        expected, found = run(plain, function), run(rows, function)
        assert expected.keys() == found.keys(), number
        for name, value in expected.items():
            torch.testing.assert_close(
                found[name], value, rtol=1e-10, atol=1e-10, msg=lambda text, at=f"{number}, {name}: ": at + text
            )


ODD = torch.zeros(N, D)
ODD[5, 0], ODD[7, 1], ODD[9, 2], ODD[30] = torch.nan, torch.inf, -torch.inf, 7.0
ODD[20:, 3], ODD[:, 4] = torch.nan, torch.inf


def _grouped(make, how):
    def reduce(s, x):
        src = make(x)
        return torch.full((CLASSES + 2, D), 3, dtype=src.dtype).scatter_reduce(
            0, s.y[:, None].expand(-1, D), src, how, include_self=False
        )

    return reduce


MAKES = (lambda x: x + ODD, lambda x: (100 * x).long(), lambda x: torch.ones_like(x) / 3)
EXTREMES = [
    *(_grouped(make, how) for make in MAKES for how in ("sum", "mean", "amax", "amin")),
    *(
        lambda s, x, one=one: one(x + ODD)
        for one in (lambda x: x.amax(0), lambda x: x.amin(), lambda x: x.aminmax().min)
    ),
    *(
        lambda s, x, one=one: one(x + ODD)
        for one in (lambda x: x.max(0).values, lambda x: x.argmax(0), lambda x: x.max())
    ),
]


@pytest.mark.mpi(1, 3)
def test_extremes_of_numbers_that_are_not_finite_or_are_whole(comm):
    """NaN wins on every rank; a group's numbers keep their type and their last bit."""
    plain, rows = scenes(comm)
    for number, function in enumerate(EXTREMES):
        expected, found = (function(scene, scene.x.detach()) for scene in (plain, rows))
        torch.testing.assert_close(
            torch.as_tensor(found),
            expected,
            rtol=1e-12,
            atol=0,
            equal_nan=True,
            msg=lambda text, at=number: f"{at}: {text}",
        )


@pytest.mark.mpi(3)
def test_what_cannot_run_is_refused(comm):
    """Most of it: tests/rows/test_advice.py and tests/interop/test_peers.py, which has one rank, too."""
    _, rows = scenes(comm)
    with pytest.raises(InputError, match="has no padding_idx, max_norm"):
        F.embedding(rows.y, rows.x, max_norm=1.0)
    with pytest.raises(InputError, match="leave create_graph=True out"):
        (rows.x @ W.clone().requires_grad_()).pow(3).sum().backward(create_graph=True)
    with pytest.raises(IndexError, match="index 41 is out of bounds for 41 rows"):
        rows.x[torch.tensor([41])]


def in_place(function, x, *args):
    """What the input holds afterwards: the result is not used."""
    x = x.detach().clone()
    function(x, *args, training=True, inplace=True)
    return x


DRAWS = {
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 0, 9),
    "bernoulli": lambda x: torch.bernoulli(torch.full_like(x, 0.3)),
    "uniform_": lambda x: x.clone().uniform_(-1, 2),
    "normal_": lambda x: x.clone().normal_(1, 2),
    "dropout": lambda x: F.dropout(torch.ones_like(x), 0.4),
    "dropout of a mask": lambda x: F.dropout(torch.ones_like(x[::2]), 0.4),
    "dropout1d in place": lambda x: in_place(F.dropout1d, torch.ones_like(x)[..., None], 0.4),
    "dropout2d in place": lambda x: in_place(F.dropout2d, torch.ones_like(x)[..., None, None], 0.4),
    "rrelu in place": lambda x: in_place(F.rrelu, x),
    "gumbel": lambda x: F.gumbel_softmax(x.detach(), dim=1),
}


@pytest.mark.mpi(1, 3)
def test_random_numbers_are_those_of_one_rank(comm):
    from mpi4py import MPI

    (_, alone), (_, rows) = scenes(MPI.COMM_SELF), scenes(comm)
    for name, draw in DRAWS.items():
        found = []
        for x in (alone.x, rows.x):
            torch.manual_seed(5)
            found.append((draw(x).whole(), draw(x).whole()))
        (one, other), (mine, mine_again) = found
        torch.testing.assert_close(mine, one, rtol=1e-12, atol=1e-12, msg=name)
        torch.testing.assert_close(mine_again, other, rtol=1e-12, atol=1e-12, msg=name)
        assert not torch.equal(mine, mine_again), name  # each draw is another
    torch.manual_seed(5)
    assert abs(float(torch.randn_like(rows.x).mean())) < 0.3 and 0.8 < float(torch.randn_like(rows.x).std()) < 1.2


@pytest.mark.mpi(1, 3)
def test_steps_with_accumulation_and_clipping(comm):
    """Two backward passes, then a clipped step, by any optimiser: weights as those of plain torch, on every rank."""
    losses = []
    for scene in scenes(comm):
        model = torch.nn.Sequential(*modules(), torch.nn.ReLU())[:1]
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            for mask in (scene.m, ~scene.m):
                loss = F.cross_entropy(model(scene.x[mask]), scene.y[mask])
                (loss / 2).backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            losses += [loss.item(), norm.item()]
        losses += [one.sum().item() for one in model.parameters()]
    plain, ours = np.split(np.array(losses), 2)
    np.testing.assert_allclose(ours, plain, rtol=1e-9)


BACKWARD = {
    "a list": lambda first, second, w: torch.autograd.backward([first, second]),
    "one": lambda first, second, w: torch.autograd.backward(first),
    "with gradients": lambda first, second, w: torch.autograd.backward(
        [first, second], grad_tensors=[torch.tensor(2.0).double(), torch.tensor(3.0).double()]
    ),
    "rows and a loss": lambda first, second, w: torch.autograd.backward([w[2], second], [torch.ones_like(w[2]), None]),
    "inputs": lambda first, second, w: (first + second).backward(inputs=[w[0]]),
    "one input": lambda first, second, w: torch.autograd.backward([first, second], inputs=w[0]),
    "kept": lambda first, second, w: [(first + second).backward(retain_graph=True) for _ in range(2)],
}


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("name", BACKWARD)
def test_backward_of_several_losses_and_of_some_inputs(comm, name):
    found = []
    for scene in scenes(comm):
        weights = [W.clone().requires_grad_(), W.clone().requires_grad_()]
        outputs = [(scene.x @ one).sigmoid() for one in weights]
        BACKWARD[name](outputs[0].mean(), outputs[1].square().sum(), [*weights, outputs[0]])
        found.append([one.grad for one in weights])
    for plain, ours in zip(*found, strict=True):
        assert (plain is None) == (ours is None)  # of what was not asked for there is none
        if plain is not None:
            torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-12)


@pytest.mark.mpi(3)
def test_ranks_with_other_weights_are_refused(comm):
    from distgnn.errors import RunError

    _, rows = scenes(comm)
    torch.manual_seed(comm.rank)
    model = torch.nn.Linear(D, CLASSES).double()
    with pytest.raises(RunError, match=r"ranks differ in the weights.*broadcast_parameters"):
        F.cross_entropy(model(rows.x), rows.y).backward()


@pytest.mark.mpi(1, 3)
def test_results_of_all_rows_are_told_apart(comm):
    _, rows = scenes(comm)
    x = rows.x.detach().clone().requires_grad_()
    assert isinstance(x.relu(), RowTensor) and isinstance(x.mean(0), WholeTensor)
    assert tuple(x.shape) == (N, D) and tuple(x[rows.m].shape) == (20, D) and len(x.to_local()) == len(x.inner)
    assert "of 41 vertices here" in repr(x)


@pytest.mark.mpi(3)
def test_ranks_without_rows(comm):
    """A mask that one rank's rows are none of: losses, norms, statistics and ids."""
    plain, rows = scenes(comm)
    place = int(np.argmin(rows.x.row_space.places)) if comm.rank == 0 else None
    only = comm.bcast(int(rows.x.row_space.places[place]) if comm.rank == 0 else None)
    few = torch.zeros(N, dtype=torch.bool)
    few[only] = True
    for function in (
        lambda s, x: F.cross_entropy(x[few][:, :CLASSES], s.y[few]),
        lambda s, x: x[few].mean(0),
        lambda s, x: x[few].max(0).values,
        lambda s, x: x[few].softmax(0),
        lambda s, x: x[torch.tensor([only])],
        lambda s, x: s.lin(x[few]),
        lambda s, x: s.bn(torch.cat([x[few], x[few] * 2])),
    ):
        expected, found = run(plain, function), run(rows, function)
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-10, atol=1e-10)
