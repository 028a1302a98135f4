"""What `dg.predict` gives is the plain forward pass in evaluation mode, whatever the layers, on any number of ranks."""

import numpy as np
import pytest
import torch
from command import distgnn
from cut_graphs import random_graph

import distgnn as dg
from distgnn.errors import InputError
from distgnn.partition import partition_graph
from distgnn.predicting.foreign_weights import load_foreign
from distgnn.predicting.predict import Job, predict_part
from distgnn.system.calls.packing import pack
from distgnn.system.other_libraries import import_dgl

WIDTH, EDGE_WIDTH, RELATIONS = 7, 5, 3
pyg = pytest.importorskip("torch_geometric.nn")


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


MODELS = {
    "GraphSAGE": lambda: pyg.models.GraphSAGE(WIDTH, 8, 3, 4, dropout=0.5),
    "GCN, batch norm": lambda: pyg.models.GCN(WIDTH, 8, 2, 4, norm="batch"),
    "GAT": lambda: pyg.models.GAT(WIDTH, 8, 2, 4, heads=2),
    "GIN": lambda: pyg.models.GIN(WIDTH, 8, 2, 4),
    "PNA": lambda: pyg.models.PNA(WIDTH, 8, 2, 4, aggregators=["mean", "max"], scalers=["identity"], deg=torch.ones(9)),
    "EdgeCNN": lambda: pyg.models.EdgeCNN(WIDTH, 8, 2, 4),
    "jumping knowledge": lambda: pyg.models.GraphSAGE(WIDTH, 8, 3, 4, jk="cat"),
    "transformer": lambda: Wrapped(pyg.TransformerConv(WIDTH, 4, heads=2)),
    "batch norm": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8), torch.nn.BatchNorm1d(8), pyg.SAGEConv(8, 4)),
    "edge features": lambda: Wrapped(pyg.GATConv(WIDTH, 4, edge_dim=EDGE_WIDTH), column="edge_attr"),
    "own messages": lambda: Wrapped(Own(), column="edge_attr"),
    "relations": lambda: Wrapped(pyg.RGCNConv(WIDTH, 4, RELATIONS), column="edge_type"),
    "a tuple": lambda: Wrapped(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, 4), gives=tuple),
    "a dict": lambda: Wrapped(pyg.GCNConv(WIDTH, 8), gives=lambda rows: {"hidden": rows[0], "mean": rows[0].mean(0)}),
    "without a graph": lambda: torch.nn.Sequential(torch.nn.Linear(WIDTH, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)),
}


def named(made):
    if isinstance(made, torch.Tensor):
        return {"output": made}
    return made if isinstance(made, dict) else {str(place): one for place, one in enumerate(made)}


def data_and_model(name):
    source = random_graph(4, directed=True, typed=True)
    data = source.to_pyg()
    data.x, data.edge_attr = data.x.double(), data.edge_attr.double()
    torch.manual_seed(0)
    model = MODELS[name]().double()
    arguments = {"without a graph": (data.x,)}.get(name, (data,) if isinstance(model, Wrapped) else None)
    arguments = arguments or (data.x, data.edge_index)
    model.train()
    model(*arguments)  # running statistics
    model.eval()
    with torch.no_grad():
        return source, model.train(), named(model.eval()(*arguments))


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("name", MODELS)
def test_the_plain_forward_pass(comm, shared_tmp_path, name):
    source, model, wanted = data_and_model(name)
    if comm.rank == 0:
        partition_graph(source, comm.size, shared_tmp_path / "parts", say=lambda line: None)
    comm.Barrier()
    made = predict_part(Job(str(shared_tmp_path / "parts"), pack(model, "model"), (), str(shared_tmp_path), False))
    comm.Barrier()
    assert list(made) == list(wanted)
    for place, (name, one) in enumerate(made.items()):
        found = np.load(shared_tmp_path / f"{place}.npy") if one is None else one.numpy()
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wanted[name].numpy(), rtol=1e-9, atol=1e-9)


def test_dgl_and_ours_on_one_rank():
    dgl = import_dgl()
    source = random_graph(4, directed=True)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.drop = dgl.nn.SAGEConv(WIDTH, 4, "mean"), torch.nn.Dropout(0.5)

        def forward(self, graph, feats):
            return self.drop(self.conv(graph, feats))

    torch.manual_seed(0)
    model, graph = Net().train(), source.to_dgl()
    with torch.no_grad():
        wanted = model.eval()(graph, graph.ndata["feat"])
    found = dg.predict(model.train(), graph, ranks=1, quiet=True)
    assert model.training and found.dtype == torch.float32
    torch.testing.assert_close(found, wanted)
    ours = dg.nn.GraphSAGE(WIDTH, 8, 4)
    assert dg.predict(ours, source, ranks=1, quiet=True).shape == (60, 4)


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


class Draws(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.dropout(x, 0.5)


class Sums(torch.nn.Module):
    def forward(self, x):
        return x.new_zeros(3, 2)[None][0], "text"


class Identity(torch.nn.Module):
    def forward(self, x):
        return x


BAD = {
    "draws": (Draws(), {}, "Draws draws random numbers in evaluation mode"),
    "another width": (torch.nn.Linear(9, 2), {}, "cannot be multiplied"),
    "a text": (Sums(), {}, "the model gave a str for 1"),
    "no module": (lambda x: x, {}, "model is a function: give a torch module"),
    "a layer": (torch.nn.Linear(WIDTH, 2), {"layers": "convs.1"}, "the model has no module 'convs.1'"),
    "lazy": (torch.nn.LazyLinear(2), {}, "weights without numbers"),
    "an ending": (torch.nn.Linear(WIDTH, 2), {"out": "z.txt"}, "expected .* .tsv, .parquet"),
    "classes of no table": (torch.nn.Linear(WIDTH, 2), {"out": "z.npy", "classes": True}, "classes are written into"),
    "no layers": (Identity(), {"embeddings": True}, "Identity has no last layer"),
    "a long name": (torch.nn.Linear(WIDTH, 2), {"out": "z" * 300 + ".npy"}, "use at most 200"),
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
        "lightning.ckpt": {"epoch": 3, "state_dict": {f"model.{name}": one for name, one in state.items()}},
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
    torch.save(model, tmp_path / "whole.pt")
    with pytest.raises(InputError, match="holds more than weights, and is not executed"):
        load_foreign(model, tmp_path / "whole.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "w.pt").read_bytes()[:500])
    with pytest.raises(InputError, match="cannot be read as weights"):
        load_foreign(model, tmp_path / "cut.pt")


@pytest.mark.slow
def test_in_a_shell(tmp_path):
    (tmp_path / "my_model.py").write_text(
        "import torch\n\n\ndef make():\n    torch.manual_seed(1)\n    return torch.nn.Linear(64, 3)\n"
    )
    torch.manual_seed(0)
    state = torch.nn.Linear(64, 3).state_dict()
    torch.save(state, tmp_path / "w.pt")
    words = ("communities:nodes=200", "--weights", tmp_path / "w.pt", "--ranks", 2, "--out", tmp_path / "z.npy")
    done = distgnn("predict", f"{tmp_path / 'my_model.py'}:make", *words)
    assert done.returncode == 0, done.stderr
    model = torch.nn.Linear(64, 3)
    model.load_state_dict(state)
    wanted = dg.predict(model, "communities:nodes=200", ranks=1, quiet=True)
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), wanted.numpy(), rtol=1e-6)
    done = distgnn("predict", f"{tmp_path / 'my_model.py'}:none", *words, "--overwrite")
    assert (done.returncode, "has no function 'none'" in done.stderr) == (2, True)
