"""Plain models are compiled, traced and exported as before functions of ours stood in front of PyG's."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.graph.face.row_graph import with_rows

pytest.importorskip("torch_geometric")
from torch_geometric.nn import GCNConv, SAGEConv, global_mean_pool
from torch_geometric.utils import softmax


class Scripted(torch.nn.Module):
    """What TorchScript compiles of PyG: layers whose forward pass and whose functions are replaced."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = GCNConv(8, 8), SAGEConv(8, 8, "max"), GCNConv(8, 4)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        x = self.third(self.second(self.first(x, edge_index), edge_index).relu(), edge_index)
        return global_mean_pool(softmax(x, batch, None, 2), batch, 2)


TAKEN = {
    "script": lambda model, given: torch.jit.script(model),
    "trace": lambda model, given: torch.jit.trace(model, given),
    "export": lambda model, given: torch.export.export(model, given).module(),
    "one graph": lambda model, given: torch.compile(model, backend="eager", fullgraph=True),
}


@pytest.mark.mpi(2)
@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_plain_models_are_compiled_as_before_a_graph_was_loaded(comm):
    source = random_graph(3)
    graph, part = with_rows(dist_graph(source, comm)), dist_graph(random_graph(5, 400), comm)  # of refused rows
    GCNConv(8, 4).double()(graph.x, graph.edge_index).sum().backward()
    if comm.rank:  # nothing below is of several ranks, and compiling takes seconds
        return
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = Scripted().double().eval()
    data = source.to_pyg()
    given = data.x.double(), data.edge_index, (torch.arange(60) > 20).long()
    for name, take in TAKEN.items():
        torch.testing.assert_close(take(model, given)(*given), model(*given), rtol=1e-12, atol=1e-12, msg=name)
    assert part.num_owned > 60  # rows, and more than exported models have
