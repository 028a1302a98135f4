"""Torch's optimisers and schedulers, own losses and metrics and clipping in the trainer; they survive a checkpoint."""

from functools import partial

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph
from torch.nn import functional as F
from trainers import resumed_to_the_bit, trainer_of

from distgnn.config import ModelConfig
from distgnn.errors import InputError, RunError
from distgnn.nn import build_model
from distgnn.ops.own_loop import DistributedOptimizer
from distgnn.train.optimizers import SGD, Adam, AdamW

SCHEDULERS = torch.optim.lr_scheduler


def make(graph, optimizer=None, scheduler=None, loss=None, metrics=None, callbacks=(), **config):
    if "train_optimizer" in config:  # of the settings; `optimizer` is the trainer's
        config["optimizer"] = config.pop("train_optimizer")
    own = {"optimizer": optimizer, "scheduler": scheduler, "loss": loss, "metrics": metrics, "callbacks": callbacks}
    settings = {"epochs": 8, "eval_every": 2, "lr": 0.05} | config
    return trainer_of(graph, own=own, **settings)


@pytest.mark.parametrize(
    ("own", "torchs"),
    [
        (Adam, torch.optim.Adam),
        (AdamW, torch.optim.AdamW),
        (SGD, partial(torch.optim.SGD, momentum=0.9)),
    ],
)
def test_an_optimizer_is_torchs(own, torchs):
    torch.manual_seed(0)
    mine = [torch.nn.Parameter(torch.randn(3, 4)), torch.nn.Parameter(torch.randn(5))]
    theirs = [torch.nn.Parameter(parameter.detach().clone()) for parameter in mine]
    ours, reference = own(mine, 0.01, 0.1), torchs(theirs, lr=0.01, weight_decay=0.1, foreach=False)
    for _ in range(5):
        for one, other in zip(mine, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        ours.step()
        reference.step()
    for one, other in zip(mine, theirs, strict=True):
        assert torch.equal(one, other)


def bits(trainer):
    return [tensor.numpy().tobytes() for tensor in trainer.model.state_dict().values()]


RUNS = {
    "adamw, cosine, clipped": {
        "optimizer": torch.optim.AdamW,
        "scheduler": lambda optimizer: SCHEDULERS.CosineAnnealingLR(optimizer, 8),
        "clip_grad": 0.05,
    },
    "momentum, plateau": {
        "optimizer": partial(torch.optim.SGD, lr=0.5, momentum=0.9, weight_decay=1e-3),
        "scheduler": lambda optimizer: SCHEDULERS.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, threshold=0.5),
    },
    "momentum, our cosine": {
        "optimizer": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        "lr_schedule": "cosine",
    },
    "our own adam, clipped": {"clip_grad": 0.05},
    "our own adamw, wsd": {"train_optimizer": "adamw", "weight_decay": 0.1, "lr_schedule": "wsd"},
    "our own sgd": {"train_optimizer": "sgd", "weight_decay": 1e-3},
}


@pytest.mark.mpi(2)
@pytest.mark.parametrize("own", RUNS.values(), ids=RUNS.keys())
def test_a_resumed_run_is_bit_identical(comm, shared_tmp_path, own):
    graph = dist_graph(random_graph(1), comm, dtype="float32")
    resumed, whole = resumed_to_the_bit(lambda **run: make(graph, **own, **run), shared_tmp_path, 2)
    assert len(resumed.records) == 8 and bits(resumed) == bits(whole)
    assert resumed.optimizer.lr == whole.optimizer.lr
    assert len(set(comm.allgather(b"".join(bits(resumed))))) == 1


@pytest.mark.mpi(3)
def test_convolutions_have_a_penalty_of_their_own(comm):
    """On ranks as torch's groups have it in one process."""
    data = random_graph(1)
    graph = whole_graph(data)
    names = list(dict(build_model(ModelConfig("sage", 8), graph.num_feats, graph.num_classes).named_parameters()))

    def grouped(parameters):
        named = list(zip(names, parameters, strict=True))
        groups = [[one for name, one in named if name.startswith("convs.") == is_conv] for is_conv in (True, False)]
        assert all(groups)
        return torch.optim.Adam([{"params": groups[0], "weight_decay": 0.1}, {"params": groups[1]}], 0.05)

    expected = make(graph, grouped).fit()
    np.testing.assert_allclose(
        make(dist_graph(data, comm), conv_weight_decay=0.1).fit().losses, expected.losses, rtol=1e-9
    )
    for wrong in ({"optimizer": torch.optim.Adam}, {"train_optimizer": "adamw"}):
        with pytest.raises(InputError, match="conv_weight_decay"):
            make(graph, conv_weight_decay=0.1, **wrong)


def test_a_plateau_is_one_of_the_loss():
    """A loss that falls in each epoch is none; its rates are those that torch would choose for these losses."""
    plateau = partial(SCHEDULERS.ReduceLROnPlateau, factor=0.5, patience=0)
    trainer = make(whole_graph(random_graph(1)), partial(torch.optim.SGD, lr=0.05), plateau)
    losses = trainer.fit().losses
    alone = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.05)
    scheduler = plateau(alone)
    for loss in losses:
        scheduler.step(loss)
    assert trainer.optimizer.lr == alone.param_groups[0]["lr"] > 0.05 / 2**7  # that of a loss which stays


@pytest.mark.mpi(2)
def test_a_class_takes_the_settings_and_torchs_adam_is_ours(comm):
    data = random_graph(1)
    ours = make(dist_graph(data, comm), weight_decay=0.01).fit()
    torchs = make(dist_graph(data, comm), torch.optim.Adam, weight_decay=0.01).fit()
    np.testing.assert_allclose(torchs.losses, ours.losses, rtol=1e-12)


@pytest.mark.mpi(2)
def test_clipping_is_torchs_on_the_summed_gradients(comm):
    """The norm is that of the whole gradient, not of a rank's share."""
    trainer = make(dist_graph(random_graph(1), comm), partial(torch.optim.SGD, lr=1.0), clip_grad=0.05)
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    record = trainer.train_epoch(0)
    moved = [old - new.detach() for old, new in zip(before, trainer.model.parameters(), strict=True)]
    assert record["grad_norm"] > 0.05
    assert torch.cat([one.reshape(-1) for one in moved]).norm().item() == pytest.approx(0.05, rel=1e-9)
    exact = make(whole_graph(random_graph(1)), partial(torch.optim.SGD, lr=1.0), clip_grad=0.05).train_epoch(0)
    assert record["grad_norm"] == pytest.approx(exact["grad_norm"], rel=1e-9)


def share(graph, logits):
    rows = graph.train_mask & (graph.labels >= 0)
    return F.cross_entropy(logits[rows], graph.labels[rows], reduction="sum") / graph.num_labelled("train")


def mean(graph, logits):
    rows = graph.train_mask & (graph.labels >= 0)
    return graph.global_mean(F.cross_entropy(logits[rows], graph.labels[rows], reduction="none"))


@pytest.mark.mpi(3)
@pytest.mark.parametrize("loss", [share, mean])
def test_an_own_loss_is_a_share_or_a_global_mean(comm, loss):
    """A global mean is on every rank already: it is not added over ranks."""
    graph = dist_graph(random_graph(1), comm)
    expected = make(graph).fit().losses
    np.testing.assert_allclose(make(graph, loss=loss).fit().losses, expected, rtol=1e-9)


@pytest.mark.mpi(2)
def test_an_own_metric_picks_the_best_epoch(comm, shared_tmp_path):
    graph, values = dist_graph(random_graph(1), comm), iter([0.1, 0.7, 0.3, 0.2])
    metrics = {"mine": lambda graph, logits: next(values) + comm.rank, "size": lambda graph, logits: 3}
    result = make(graph, metrics=metrics, metric="mine", run_dir=str(shared_tmp_path / "run")).fit()
    assert result.summary["best_epoch"] == 3
    assert (result.summary["mine"], result.summary["size"]) == (0.7, 3.0)
    assert [record["mine"] for record in result.records if "mine" in record] == [0.1, 0.7, 0.3, 0.2]
    comm.Barrier()


@pytest.mark.mpi(2)
def test_an_own_metric_that_is_no_number_ends_all_ranks(comm):
    with pytest.raises(RunError, match="metric mine is nan: expected a finite number") as caught:
        make(dist_graph(random_graph(1), comm), metrics={"mine": lambda graph, logits: float("nan")}).fit()
    assert caught.value.agreed


def frozen(params):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(3))], lr=0.1)


def hook(*names):
    return type("Mine", (), dict.fromkeys(names, lambda *_: None))()


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"optimizer": 3}, "optimizer is a int: expected a torch.optim class"),
        ({"optimizer": lambda params: None}, "optimizer is a NoneType"),
        ({"optimizer": torch.optim.LBFGS}, "LBFGS needs the loss several times in a step"),
        ({"optimizer": frozen}, "SGD has parameters that are not the model's"),
        ({"scheduler": SCHEDULERS.ConstantLR}, "scheduler needs a torch optimiser"),
        (
            {"optimizer": torch.optim.Adam, "scheduler": SCHEDULERS.ConstantLR, "lr_schedule": "cosine"},
            "lr_schedule cosine and scheduler contradict each other",
        ),
        ({"optimizer": torch.optim.Adam, "scheduler": 3}, "scheduler is a int: expected a function"),
        (
            {"optimizer": torch.optim.SGD, "train_optimizer": "sgd"},
            "optimizer sgd of the settings and a torch optimiser: choose one",
        ),
        ({"train_optimizer": "adan"}, r"unknown optimizer 'adan': .* \(did you mean adam\?\)"),
        ({"metrics": {"loss": share}}, "metrics: 'loss' is a name of our own"),
        ({"metrics": {"mine": 3}}, "metrics: 'mine' is no function"),
        ({"metric": "mine"}, "unknown metric 'mine'"),
        ({"callbacks": [3]}, "callback 3 is no object with any of on_train_start"),
        ({"callbacks": [hook("on_step")]}, "on_train_end: on_step"),
        ({"callbacks": [hook("on_train_end", "on_train_epoch_start")]}, "on_train_epoch_start .did you mean on_train"),
        ({"clip_grad": -1.0}, "clip_grad is -1.0"),
        ({"log": "consle"}, r"unknown log 'consle': .* \(did you mean console\?\)"),
        ({"log": "csv"}, "csv is written into the run folder: give run_dir"),
        ({"trace": True}, "a trace is written into the run folder: give run_dir"),
        ({"loss": lambda graph, logits: 3.0}, "the loss function gave no scalar with a gradient"),
    ],
)
def test_what_cannot_be_used_is_one_line(own, says):
    with pytest.raises(InputError, match=says):
        make(whole_graph(random_graph(1)), **own).fit()


def test_a_distributed_optimizer_is_not_summed_twice():
    graph = whole_graph(random_graph(1))
    with pytest.raises(InputError, match="the trainer sums gradients itself"):
        make(graph, lambda params: DistributedOptimizer(torch.optim.SGD(params, lr=0.1), graph))


@pytest.mark.parametrize(
    ("first", "changes"),
    [
        (
            {"optimizer": partial(torch.optim.SGD, lr=0.1, momentum=0.9)},
            {
                r"is SGD\(lr=0.1, momentum=0.9.* there": {"optimizer": partial(torch.optim.SGD, lr=0.1, momentum=0.5)},
                "optimizer is SGD.* there, not set here": {"optimizer": None},
                r"scheduler is not set there, StepLR\(step_size=3": {
                    "scheduler": lambda one: SCHEDULERS.StepLR(one, 3)
                },
                "clip_grad is not set there, 1.0 here": {"clip_grad": 1.0},
                "loss is not set there, share here": {"loss": share},
                "optimizer is SGD.* there, sgd here": {"optimizer": None, "train_optimizer": "sgd"},
            },
        ),
        (
            {"train_optimizer": "adamw"},
            {
                "optimizer is adamw there, sgd here": {"train_optimizer": "sgd"},
                "optimizer is adamw there, not set here": {"train_optimizer": "adam"},
            },
        ),
    ],
)
def test_a_run_is_resumed_with_the_same_parts_only(tmp_path, first, changes):
    graph, own = whole_graph(random_graph(1)), first | {"run_dir": str(tmp_path / "run")}
    make(graph, epochs=2, **own).fit()
    for says, change in changes.items():
        with pytest.raises(InputError, match=says):
            make(graph, resume=True, **own | change).fit()
