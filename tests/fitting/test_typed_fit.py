"""`dg.fit` and `dg.predict` of a HeteroData with the user's own model: target, names, files, and what is refused."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import distgnn as dg
from distgnn.errors import InputError

pytest.importorskip("torch_geometric")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch_geometric import nn as pyg
    from torch_geometric.data import HeteroData


class Model(nn.Module):
    def __init__(self, keys):
        super().__init__()
        self.convs = pyg.HeteroConv({key: pyg.SAGEConv((-1, -1), 4) for key in keys})

    def forward(self, x_dict, edge_index_dict):
        return self.convs(x_dict, edge_index_dict)


class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(2, 3)

    def forward(self, x_dict, edge_index_dict):
        return self.last(x_dict)


@pytest.fixture
def data():
    draw, data = torch.Generator().manual_seed(1), HeteroData()
    data["paper"].x, data["author"].x = (torch.randn(*size, generator=draw) for size in ((40, 8), (25, 4)))
    data["paper"].y = torch.randint(0, 4, (40,), generator=draw)
    for key, counts in {("author", "writes", "paper"): (25, 40), ("paper", "by", "author"): (40, 25)}.items():
        data[key].edge_index = torch.stack([torch.randint(0, count, (90,), generator=draw) for count in counts])
    return data


@pytest.fixture
def model(data):
    torch.manual_seed(0)
    model = Model(data.edge_types)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(data.x_dict, data.edge_index_dict)
    return model


def test_fit_and_predict_give_what_pyg_gives(data, model, tmp_path, run):
    """The split is made, the target found; the run is kept, read again and predicts other data."""
    result = dg.fit(data, model, 1, epochs=4, lr=0.05, quiet=True, out=tmp_path / "out")
    assert result.losses[-1] < result.losses[0] and result.predict().shape == (40, 4)
    trained = dg.load_result(tmp_path / "out" / "run", model).model
    with torch.no_grad():
        rows = trained(data.x_dict, data.edge_index_dict)
    torch.testing.assert_close(result.predict(), rows["paper"], rtol=1e-4, atol=1e-5)
    found = dg.predict(trained, data, 1, quiet=True)
    assert found.keys() == rows.keys()
    for kind, expected in rows.items():
        torch.testing.assert_close(found[kind], expected, rtol=1e-4, atol=1e-5)
    paths = dg.predict(trained, data, 1, quiet=True, out=tmp_path / "rows.npy")
    assert {kind: path.name for kind, path in paths.items()} == {kind: f"rows.{kind}.npy" for kind in rows}
    np.testing.assert_array_equal(np.load(paths["author"]), found["author"].numpy())
    dg.load_graph(data).save(tmp_path / "graph")
    torch.save(trained, tmp_path / "model.pt")
    load = f"torch.load({str(tmp_path / 'model.pt')!r}, weights_only=False)"
    (tmp_path / "typed_model.py").write_text(f"import torch\n\n\ndef make():\n    return {load}\n")
    words = ["predict", f"{tmp_path / 'typed_model.py'}:make", tmp_path / "graph", "--ranks", 1, "--quiet"]
    assert run(*words, "--out", tmp_path / "shell.csv")[0] == 0
    for kind, rows in found.items():
        table = np.loadtxt(tmp_path / f"shell.{kind}.csv", delimiter=",", skiprows=1, dtype=np.float32)
        np.testing.assert_array_equal(table[:, 1:], rows.numpy())
    code, _, err = run(*words, "--out", tmp_path / "other.csv", "--classes", "--layers", "convs")
    assert code == 2 and "layers, classes: of graphs of one type, and this one has 2: leave it out" in err
    data["author"].x = data["author"].x + 1
    with torch.no_grad():
        moved = trained(data.x_dict, data.edge_index_dict)["paper"]
    torch.testing.assert_close(result.predict(data), moved, rtol=1e-4, atol=1e-5)
    folds = dg.fit(data, model, 1, epochs=1, folds=3, quiet=True)
    assert len(folds) == 3 and len({one.test_metric for one in folds}) > 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target": "ship"}, "there is no type 'ship': target is one of paper, author"),
        ({"target": "author"}, "the graph has no labels|needs labels"),
        ({"algorithm": "cd-2"}, "relations are exchanged exactly and whole"),
        ({"wire": "int8"}, "relations are exchanged exactly and whole"),
        ({"dtype": "bfloat16"}, "leave bfloat16 out"),
        ({"feat_norm": "standardize"}, "leave feat_norm out"),
        ({"inductive": True}, "leave inductive out"),
        ({"task": "link"}, "not link"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_types_do_not_go_with_is_refused_before_ranks_start(data, model, options, says):
    with pytest.raises(InputError, match=says):
        dg.fit(data, model, 1, epochs=1, quiet=True, **options)


def test_a_dict_by_type_needs_types():
    graph = {"edge_index": np.array([[0, 1, 2], [1, 2, 0]]), "x": np.ones((3, 2), np.float32), "y": np.arange(3)}
    with pytest.raises(InputError, match="forward takes x_dict, and the graph has one type"):
        dg.fit(graph, Flat(), 1, epochs=1, split=(1, 0, 0))
