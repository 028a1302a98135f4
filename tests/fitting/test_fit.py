"""`dg.fit`: losses of `distgnn train`, also after a stop; models that travel; mistakes are said before ranks start."""

import gc
import os
import random
import shutil
import signal
import threading
import time

import numpy as np
import pytest
import torch
from command import distgnn
from torch import nn
from torch.nn.utils import parametrizations

import distgnn as dg
from distgnn.errors import InputError, RunError, RunStopped
from distgnn.fitting import cut_cache
from distgnn.system.calls.packing import pack, unpack
from distgnn.train.run.run_folder import read_metrics

GCNConv = pytest.importorskip("torch_geometric.nn").GCNConv  # a plain model, and what stands for edge_index

SMALL = {"hidden_feats": 8, "epochs": 4, "lr": 0.02}


@pytest.mark.slow
def test_losses_are_those_of_train_to_the_bit_also_after_a_stop(graph, tmp_path):
    """A random split of the same seed as well: the graph has none."""
    graph.train = graph.valid = graph.test = None
    graph.save(tmp_path / "graph")
    words = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    run = tmp_path / "run"
    trained = distgnn("train", tmp_path / "graph", "--ranks", 2, *words, "--seed=5", "--run-dir", run)
    assert trained.returncode == 0, trained.stderr
    lines = trained.stderr.splitlines()  # to be copied
    assert f"  distgnn partition {tmp_path / 'graph'} --parts 2 --out parts --seed 5 --split 0.6,0.2,0.2" in lines
    assert any(line.startswith(f"  distgnn train parts {' '.join(words)} --seed=5") for line in lines)
    caller = os.getpid()

    class Stop:
        def on_train_epoch_end(self, trainer, record):
            if record["epoch"] == 1 and trainer.graph.rank == 0:
                os.kill(caller, signal.SIGINT)
            while record["epoch"] == 1 and not trainer.interrupts.received:
                time.sleep(0.02)

    pace = {"threads": 1, "seed": 5, "ranks": 2, "quiet": True}
    with pytest.raises(RunStopped, match=r"stopped by SIGINT after \d epochs; .* \(from Python: resume=True\)"):
        dg.fit(graph, **SMALL | {"epochs": 400}, **pace, callbacks=[Stop()])
    plot = dg.LivePlot(tmp_path / "curves.png")
    result = dg.fit(graph, **SMALL, **pace, resume=True, callbacks=[plot])
    assert plot.file.read_bytes()[:4] == b"\x89PNG"
    assert result.losses == [record["loss"] for record in read_metrics(run / "metrics.jsonl")]
    data = graph.to_pyg(graph.edge_list())
    with torch.no_grad():
        plain = result.model(data.x, data.edge_index)
    torch.testing.assert_close(plain, result.predict())  # the order of the data
    kept = dg.load_result(result.save(tmp_path / "kept"))
    assert torch.equal(kept.predict(), result.predict()) and kept.test_accuracy == result.test_accuracy
    del result
    gc.collect()
    assert not list((cut_cache.cache_root() / "runs").iterdir())


def test_names_of_vertices_come_back_and_a_run_stops_by_itself(arrays, capsys):
    names = np.array([f"v{'é' * (i % 3)}{i}" for i in range(60)])
    data = arrays | {"y": np.random.default_rng(0).permutation(arrays["y"]), "node_names": names}
    options = {"hidden_feats": 8, "lr": 0.3, "eval_every": 20, "patience": 1, "epochs": 2000, "log": ""}
    result = dg.fit(data, "gcn", ranks=1, **options)
    assert result.node_names.tolist() == names.tolist() and len(result.predict()) == 60
    said = f"stopped after epoch {len(result.history)} of 2000"
    assert len(result.history) < 2000 and said in capsys.readouterr().err


class PyGStyle(nn.Module):
    def __init__(self, out=4):
        super().__init__()
        self.conv = dg.nn.SAGEConv(8, 8, "mean")
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("calls", torch.zeros(1))
        self.scale = lambda rows: 2 * rows
        self.read = nn.Linear(8, out)

    def forward(self, x, edge_index):
        self.calls += self.training
        return self.read(self.norm(self.scale(x)[:, :1] + self.conv.fc_neigh(x)))


@pytest.mark.parametrize("data", ["arrays", "graph"])
def test_a_module_of_ones_own_on_one_rank(data, request):
    model = PyGStyle()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    result = dg.fit(request.getfixturevalue(data), model, ranks=1, epochs=3, quiet=True)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert result.model.calls == result.best_epoch + 1 and type(result.model) is PyGStyle
    assert len(result.history.to_pandas()) == len(result.losses) == 3 and 0 <= result.test_accuracy <= 1
    kept = result.save(result.run.parent.parent / "kept")
    again = dg.load_result(kept, model=PyGStyle()).model
    rows = torch.as_tensor(np.asarray(request.getfixturevalue("arrays")["x"]))
    assert torch.equal(again(rows, None), result.model(rows, None))
    with pytest.raises(RunError, match=r"model=Model\(\.\.\.\)"):
        dg.load_result(kept).model  # noqa: B018
    with pytest.raises(RunError, match="does not fit the model"):
        dg.load_result(kept, model=PyGStyle(5))


def test_one_seed_that_everything_follows(graph):
    def make(graph):
        model = dg.nn.GraphSAGE(graph.num_feats, 8, 4)
        model.register_buffer("drawn", torch.tensor([random.random(), np.random.rand(), torch.rand(()).item()]))
        return model

    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    runs = [dg.fit(graph, make, ranks=1, epochs=1, seed=seed, quiet=True) for seed in (3, 3, 4)]
    first, again, other = (run.model.drawn for run in runs)
    assert torch.equal(first, again) and not (first == other).any()
    assert runs[0].losses == runs[1].losses != runs[2].losses
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())


class Unpicklable(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 4)
        self.inner.held = threading.Lock()


class Forgets(nn.Linear):
    """As PyG's Linear does with what `prune` adds."""

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        destination[f"{prefix}bias"] = self.bias

    def forward(self, x):
        return super().forward(x)


class Odd(nn.Module):
    def forward(self, first, second, third):
        return first


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"model": Unpicklable()}, "Unpicklable.inner.held cannot travel to the ranks: cannot pickle"),
        ({"model": PyGStyle}, "model is the class PyGStyle: give PyGStyle(...)"),
        ({"model": Forgets(8, 4)}, "weight of Forgets is not in its state_dict(), so what it learns would be lost"),
        ({"model": Odd()}, "Odd.forward takes (first, second, third), and first is nothing that fit can give"),
        ({"ranks": 0}, "expected a whole number of processes"),
        ({"split": (0.5, 0.2, 0.2)}, "has a split already"),
        ({"wire": "int3"}, "unknown wire 'int3'"),
        ({"learning_rate": 0.1}, "fit takes no learning_rate: write lr"),
        ({"ranks": torch.optim.Adam([torch.zeros(1)])}, "ranks is Adam ( Parameter Group 0"),
        ({"partition": 2}, "partition is 2: give a CutConfig, or a folder; the number of parts is ranks"),
        ({"split": 0.8}, "split is 0.8: expected shares"),
        ({"model": PyGStyle(), "memory": "1GB"}, "memory is compared with an estimate for models by name"),
        ({"memory": "10kB"}, "are there per rank"),
        ({"run_dir": "a", "out": "b"}, "out and run_dir are both given"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(graph, cache, words, says):
    with pytest.raises(dg.DistGNNError) as caught:
        dg.fit(graph, **{"ranks": 1, "epochs": 2, "quiet": True} | words)
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert not list(cache.glob("runs/*"))
    assert says in ("has a split already", "are there per rank") or not list(cache.glob("cuts/*"))  # nothing was cut


class Rows(nn.Module):
    """Two layers, and what is made of them."""

    def __init__(self, width=8, inner=4, out=4, end=lambda rows: rows):
        super().__init__()
        self.conv, self.read, self.end = dg.nn.SAGEConv(width, 4, "mean"), nn.Linear(inner, out), end

    def forward(self, graph, feats):
        return self.end(self.read(self.conv(graph, feats)))


class Alone(Rows):
    def forward(self, graph, feats):
        return self.read(self.conv(feats))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Rows(7), "conv (SAGEConv) of Rows was given (DistGraph, [60, 8] float32): rows float32 (60, 8) and weight"),
        (Rows(inner=9), "read (Linear) of Rows takes rows of width 9, and was given rows of width 4"),
        (Rows(out=2), "Rows gave rows of width 2, and the graph has 4 classes: the last layer needs 4 outputs"),
        (Rows(end=lambda rows: (rows, rows)), "Rows gave a tuple of 2 for 60 vertices: the Trainer takes one tensor"),
        (Rows(end=lambda rows: rows[:, 0]), "Rows gave a tensor [60] for 60 vertices"),
        (Rows(end=lambda rows: rows.long()), "Rows gave rows of torch.int64"),
        (Rows(end=lambda rows: rows.detach()), "Rows gave rows without a gradient"),
        (Alone(), "conv (SAGEConv) of Alone was given ([60, 8] float32): SAGEConv.forward() missing 1 required"),
    ],
)
def test_a_module_that_does_not_fit_is_named(graph, model, says):
    with pytest.raises(InputError) as caught:
        dg.fit(graph, model, ranks=1, epochs=2, quiet=True)
    assert says in str(caught.value) and "\n" not in str(caught.value) and caught.value.__cause__ is None


def test_one_logit_is_of_the_second_of_two_classes(graph):
    graph.labels = graph.labels % 2

    def loss(graph, logits):
        mask = graph.train_mask
        return nn.functional.binary_cross_entropy_with_logits(logits[mask][:, 0], graph.labels[mask].float())

    result = dg.fit(graph, Rows(out=1), ranks=1, epochs=2, quiet=True, loss=loss)
    test = torch.as_tensor(graph.test)
    right = (result.predict()[test, 0] > 0).long() == torch.as_tensor(graph.labels)[test]
    assert result.test_accuracy == pytest.approx(right.float().mean().item())


LONG = "n" * 300


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda graph, at: dg.fit(graph, "gcn", 1, out=at / LONG), "has 300 bytes: at most 255"),
        (lambda graph, at: dg.fit(graph, "gcn", 1, run_dir=str(at / LONG)), "has 300 bytes"),
        (lambda graph, at: dg.fit(LONG, "gcn", 1), "has 300 bytes"),
        (lambda graph, at: dg.load(LONG), "has 300 bytes"),
        (lambda graph, at: graph.save(at / LONG), "has 300 bytes"),
        (lambda graph, at: dg.LivePlot(at / "no" / "x.png"), "its folder does not exist"),
        (lambda graph, at: dg.LivePlot(at / f"{LONG}.png"), "has 304 bytes"),
        (lambda graph, at: dg.fit(graph, "gcn", 1, seed=2**70), r"seed is \d+: expected at most 2\*\*63 - 1"),
        (lambda graph, at: dg.fit(graph, Rows(9, 8, end=nn.LazyLinear(4)), 1), "end.weight is lazy, and has no size"),
        (lambda graph, at: dg.fit(graph, lambda graph: Rows(8, 8, end=nn.LazyLinear(4)), 1), "end.weight is lazy"),
    ],
)
def test_what_was_a_raw_error_is_one_line(graph, tmp_path, call, says):
    with pytest.raises((InputError, RunError), match=says) as caught:
        call(graph, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_result_whose_folder_is_gone_says_so(graph, tmp_path):
    result = dg.fit(graph, "gcn", ranks=1, epochs=1, out=tmp_path / "o", quiet=True)
    shutil.rmtree(tmp_path / "o")
    for use in (result.predict, lambda: result.predict(graph), lambda: result.model, lambda: result.node_names):
        with pytest.raises(RunError, match=r"o/run was removed, .*: save\(\) keeps them elsewhere"):
            use()


@pytest.mark.filterwarnings("ignore:.*weight_norm.*deprecated:FutureWarning")
@pytest.mark.parametrize("how", [nn.utils.weight_norm, parametrizations.weight_norm, parametrizations.orthogonal])
def test_weights_that_are_computed_from_others_travel_and_come_back(graph, how):
    model = Rows()
    model.read = how(model.read)
    result = dg.fit(graph, model, ranks=1, epochs=2, quiet=True)
    assert type(result.model.read).__name__ == type(model.read).__name__ and result.predict().shape == (60, 4)
    assert list(result.model.state_dict()) == list(model.state_dict())
    for old, new in zip(model.state_dict().values(), unpack(pack(model, "model")).state_dict().values(), strict=True):
        assert torch.equal(old, new)


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.read = GCNConv(-1, 8), nn.LazyLinear(4)

    def forward(self, x, edge_index):
        return self.read(self.conv(x, edge_index))


def test_a_lazy_model_that_was_called_once_trains(graph):
    data, model = graph.to_pyg(graph.edge_list()), Lazy()
    with pytest.raises(InputError, match="or call the model once before, on PyG's"):
        dg.fit(data, model, ranks=1)
    model(data.x, data.edge_index)
    assert dg.fit(data, model, ranks=1, epochs=1, quiet=True).predict().shape == (60, 4)


@pytest.mark.parametrize("shape", [(60,), (60, 1)])
def test_values_and_predictions_have_one_shape(graph, shape):
    """Whole floats too, without a task; a loss of the user's own sees what the model gave."""
    data, ages = graph.to_pyg(graph.edge_list()), torch.arange(60.0).reshape(shape) + 18
    data.y = ages

    def loss(graph, rows):
        assert graph.y.shape == rows.shape == shape
        return nn.functional.mse_loss(rows, graph.y)

    for model in (Rows(out=1, end=lambda rows: rows.reshape(shape)), "gcn"):
        own = {} if isinstance(model, str) else {"loss": loss}
        result = dg.fit(data, model, ranks=1, epochs=2, quiet=True, **own)
        assert result.losses[0] > 100 and result.predict().shape == shape and result.summary["metric"] == "mse"
    data.y = ages.long() % 7
    assert dg.fit(data, "gcn", ranks=1, epochs=1, quiet=True).summary["metric"] == "accuracy"
    result = dg.fit(data, "gcn", ranks=1, epochs=1, quiet=True, task="regression")
    assert result.summary["metric"] == "mse" and result.predict().shape == shape


def test_out_keeps_run_and_parts(graph, tmp_path):
    result = dg.fit(graph, lambda graph: dg.nn.GraphSAGE(graph.num_feats, 8, 4), ranks=1, epochs=2, out=tmp_path / "o")
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["parts", "run"]
    assert dg.fit(tmp_path / "o" / "parts", ranks=1, **SMALL, quiet=True).predict().shape == result.predict().shape
    with pytest.raises(InputError, match="for 1 ranks, not 2"):
        dg.fit(tmp_path / "o" / "parts", ranks=2)
    with pytest.raises(InputError, match="of another graph: 60 vertices and 400 edges there, 2 and 1 here"):
        dg.fit({"edges": [[0, 1]], "x": np.eye(2), "y": [0, 1]}, partition=tmp_path / "o" / "parts")
    with pytest.raises(InputError, match=r"run folder .* exists"):
        dg.fit(graph, ranks=1, epochs=2, out=tmp_path / "o")
