"""`dg.predict(…, pairs=…)`: scores of links are those of the plain model's decoder, in pieces, on ranks."""

import numpy as np
import pytest
import torch
from cut_graphs import random_graph

import distgnn as dg
from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition import partition_graph
from distgnn.predicting import pairs as pairs_file
from distgnn.predicting.on_rank import Job, predict_part
from distgnn.system.calls.packing import pack

WIDTH = 8
pyg = pytest.importorskip("torch_geometric").nn


class Links(torch.nn.Module):
    """As PyG's link examples write it. `way`: of the decoder."""

    def __init__(self, way="dot"):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.two = pyg.SAGEConv(WIDTH, 8), torch.nn.Linear(16, 3)
        self.way, self.drop = way, torch.nn.Dropout(0.5)

    def encode(self, x, edge_index):
        return self.drop(self.conv(x, edge_index))

    def decode(self, z, edge_label_index):
        a, b = z[edge_label_index[0]], z[edge_label_index[1]]
        if self.way == "classes":
            return self.two(self.drop(torch.cat([a, b], 1)))
        scores = (a * b).sum(-1)
        ways = {
            "softmax": lambda: scores.softmax(0),
            "all": lambda: scores - z.mean(),
            "draws": lambda: torch.nn.functional.dropout(scores),
            "one": lambda: scores.mean(),
            "log": lambda: scores.log(),
        }
        return ways.get(self.way, lambda: scores)()


def some_pairs(count=50):
    return np.random.default_rng(1).integers(0, 60, (count, 2))


def plain(model, source, ids):
    data = source.to_pyg()
    model.eval()
    with torch.no_grad():
        rows = model.encode(data.x.to(next(model.parameters()).dtype), data.edge_index)
        return model.decode(rows, torch.from_numpy(ids).t())


@pytest.mark.mpi(1, 3)
def test_scores_are_the_plain_decoders(comm, shared_tmp_path, monkeypatch):
    source, ids = random_graph(4, directed=True), some_pairs()
    np.save(shared_tmp_path / f"pairs-{comm.rank}.npy", ids)
    if comm.rank == 0:
        partition_graph(source, comm.size, shared_tmp_path / "parts", say=lambda line: None)
    models = {
        "dot": Links(),
        "classes": Links("classes").double(),
        "no numbers": Links("log"),
        "GAE": pyg.models.GAE(pyg.GCNConv(WIDTH, 4)),
        "VGAE": pyg.models.VGAE(Variational()),
    }
    wanted = {name: plain(model, source, ids).numpy() for name, model in models.items()}
    torch.manual_seed(0)
    models["ours"] = dg.nn.PairPredictor(dg.nn.GraphSAGE(WIDTH, 8, 8), dg.nn.PairDecoder("concat", 8))
    comm.Barrier()
    for largest in (7, 1 << 18):
        monkeypatch.setattr(pairs_file, "LARGEST", largest)
        for name, model in models.items():
            file = str(shared_tmp_path / "pairs-0.npy")
            folder, packed = str(shared_tmp_path), pack(model.train(), name)
            predict_part(Job(f"{folder}/parts", packed, (), folder, False, pairs=file))
            comm.Barrier()
            found = np.load(shared_tmp_path / "0.npy")
            limit = 1e-5 if found.dtype == np.float32 else 1e-9
            if name not in wanted:  # ours: of all pairs at once
                graph = dg.load(shared_tmp_path / "parts", say=None).plain
                model.eval()
                with torch.no_grad():
                    lookup = graph.look_up(ids)
                    wanted[name] = model.scores(lookup, model(graph, graph.feats)).numpy()
            assert found.dtype == wanted[name].dtype
            np.testing.assert_allclose(found, wanted[name], rtol=limit, atol=limit, err_msg=name)
            comm.Barrier()


class Variational(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.log = pyg.GCNConv(WIDTH, 4), pyg.GCNConv(WIDTH, 4)

    def forward(self, x, edge_index):
        return self.mu(x, edge_index), self.log(x, edge_index)


NAMES = np.array([f"v{place:02}" for place in range(60)])
BAD = {
    "none": (torch.nn.Linear(WIDTH, 2), some_pairs(), "pairs need a model with decode.*Linear has none"),
    "softmax": (Links("softmax"), some_pairs(), "decode gives a pair another score beside other pairs"),
    "all": (Links("all"), some_pairs(), "decode looks at rows of other vertices"),
    "draws": (Links("draws"), some_pairs(), "another score|draws random numbers"),
    "one number": (Links("one"), some_pairs(), r"decode gave \[\] for 50 pairs"),
    "an id": (Links(), [[0, 1], [3, 60]], "pairs: row 1 holds 60, and vertices are 0 to 59"),
    "a shape": (Links(), some_pairs().T, r"pairs has the shape \[2, 50\]: expected \[M, 2\]"),
    "a tensor": (Links(), torch.from_numpy(some_pairs()), r"pairs has the shape \[2, 50\].*tensor \[2, M\]"),
    "floats": (Links(), some_pairs() * 1.0, "pairs holds float64: expected ids"),
    "no pairs": (Links(), np.empty((0, 2), np.int64), "pairs has no pairs"),
    "no file": (Links(), "nowhere.npy", "nowhere.npy"),
    "names": (Links(), [["v01", "v02"]], "pairs holds names, and vertices have none"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_pairs(tmp_path, name):
    model, pairs, said = BAD[name]
    with pytest.raises(InputError, match=said) as caught:
        dg.predict(model, random_graph(4), ranks=1, quiet=True, pairs=pairs, out=tmp_path / "z.npy")
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


def test_pairs_in_and_tables_out(tmp_path):
    """Arrays, PyG's tensor, files of ids and of names: one answer, beside the pairs as they were given."""
    source, model, ids = random_graph(4), Links(), some_pairs(9)
    content = {name: getattr(source, name) for name in ("feats", "labels")}
    named = GraphData("named", 60, source.edges, source.directed, **content, node_names=NAMES)
    wanted = plain(model, source, ids)
    np.save(tmp_path / "ids.npy", ids)
    lines = ["a,b,more", *(f"{NAMES[a]},{NAMES[b]},x" for a, b in ids)]
    (tmp_path / "names.csv").write_text("\n".join(lines).replace("a,b", "source,target"))
    (tmp_path / "ids.tsv").write_text("\n".join(f"{a}\t{b}" for a, b in ids))
    given = [(source, one) for one in (ids, ids.tolist(), torch.from_numpy(ids).t(), tmp_path / "ids.npy")]
    given += [(source, tmp_path / "ids.tsv"), (named, tmp_path / "names.csv"), (named, NAMES[ids]), (named, ids)]
    for graph, pairs in given:
        torch.testing.assert_close(dg.predict(model, graph, ranks=1, quiet=True, pairs=pairs), wanted)
    dg.predict(model, named, ranks=1, quiet=True, pairs=tmp_path / "names.csv", out=tmp_path / "z.csv")
    head, *rows = (tmp_path / "z.csv").read_text().split()
    assert head == "source,target,output"
    assert [row.split(",")[:2] for row in rows] == NAMES[ids].tolist()
    np.testing.assert_allclose([float(row.split(",")[2]) for row in rows], wanted, rtol=1e-5)
    (tmp_path / "bad.csv").write_text("source,target\nv01,v02\nv01,eve\n")
    with pytest.raises(InputError, match=r"bad.csv: row 1 holds 'eve', which is no vertex"):
        dg.predict(model, named, ranks=1, quiet=True, pairs=tmp_path / "bad.csv")
