"""What DGL and PyG save: one graph is read, nothing in a file is run."""

import numpy as np
import pytest
import torch

from distgnn.datasets import load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import GraphFormatError, InputError
from distgnn.system.other_libraries import import_dgl

PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [1, 3]])


def test_graphs_of_pyg_are_read_without_running_them(tmp_path):
    pyg = pytest.importorskip("torch_geometric.data")
    data = pyg.Data(x=torch.ones(4, 2), edge_index=torch.from_numpy(PAIRS.T.copy()), y=torch.arange(4))
    torch.save(data, tmp_path / "data.pt")
    torch.save((data.to_dict(), None, pyg.Data), tmp_path / "processed.pt")
    for name in ("data.pt", "processed.pt"):
        found = Findings()
        graph = load_graph(str(tmp_path / name), findings=found)
        assert (graph.edges.tolist(), graph.num_feats, graph.num_classes) == (PAIRS.tolist(), 2, 4)
        assert "4 vertices, 5 edges (5 arcs), directed" in found.lines()[0]
    torch.save((data.edge_index, data.x), tmp_path / "tuple.pt")
    assert load_graph(str(tmp_path / "tuple.pt"), findings=Findings()).num_feats == 2
    for graphs in ([data, data], (data, data)):
        torch.save(graphs, tmp_path / "two.pt")
        for source in (graphs, str(tmp_path / "two.pt")):
            with pytest.raises((InputError, GraphFormatError), match="has 2 graphs: give one of them"):
                load_graph(source)
    torch.save({"edge_index": data.edge_index, "run": Evil(tmp_path / "ran")}, tmp_path / "evil.pt")
    with pytest.raises(GraphFormatError, match=r"evil\.pt: is not read, as that could run code"):
        load_graph(str(tmp_path / "evil.pt"))
    assert not (tmp_path / "ran").exists()


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_graphs_of_dgl(tmp_path):
    dgl = import_dgl()
    graph = dgl.graph((PAIRS[:, 0], PAIRS[:, 1]))
    graph.ndata["feat"], graph.edata["w"] = torch.ones(4, 2), torch.arange(5.0)
    dgl.save_graphs(str(tmp_path / "one.bin"), [graph])
    dgl.save_graphs(str(tmp_path / "two.bin"), [graph, graph])
    read = load_graph(str(tmp_path / "one.bin"), findings=Findings())
    assert (read.edges.tolist(), read.num_feats, read.edge_weight.tolist()) == (PAIRS.tolist(), 2, [0, 1, 2, 3, 4])
    (tmp_path / "cut.bin").write_bytes((tmp_path / "one.bin").read_bytes()[:200])
    for name, says in (("two.bin", "holds 2 graphs"), ("cut.bin", "damaged or not the expected file .magicNum")):
        with pytest.raises((InputError, GraphFormatError), match=says):
            load_graph(str(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [("broken.pt", "no zip", "damaged|is not read"), ("other.bin", "no graph", r"no file of dgl\.save_graphs")],
)
def test_what_is_no_such_file_is_one_line(name, content, says, refused):
    refused(name, content, says)
