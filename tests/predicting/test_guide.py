"""The scripts of the guide's page on predicting give the rows of the plain model."""

import runpy
from pathlib import Path

import pytest
import torch

import distgnn as dg
from distgnn.system.other_libraries import import_dgl

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "predicting.md").read_text()
BLOCKS = """
import torch
from dgl.nn import SAGEConv


class Net(torch.nn.Module):
    def __init__(self, width, hidden, classes):
        super().__init__()
        self.layers = torch.nn.ModuleList([SAGEConv(width, hidden, "mean"), SAGEConv(hidden, classes, "mean")])
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, blocks, x):
        for place, (layer, block) in enumerate(zip(self.layers, blocks)):
            x = layer(block, (x, x[: block.num_dst_nodes()]))
            if place != len(self.layers) - 1:
                x = self.dropout(torch.relu(x))
        return x
"""


def test_scripts_of_the_page(tmp_path, monkeypatch):
    geometric = pytest.importorskip("torch_geometric")
    import_dgl()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DISTGNN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "my_model.py").write_text(BLOCKS)
    for name in ("from_pyg", "from_dgl", "from_lightning"):
        script = PAGE.split(f"```python\n# {name}.py\n")[1].split("```")[0]
        (tmp_path / f"{name}.py").write_text(script.replace("ranks=2", "ranks=1, quiet=True"))
    net = geometric.nn.GraphSAGE(64, 16, 2, 10)
    net.convs[0].lin_l.weight.data *= 2
    state = net.state_dict()
    torch.save(state, "sage.pt")
    torch.save({"epoch": 1, "state_dict": {f"net.{name}": one for name, one in state.items()}}, "last.ckpt")
    trained = runpy.run_path("my_model.py")["Net"](64, 16, 10).eval()
    torch.save(trained.state_dict(), "net.pt")
    data = dg.load_graph("communities:nodes=2000")
    graph, plain = data.to_dgl(), data.to_pyg()
    with torch.no_grad():
        of_pyg = net.eval()(plain.x, plain.edge_index)
        of_dgl = trained([graph, graph], graph.ndata["feat"])
    for name, wanted in (("from_pyg", of_pyg), ("from_dgl", of_dgl), ("from_lightning", of_pyg)):
        torch.testing.assert_close(runpy.run_path(f"{name}.py")["rows"], wanted, rtol=1e-5, atol=1e-5)
