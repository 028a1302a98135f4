"""What `dg.predict` gives is the plain forward pass in evaluation mode, whatever the layers, on any number of ranks."""

import re
import resource
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
import torch
from command import distgnn, slowness
from cut_graphs import random_graph

import distgnn as dg
from distgnn.errors import InputError, RunError
from distgnn.interop.pyg import arc_set
from distgnn.ops import buffers, file_memory
from distgnn.ops.edges import arc_blocks, softmax
from distgnn.partition import partition_graph, read_manifest
from distgnn.predicting import on_rank
from distgnn.predicting import predict as predict_file
from distgnn.predicting.foreign_weights import load_foreign
from distgnn.predicting.on_rank import Job, predict_part
from distgnn.predicting.within_memory import check_limit
from distgnn.system.calls.packing import pack
from distgnn.system.other_libraries import import_dgl

WIDTH, EDGE_WIDTH, RELATIONS = 8, 5, 3
torch_geometric = pytest.importorskip("torch_geometric")
pyg = torch_geometric.nn
IN_FLOAT32 = ("GraphSAGE", "GAT", "edge features", "DGL's GraphConv")  # all are in float64
WHOLE_IN = ("relations",)  # a number of each arc and relation


class Wrapped(torch.nn.Module):
    """Layers of PyG in a user's class. `takes`: further arguments of its layers."""

    def __init__(self, *layers, gives=lambda rows: rows[-1], column=None):
        super().__init__()
        self.layers, self.gives, self.column = torch.nn.ModuleList(layers), gives, column

    def forward(self, data):
        rows, found = data.x, []
        for layer in self.layers:
            if isinstance(layer, torch.nn.BatchNorm1d):
                rows = layer(rows)
            else:
                rows = layer(rows, data.edge_index, *([data[self.column]] if self.column else []))
            found.append(rows)
            rows = torch.nn.functional.dropout(rows.relu(), 0.5, self.training)
        return self.gives(found)


class Own(pyg.MessagePassing):
    def __init__(self):
        super().__init__(aggr="mean")
        self.of_rows, self.of_arcs = torch.nn.Linear(WIDTH, 4), torch.nn.Linear(EDGE_WIDTH, 4)

    def forward(self, x, edge_index, edge_attr):
        return self.propagate(edge_index, x=self.of_rows(x), edge_attr=edge_attr)

    def message(self, x_j, edge_attr):
        return (x_j + self.of_arcs(edge_attr)).relu()


def attr(layer):
    """A model whose layer takes edge features."""
    return lambda: Wrapped(layer(), column="edge_attr")


ALONE = {"allow_zero_in_degree": True}
DGL = {  # as DGL's examples have them
    "GraphConv": lambda dgl: [dgl.GraphConv(WIDTH, 8, activation=torch.relu, **ALONE), dgl.GraphConv(8, 4, **ALONE)],
    "SAGEConv": lambda dgl: [dgl.SAGEConv(WIDTH, 8, "mean"), dgl.SAGEConv(8, 4, "pool")],
    "GATConv": lambda dgl: [dgl.GATConv(WIDTH, 4, 2, feat_drop=0.5, attn_drop=0.5, residual=True, **ALONE)],
    "GINConv": lambda dgl: [dgl.GINConv(torch.nn.Linear(WIDTH, 4), "max", learn_eps=True)],
}


class OfDgl(torch.nn.Module):
    """Layers of DGL, and a batch norm."""

    def __init__(self, name):
        super().__init__()
        self.layers = torch.nn.ModuleList(DGL[name](import_dgl().nn))
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, graph, feats):
        for layer in self.layers:
            feats = layer(graph, feats)
            feats = feats.flatten(1) if feats.dim() > 2 and layer is not self.layers[-1] else feats
        return self.norm(feats.mean(1) if feats.dim() > 2 else feats)


MLP = torch.nn.Sequential
SMALL = {"aggregators": ["mean", "max", "std"], "scalers": ["identity", "amplification"], "deg": torch.ones(9)}
MODELS = {
    "GraphSAGE": lambda: pyg.models.GraphSAGE(WIDTH, 8, 3, 4, dropout=0.5),
    "GCN, batch norm": lambda: pyg.models.GCN(WIDTH, 8, 2, 4, norm="batch"),
    "GAT": lambda: pyg.models.GAT(WIDTH, 8, 2, 4, heads=2),
    "PNA": lambda: pyg.models.PNA(WIDTH, 8, 2, 4, **SMALL),
    "jumping knowledge": lambda: pyg.models.GraphSAGE(WIDTH, 8, 3, 4, jk="cat"),
    "LINKX": lambda: pyg.models.LINKX(60, WIDTH, 8, 4, 2),
    "LightGCN": lambda: Light(60, 8, 2),
    "DeepGCN": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8), deep_layer(), deep_layer()),
    "batch norm": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8), torch.nn.BatchNorm1d(8), pyg.SAGEConv(8, 4)),
    "APPNP": lambda: Wrapped(pyg.GCNConv(WIDTH, 4), pyg.APPNP(3, 0.1)),
    "GCNII": lambda: Deep(),
    "Chebyshev": lambda: Wrapped(pyg.ChebConv(WIDTH, 4, 3)),
    "cached": lambda: Wrapped(pyg.SGConv(WIDTH, 4, 2, cached=True)),  # of a plain graph, which has another order
    "reversible": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8), pyg.GroupAddRev(pyg.SAGEConv(4, 4), num_groups=2)),
    "SAGE, max": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8, "max"), pyg.SAGEConv(8, 4, "max", project=True)),
    "edge features": attr(lambda: pyg.GATConv(WIDTH, 4, edge_dim=EDGE_WIDTH)),
    "GATv2, edge features": attr(lambda: pyg.GATv2Conv(WIDTH, 4, heads=2, edge_dim=EDGE_WIDTH)),
    "three heads, edge features": attr(lambda: pyg.GATConv(WIDTH, 4, heads=3, edge_dim=EDGE_WIDTH)),
    "GENConv": attr(lambda: pyg.GENConv(WIDTH, 4, learn_t=True, edge_dim=EDGE_WIDTH)),
    "transformer, edge features": attr(lambda: pyg.TransformerConv(WIDTH, 4, heads=2, edge_dim=EDGE_WIDTH)),
    "NNConv": attr(lambda: pyg.NNConv(WIDTH, 4, torch.nn.Linear(EDGE_WIDTH, 4 * WIDTH), aggr="mean")),
    "PNA, edge features": attr(lambda: pyg.PNAConv(WIDTH, 4, **SMALL, edge_dim=EDGE_WIDTH, towers=1)),
    "crystals": attr(lambda: pyg.CGConv(WIDTH, EDGE_WIDTH, "max")),
    "own messages": attr(lambda: Own()),
    "own softmax": attr(lambda: OwnSoftmax()),
    "relations": lambda: Wrapped(pyg.RGCNConv(WIDTH, 4, RELATIONS), column="edge_type"),
    "relations, films": lambda: Wrapped(pyg.FiLMConv(WIDTH, 4, RELATIONS), column="edge_type"),
    "a tuple": lambda: Wrapped(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, 4), gives=tuple),
    "a dict": lambda: Wrapped(pyg.GCNConv(WIDTH, 8), gives=lambda rows: {"hidden": rows[0], "mean": rows[0].mean(0)}),
    **{f"DGL's {name}": partial(OfDgl, name) for name in DGL},
    "without a graph": lambda: torch.nn.Sequential(torch.nn.Linear(WIDTH, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)),
}


class Light(pyg.models.LightGCN):
    def forward(self, x, edge_index):
        return self.get_embedding(edge_index)


def deep_layer():
    return pyg.DeepGCNLayer(pyg.SAGEConv(8, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), dropout=0.1)


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, 8)
        self.layers = torch.nn.ModuleList(pyg.GCN2Conv(8, 0.1, 0.5, layer) for layer in (1, 2))

    def forward(self, x, edge_index):
        rows = first = self.first(x)
        for layer in self.layers:
            rows = layer(rows, first, edge_index).relu_()
        return rows


class OwnSoftmax(pyg.MessagePassing):
    """Writes into its messages, and weighs them over the arcs of each target."""

    def __init__(self):
        super().__init__(aggr="add")
        self.score, self.rows = torch.nn.Linear(2 * WIDTH + EDGE_WIDTH, 1), torch.nn.Linear(WIDTH + EDGE_WIDTH, 4)

    def forward(self, x, edge_index, edge_attr):
        return self.propagate(edge_index, x=x, edge_attr=edge_attr, size=None)

    def message(self, x_i, x_j, edge_attr, index, ptr, size_i):
        both = torch.cat([x_i, x_j, edge_attr], dim=-1)
        score = self.score(both)
        score[both[:, 0] > 0.5] = 0.25
        rows = self.rows(torch.cat([x_j - x_i, edge_attr], -1)).view(-1, 2, 2).flatten(1)
        rows += 1
        rows *= edge_attr[:, :1]
        return torch_geometric.utils.softmax(score, index, ptr, size_i) * rows


def named(made):
    if isinstance(made, torch.Tensor):
        return {"output": made}
    return made if isinstance(made, dict) else {str(place): one for place, one in enumerate(made)}


def models_and_rows(source, dtype):
    """(name, model in training mode, what the plain library gives by name)."""
    data, graph = source.to_pyg(), source.to_dgl()
    data.x, data.edge_attr = data.x.to(dtype), data.edge_attr.to(dtype)
    for name, make in MODELS.items():
        if dtype == torch.float32 and name not in IN_FLOAT32:
            continue
        torch.manual_seed(0)
        model = make().to(dtype)
        if isinstance(model, OfDgl):
            graph.ndata["feat"] = data.x
        arguments = (graph, data.x) if isinstance(model, OfDgl) else None
        arguments = arguments or {"without a graph": (data.x,)}.get(
            name, (data,) if isinstance(model, Wrapped) else None
        )
        arguments = arguments or (data.x, data.edge_index)
        model.train()
        model(*arguments)  # running statistics
        model.eval()
        with torch.no_grad():
            yield name, model.train(), named(model.eval()(*arguments))


@pytest.mark.mpi(3)
def test_the_plain_forward_pass(comm, shared_tmp_path, monkeypatch):
    """Rows of arcs whole, and in blocks; these are never whole but for a softmax's numbers."""
    source, widest = random_graph(4, directed=True, typed=True), []
    if comm.rank == 0:
        partition_graph(source, comm.size, shared_tmp_path / "parts", say=lambda line: None)
    comm.Barrier()
    whole = arc_blocks.whole_rows

    def watched(rows):
        widest.append(rows.shape[1:].numel() if isinstance(rows, arc_blocks.ArcBlocks) else 0)
        return whole(rows)

    for place in (arc_blocks, arc_set, softmax):
        monkeypatch.setattr(place, "whole_rows", watched)
    monkeypatch.setattr(arc_blocks, "BLOCK_ARCS", 7)
    monkeypatch.setattr(on_rank, "COLUMNS", 4)
    for least, dtype, limit in ((0, torch.float64, 1e-9), (1 << 16, torch.float32, 1e-5)):
        monkeypatch.setattr(arc_blocks, "LEAST_ARCS", least)
        for name, model, wanted in models_and_rows(source, dtype):
            job = Job(str(shared_tmp_path / "parts"), pack(model, "model"), (), str(shared_tmp_path), False)
            widest.clear()
            made = predict_part(job)
            assert name in WHOLE_IN or max(widest, default=0) <= 2, name
            comm.Barrier()
            assert list(made) == list(wanted)
            for place, (key, one) in enumerate(made.items()):
                found = np.load(shared_tmp_path / f"{place}.npy") if one is None else one.numpy()
                assert str(found.dtype) == str(dtype).removeprefix("torch.")
                np.testing.assert_allclose(found, wanted[key].numpy(), rtol=limit, atol=limit, err_msg=name)
            comm.Barrier()


class AllPairs(torch.nn.Module):
    def forward(self, x):
        return x @ x.t()


def test_on_one_rank():
    """A layer of ours; and an ordinary tensor, which is in the data's order."""
    source = random_graph(4)
    feats = torch.from_numpy(source.feats)
    torch.testing.assert_close(dg.predict(AllPairs(), source, ranks=1, quiet=True), feats @ feats.t())
    found = dg.predict(dg.nn.GraphSAGE(WIDTH, 8, 4).train(), random_graph(4), ranks=1, quiet=True)
    assert found.shape == (60, 4) and found.dtype == torch.float32


def sage():
    torch.manual_seed(0)
    return pyg.models.GraphSAGE(WIDTH, 8, 2, 4)


def test_files_and_layers(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    source, model = random_graph(4), sage()
    wanted = dg.predict(model, source, ranks=1, quiet=True, layers="convs.0")
    assert {name: one.shape[1] for name, one in wanted.items()} == {"output": 4, "convs.0": 8}
    for ending in (".npy", ".parquet", ""):
        paths = dg.predict(model, source, ranks=1, quiet=True, layers=["convs.0"], out=tmp_path / f"z{ending}")
        for name, path in paths.items():
            if ending == ".parquet":
                table = parquet.read_table(path)
                assert table["id"].to_pylist() == list(range(60))
                rows = np.stack(table["output"].to_pylist()).astype(np.float32)
            else:
                rows = np.load(path / "rows-00000.npy" if ending == "" else path)
            np.testing.assert_array_equal(rows, wanted[name].numpy())
    with pytest.raises(InputError, match=r"z.output.npy exists"):
        dg.predict(model, source, ranks=1, quiet=True, layers=["convs.0"], out=tmp_path / "z.npy")
    dg.predict(model, source, ranks=1, quiet=True, layers=["convs.0"], out=tmp_path / "z", overwrite=True)
    assert not list(tmp_path.glob("*.partial")) and not list(tmp_path.glob(".distgnn*"))


def test_rows_wait_in_files(tmp_path, monkeypatch):
    """The same bits, no hidden row in memory that is no file's, and nothing left of the files."""
    source, model, made = random_graph(4, num_nodes=900), pyg.models.GraphSAGE(WIDTH, 64, 4, 4), []
    wanted = dg.predict(model, source, ranks=1, quiet=True)
    monkeypatch.setattr(buffers, "SMALL", 1 << 10)
    begin = file_memory.FileMemory.begin_there
    monkeypatch.setattr(file_memory.FileMemory, "begin_there", lambda *args: (made.append(args), begin(*args))[1])
    assert torch.equal(dg.predict(model, source, ranks=1, quiet=True, offload=tmp_path), wanted)
    assert len(made) >= 6 and not list(tmp_path.iterdir())  # sums, and what ReLU gives


class Draws(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5)


class Fails(torch.nn.Module):
    def forward(self, x):
        raise ValueError("two\nlines")


class Misfits(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(9, 2)


class Sums(torch.nn.Module):
    def forward(self, x):
        return x.new_zeros(3, 2)[None][0], "text"


class Identity(torch.nn.Module):
    def forward(self, x):
        return x


BAD = {
    "draws": (Draws(), {}, "Draws draws random numbers in evaluation mode"),
    "another width": (torch.nn.Linear(9, 2), {}, "cannot be multiplied"),
    "own error": (Fails(), {}, r"the model's own code fails: ValueError: two lines \(test_predict.py:\d+\)$"),
    "own product": (Misfits(), {}, r"the model's own code fails: RuntimeError: .* \(test_predict.py:\d+\)$"),
    "earlier rows of nothing": (torch.nn.Linear(WIDTH, 2), {"before": np.ones((60, 2))}, "give changed"),
    "a text": (Sums(), {}, "the model gave a str for 1"),
    "no module": (lambda x: x, {}, "model is a function: give a torch module"),
    "a layer": (torch.nn.Linear(WIDTH, 2), {"layers": "convs.1"}, "the model has no module 'convs.1'"),
    "lazy": (torch.nn.LazyLinear(2), {}, "weights without numbers"),
    "an ending": (torch.nn.Linear(WIDTH, 2), {"out": "z.txt"}, "expected .* .tsv, .parquet"),
    "classes of no table": (torch.nn.Linear(WIDTH, 2), {"out": "z.npy", "classes": True}, "classes are written into"),
    "no layers": (Identity(), {"embeddings": True}, "Identity has no last layer"),
    "a long name": (torch.nn.Linear(WIDTH, 2), {"out": "z" * 300 + ".npy"}, "use at most 200"),
    "no folder": (torch.nn.Linear(WIDTH, 2), {"offload": "nowhere"}, "offload is nowhere: no such folder"),
    "a folder": (torch.nn.Linear(WIDTH, 2), {"out": "nowhere/z.npy"}, "an existing folder"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(tmp_path, monkeypatch, name):
    model, options, said = BAD[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said):
        dg.predict(model, random_graph(4), ranks=1, quiet=True, **options)
    assert not list(tmp_path.iterdir())


def test_weights_from_elsewhere(tmp_path):
    model, state = sage(), sage().state_dict()
    kept = {
        "w.pt": state,
        "lightning.ckpt": {"epoch": 3, "state_dict": {f"net.inner.{name}": one for name, one in state.items()}},
        "parallel.pt": {f"module.{name}": one for name, one in state.items()},
    }
    for name, one in kept.items():
        torch.save(one, tmp_path / name)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        load_foreign(model, tmp_path / name)
        assert all(torch.equal(one, state[name]) for name, one in model.state_dict().items())
    other = {name.replace("lin_l", "lin_x"): one for name, one in state.items()} | {
        "convs.1.lin_r.weight": torch.ones(2)
    }
    torch.save(other, tmp_path / "other.pt")
    line = r"convs.1.lin_r.weight is \[2\] in the file.*; convs.0.lin_l.weight is missing, .* has convs.0.lin_x.weight"
    with pytest.raises(InputError, match=line):
        load_foreign(model, tmp_path / "other.pt")
    torch.save({name.replace("convs", "layers"): one for name, one in state.items()}, tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"convs.0.lin_l.weight is missing, the file has layers.0.lin_l.weight"):
        load_foreign(model, tmp_path / "other.pt")
    torch.save(model, tmp_path / "whole.pt")
    with pytest.raises(InputError, match="holds more than weights, and is not executed"):
        load_foreign(model, tmp_path / "whole.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "w.pt").read_bytes()[:500])
    (tmp_path / "text.pt").write_text("hello")
    for name, said in (("cut.pt", ""), ("text.pt", ": torch.save did not write it")):
        with pytest.raises(InputError, match=f"cannot be read as weights{said}"):
            load_foreign(model, tmp_path / name)


@pytest.mark.parametrize(("ending", "most"), [(".npy", 600), ("", 600), (".csv", 2000), (".parquet", 1500)])
def test_a_disk_that_is_full_at_half(tmp_path, ending, most):
    """No file may be longer: the rows themselves, or the table made of them."""
    pytest.importorskip("pyarrow")
    partition_graph(random_graph(4), 1, tmp_path / "parts", say=lambda line: None)
    before = set(tmp_path.iterdir())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        with pytest.raises(InputError, match="cannot write predictions to") as caught:
            dg.predict(sage(), tmp_path / "parts", quiet=True, out=tmp_path / f"z{ending}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "\n" not in str(caught.value) and set(tmp_path.iterdir()) == before


def test_a_limit_on_memory(tmp_path):
    """Of what a small pass takes, and with what would fit; the smallest there is runs."""
    partition_graph(random_graph(4), 2, tmp_path / "parts", say=lambda line: None)
    manifest = read_manifest(tmp_path / "parts")

    def measure(tiny, small, offload, ranks):
        assert tiny.num_nodes < small.num_nodes and small.feats.shape[1] == WIDTH
        rows, halos = small.num_nodes // ranks, 3 * small.num_nodes * (ranks - 1)
        parts = [{"owned": rows, "source_halos": halos, "target_halos": halos}] * ranks
        return (rows + halos) * (10_000_000 if offload else 40_000_000), {"parts": parts}

    def line(limit, offload=False):
        return check_limit(limit, str(tmp_path / "parts"), manifest, offload, measure)

    assert re.match(r"memory: about \S+ GB a rank, beside mapped files, of 100 GB", line("100GB"))
    needs = r"rank \d needs about \S+ [GM]B beside mapped files, and memory is 1.5 GB: take"
    with pytest.raises(InputError, match=f"{needs} [3-9] ranks or offload"):
        line("1.5GB")
    with pytest.raises(InputError, match=f"{needs} [3-9] ranks$".replace("1.5 GB", "600 MB")):
        line("600MB", True)
    with pytest.raises(InputError, match="the program alone takes 345 MB"):
        line("300MB")
    assert re.match(r"memory: about \S+ GB a rank, beside mapped files; with offload \S+ [GM]B$", line(None))


@pytest.mark.slow
def test_in_a_shell(run, tmp_path, monkeypatch):
    """One start of ranks; all else in this process."""
    monkeypatch.setattr(predict_file, "measured", lambda *_: (1 << 30, {"parts": []}))
    (tmp_path / "in_a_shell.py").write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(1)\n    return torch.nn.Linear(64, 3)\n\n\n"
        "def fails():\n    return nothing\n"
    )
    torch.manual_seed(0)
    state = torch.nn.Linear(64, 3).state_dict()
    torch.save(state, tmp_path / "w.pt")
    make, out = f"{tmp_path / 'in_a_shell.py'}:make", ("--out", tmp_path / "z.npy")
    words = ("communities:nodes=200", "--weights", tmp_path / "w.pt")
    done = distgnn("predict", make, *words, "--ranks", 2, *out)
    assert done.returncode == 0, done.stderr
    model = torch.nn.Linear(64, 3)
    model.load_state_dict(state)
    wanted = dg.predict(model, "communities:nodes=200", ranks=1, quiet=True)
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), wanted.numpy(), rtol=1e-6)
    (tmp_path / "ids.txt").write_text("3\n7\n")
    again = ("--changed", tmp_path / "ids.txt", "--before", tmp_path / "z.npy", "--out", tmp_path / "y.npy")
    for function, more, code, said in (
        ("none", out, 2, "has no function 'none'"),
        ("fails", out, 2, "the model's own code fails: NameError: name 'nothing' is not defined (in_a_shell.py:10)"),
        ("make", (*out, "--memory", "100MB"), 2, "the program alone takes"),
        ("make", (), 2, "Missing option '--out'"),
        ("make", ("--plan",), 0, "memory: about 349 MB a rank, beside mapped files; with offload 349 MB"),
        ("make", again, 0, ""),
    ):
        words = ("communities:nodes=200", "--weights", tmp_path / "w.pt", "--ranks", 1, "--overwrite", "--quiet")
        found, shown, err = run("predict", f"{make.removesuffix('make')}{function}", *words, *more)
        assert found == code and said in shown + err and err.count("\n") == bool(code), err
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted.numpy(), rtol=1e-6)
    killed = RunError("rank 0 was killed")
    killed.said = True  # by who watched the ranks
    monkeypatch.setattr(predict_file, "call_on_ranks", lambda *args, **options: raised(killed))
    assert run("predict", make, *words, *out) == (2, "", "")


def raised(error):
    raise error


WAITS = """
import pathlib, time, torch
class Waits(torch.nn.Module):
    def forward(self, x):
        pathlib.Path(__file__).with_suffix(".begun").touch()
        time.sleep(600)
        return x
"""


@pytest.mark.slow
def test_stopped_by_hand(tmp_path):
    """Ctrl-C in a pass ends it: no file, no line of Python."""
    (tmp_path / "waits.py").write_text(WAITS)
    (tmp_path / "out").mkdir()
    words = ["predict", f"{tmp_path / 'waits.py'}:Waits", "communities:nodes=200", "--ranks", "2"]
    command = [sys.executable, "-m", "distgnn.cli", *words, "--out", str(tmp_path / "out" / "z.npy")]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120 * slowness()
    while not (tmp_path / "waits.begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=120 * slowness())[1]
    assert running.returncode not in (0, 1) and "Traceback" not in said, said
    assert not list((tmp_path / "out").iterdir())
