"""Every layer, norm and model of `torch_geometric.nn` that runs without compiled extras."""

import torch
import torch_geometric.nn as gnn
from layer_cases import Function, add_layer
from torch import nn
from worlds import EDGE_WIDTH, NUM_CLASSES, RELATIONS, WIDTH

OUT = 6
DEGREES = torch.tensor([5, 3, 8, 9, 12, 7, 6, 4, 2, 1])
PNA = {"aggregators": ["mean", "min", "max", "std"], "scalers": ["identity", "amplification", "attenuation"]}


def plain(layer, s, x):
    return layer(x, s.g.edge_index)


def weighted(layer, s, x):
    return layer(x, s.g.edge_index, s.g.edge_weight)


def with_attr(layer, s, x):
    return layer(x, s.g.edge_index, s.g.edge_attr)


def with_type(layer, s, x):
    return layer(x, s.g.edge_index, s.g.edge_type)


def with_first(layer, s, x):
    return layer(x, x, s.g.edge_index)


def with_pos(layer, s, x):
    return layer(x, x[:, :3], s.g.edge_index)


def alone(layer, s, x):
    return layer(x)


def by_batch(layer, s, x):
    return layer(x, torch.zeros(s.num_nodes, dtype=torch.long))


def one_batch(layer, s, x):
    return layer(x, s.g.edge_index, torch.zeros(s.num_nodes).long())


def linear(width=WIDTH, out=OUT):
    return nn.Linear(width, out)


def mlp(width=WIDTH, out=OUT):
    return nn.Sequential(nn.Linear(width, OUT), nn.ReLU(), nn.Linear(OUT, out))


def normed(width=WIDTH, out=OUT):
    return nn.Sequential(nn.Linear(width, out), nn.BatchNorm1d(out), nn.ReLU())


CONVS = {
    "SimpleConv": (lambda: gnn.SimpleConv("mean", combine_root="sum"), weighted),
    "SimpleConv cat": (lambda: gnn.SimpleConv("max", combine_root="cat"), plain),
    "GCNConv": (lambda: gnn.GCNConv(WIDTH, OUT), plain),
    "GCNConv weighted": (lambda: gnn.GCNConv(WIDTH, OUT, improved=True), weighted),
    "GCNConv cached": (lambda: gnn.GCNConv(WIDTH, OUT, cached=True), weighted),
    "GCNConv not normalised": (lambda: gnn.GCNConv(WIDTH, OUT, normalize=False), weighted),
    "GCNConv reversed": (lambda: gnn.GCNConv(WIDTH, OUT, flow="target_to_source"), plain),
    "ChebConv": (lambda: gnn.ChebConv(WIDTH, OUT, 3), plain),
    "ChebConv rw": (
        lambda: gnn.ChebConv(WIDTH, OUT, 2, normalization="rw"),
        lambda m, s, x: m(x, s.g.edge_index, lambda_max=1.5),
    ),
    "SAGEConv": (lambda: gnn.SAGEConv(WIDTH, OUT), plain),
    "SAGEConv max": (lambda: gnn.SAGEConv(WIDTH, OUT, "max", normalize=True), plain),
    "SAGEConv project": (lambda: gnn.SAGEConv(WIDTH, OUT, "sum", project=True, root_weight=False), plain),
    "SAGEConv pair": (lambda: gnn.SAGEConv((WIDTH, WIDTH), OUT), lambda m, s, x: m((x, x.tanh()), s.g.edge_index)),
    "GraphConv": (lambda: gnn.GraphConv(WIDTH, OUT), weighted),
    "GraphConv max": (lambda: gnn.GraphConv(WIDTH, OUT, "max"), plain),
    "GatedGraphConv": (lambda: gnn.GatedGraphConv(WIDTH, 2), weighted),
    "ResGatedGraphConv": (lambda: gnn.ResGatedGraphConv(WIDTH, OUT), plain),
    "ResGatedGraphConv edges": (lambda: gnn.ResGatedGraphConv(WIDTH, OUT, edge_dim=EDGE_WIDTH), with_attr),
    "GATConv": (lambda: gnn.GATConv(WIDTH, 3, 2), plain),
    "GATConv edges": (lambda: gnn.GATConv(WIDTH, 3, 2, edge_dim=EDGE_WIDTH, residual=True), with_attr),
    "GATConv mean": (lambda: gnn.GATConv(WIDTH, OUT, 2, concat=False, fill_value="max"), plain),
    "GATConv attention": (
        lambda: gnn.GATConv(WIDTH, 3, 2),
        lambda m, s, x: m(x, s.g.edge_index, return_attention_weights=True)[0],
    ),
    "GATv2Conv": (lambda: gnn.GATv2Conv(WIDTH, 3, 2), plain),
    "GATv2Conv edges": (lambda: gnn.GATv2Conv(WIDTH, 3, 2, edge_dim=EDGE_WIDTH, share_weights=True), with_attr),
    "TransformerConv": (lambda: gnn.TransformerConv(WIDTH, 3, 2, beta=True), plain),
    "TransformerConv edges": (lambda: gnn.TransformerConv(WIDTH, 3, 2, edge_dim=EDGE_WIDTH), with_attr),
    "AGNNConv": (lambda: gnn.AGNNConv(), plain),
    "TAGConv": (lambda: gnn.TAGConv(WIDTH, OUT, 2), weighted),
    "GINConv": (lambda: gnn.GINConv(mlp(), train_eps=True), plain),
    "GINConv norm": (lambda: gnn.GINConv(normed()), plain),
    "GINEConv": (lambda: gnn.GINEConv(mlp(), edge_dim=EDGE_WIDTH), with_attr),
    "ARMAConv": (lambda: gnn.ARMAConv(WIDTH, OUT, 2, 2), plain),
    "SGConv": (lambda: gnn.SGConv(WIDTH, OUT, 2), plain),
    "SGConv cached": (lambda: gnn.SGConv(WIDTH, OUT, 2, cached=True), lambda m, s, x: m(x.detach(), s.g.edge_index)),
    "SSGConv": (lambda: gnn.SSGConv(WIDTH, OUT, 0.1, 2), plain),
    "APPNP": (lambda: gnn.APPNP(3, 0.1), plain),
    "MFConv": (lambda: gnn.MFConv(WIDTH, OUT), plain),
    "RGCNConv": (lambda: gnn.RGCNConv(WIDTH, OUT, RELATIONS, num_bases=2), with_type),
    "RGCNConv blocks": (lambda: gnn.RGCNConv(WIDTH, OUT, RELATIONS, num_blocks=2, aggr="sum"), with_type),
    "RGCNConv max": (lambda: gnn.RGCNConv(WIDTH, OUT, RELATIONS, aggr="max"), with_type),
    "FastRGCNConv": (lambda: gnn.FastRGCNConv(WIDTH, OUT, RELATIONS), with_type),
    "RGATConv": (lambda: _rgat(WIDTH, OUT, RELATIONS), with_type),
    "RGATConv edges": (
        lambda: _rgat(WIDTH, 3, RELATIONS, num_bases=2, heads=2, edge_dim=EDGE_WIDTH),
        lambda m, s, x: m(x, s.g.edge_index, s.g.edge_type, s.g.edge_attr),
    ),
    "RGATConv within relations": (
        lambda: _rgat(WIDTH, OUT, RELATIONS, attention_mechanism="within-relation"),
        with_type,
    ),
    "SignedConv": (
        lambda: gnn.SignedConv(WIDTH, 3, first_aggr=True),
        lambda m, s, x: m(x, s.g.edge_index[:, s.g.edge_type == 0], s.g.edge_index[:, s.g.edge_type == 1]),
    ),
    "DNAConv": (lambda: gnn.DNAConv(WIDTH, 2), lambda m, s, x: m(torch.stack([x, x.tanh()], 1), s.g.edge_index)),
    "PointNetConv": (lambda: gnn.PointNetConv(linear(WIDTH + 3), linear(OUT)), with_pos),
    "GMMConv": (lambda: gnn.GMMConv(WIDTH, OUT, EDGE_WIDTH, 3), with_attr),
    "NNConv": (lambda: gnn.NNConv(WIDTH, OUT, linear(EDGE_WIDTH, WIDTH * OUT), aggr="mean"), with_attr),
    "CGConv": (lambda: gnn.CGConv(WIDTH, EDGE_WIDTH), with_attr),
    "CGConv norm": (lambda: gnn.CGConv(WIDTH, EDGE_WIDTH, batch_norm=True), with_attr),
    "EdgeConv": (lambda: gnn.EdgeConv(mlp(2 * WIDTH)), plain),
    "EdgeConv norm": (lambda: gnn.EdgeConv(normed(2 * WIDTH), aggr="mean"), plain),
    "PPFConv": (
        lambda: gnn.PPFConv(linear(WIDTH + 4), linear(OUT)),
        lambda m, s, x: m(x, x[:, :3], x[:, 3:6], s.g.edge_index),
    ),
    "FeaStConv": (lambda: gnn.FeaStConv(WIDTH, OUT, 2), plain),
    "PointTransformerConv": (lambda: gnn.PointTransformerConv(WIDTH, OUT), with_pos),
    "HypergraphConv": (lambda: gnn.HypergraphConv(WIDTH, OUT), plain),
    "LEConv": (lambda: gnn.LEConv(WIDTH, OUT), weighted),
    "PNAConv": (lambda: gnn.PNAConv(WIDTH, OUT, deg=DEGREES, **PNA), plain),
    "PNAConv edges": (lambda: gnn.PNAConv(WIDTH, OUT, deg=DEGREES, edge_dim=EDGE_WIDTH, towers=2, **PNA), with_attr),
    "ClusterGCNConv": (lambda: gnn.ClusterGCNConv(WIDTH, OUT, diag_lambda=0.1), plain),
    "GENConv": (lambda: gnn.GENConv(WIDTH, OUT, learn_t=True, edge_dim=EDGE_WIDTH, norm="layer"), with_attr),
    "GENConv norm": (lambda: gnn.GENConv(WIDTH, OUT, msg_norm=True), plain),
    "GENConv power": (lambda: gnn.GENConv(WIDTH, OUT, "powermean", learn_p=True, norm="layer"), plain),
    "GCN2Conv": (lambda: gnn.GCN2Conv(WIDTH, 0.1, 0.5, 1), with_first),
    "GCN2Conv separate": (lambda: gnn.GCN2Conv(WIDTH, 0.1, 0.5, 1, shared_weights=False), with_first),
    "WLConv": (lambda: gnn.WLConv(), lambda m, s, x: m(s.y, s.g.edge_index)),
    "WLConvContinuous": (lambda: gnn.WLConvContinuous(), weighted),
    "FiLMConv": (lambda: gnn.FiLMConv(WIDTH, OUT), plain),
    "FiLMConv relations": (lambda: gnn.FiLMConv(WIDTH, OUT, RELATIONS), with_type),
    "SuperGATConv": (lambda: gnn.SuperGATConv(WIDTH, 3, 2).eval(), plain),
    "FAConv": (lambda: gnn.FAConv(WIDTH, 0.2), with_first),
    "EGConv": (lambda: gnn.EGConv(WIDTH, OUT, ["symnorm", "mean", "max"], num_heads=3, num_bases=2), plain),
    "EGConv std": (lambda: gnn.EGConv(WIDTH, OUT, ["std", "var", "min"], num_heads=3, num_bases=2), plain),
    "PDNConv": (lambda: gnn.PDNConv(WIDTH, OUT, EDGE_WIDTH, 4), with_attr),
    "GeneralConv": (lambda: gnn.GeneralConv(WIDTH, OUT, attention=True, heads=2, skip_linear=True), plain),
    "GeneralConv edges": (lambda: gnn.GeneralConv(WIDTH, OUT, EDGE_WIDTH, l2_normalize=True), with_attr),
    "HGTConv": (
        lambda: gnn.HGTConv(WIDTH, OUT, (["a"], [("a", "to", "a")]), 2),
        lambda m, s, x: m({"a": x}, {("a", "to", "a"): s.g.edge_index}),
    ),
    "HEATConv": (
        lambda: gnn.HEATConv(WIDTH, 3, 2, RELATIONS, 2, EDGE_WIDTH, 2, heads=2),
        lambda m, s, x: m(x, s.g.edge_index, s.g.node_type, s.g.edge_type, s.g.edge_attr),
    ),
    "HeteroConv": (
        lambda: gnn.HeteroConv({("a", "to", "a"): gnn.SAGEConv(WIDTH, OUT)}),
        lambda m, s, x: m({"a": x}, {("a", "to", "a"): s.g.edge_index}),
    ),
    "HANConv": (
        lambda: gnn.HANConv(WIDTH, OUT, (["a"], [("a", "to", "a")]), 2),
        lambda m, s, x: m({"a": x}, {("a", "to", "a"): s.g.edge_index}),
    ),
    "LGConv": (lambda: gnn.LGConv(), weighted),
    "PointGNNConv": (lambda: gnn.PointGNNConv(mlp(WIDTH, 3), mlp(WIDTH + 3), mlp(OUT, WIDTH)), with_pos),
    "GPSConv": (lambda: gnn.GPSConv(WIDTH, gnn.GCNConv(WIDTH, WIDTH), 2, norm="layer_norm"), plain),
    "GPSConv norm": (lambda: gnn.GPSConv(WIDTH, gnn.GCNConv(WIDTH, WIDTH), 2), plain),
    "GPSConv performer": (
        lambda: gnn.GPSConv(WIDTH, gnn.GINConv(linear(WIDTH, WIDTH)), 2, attn_type="performer"),
        plain,
    ),
    "GPSConv without attention": (lambda: gnn.GPSConv(WIDTH, None, 2, norm=None), plain),
    "AntiSymmetricConv": (lambda: gnn.AntiSymmetricConv(WIDTH, num_iters=2), plain),
    "DirGNNConv": (lambda: gnn.DirGNNConv(gnn.SAGEConv(WIDTH, OUT)), plain),
    "DirGNNConv gcn": (lambda: gnn.DirGNNConv(gnn.GCNConv(WIDTH, OUT), alpha=0.3), plain),
    "MixHopConv": (lambda: gnn.MixHopConv(WIDTH, 3, [0, 1, 2]), plain),
    "MeshCNNConv": (lambda: gnn.MeshCNNConv(WIDTH, OUT), plain),
}
NORMS = {
    "BatchNorm": (lambda: gnn.BatchNorm(WIDTH), alone),
    "BatchNorm one element": (lambda: gnn.BatchNorm(WIDTH, allow_single_element=True), alone),
    "InstanceNorm": (lambda: gnn.InstanceNorm(WIDTH, affine=True), alone),
    "InstanceNorm statistics": (lambda: gnn.InstanceNorm(WIDTH, track_running_stats=True), alone),
    "LayerNorm graph": (lambda: gnn.LayerNorm(WIDTH), alone),
    "LayerNorm node": (lambda: gnn.LayerNorm(WIDTH, mode="node"), alone),
    "LayerNorm by batch": (lambda: gnn.LayerNorm(WIDTH), by_batch),
    "GraphNorm": (lambda: gnn.GraphNorm(WIDTH), alone),
    "GraphNorm by batch": (lambda: gnn.GraphNorm(WIDTH), by_batch),
    "GraphSizeNorm": (lambda: gnn.GraphSizeNorm(), alone),
    "PairNorm": (lambda: gnn.PairNorm(), alone),
    "PairNorm individually": (lambda: gnn.PairNorm(scale_individually=True), alone),
    "MeanSubtractionNorm": (lambda: gnn.MeanSubtractionNorm(), alone),
    "MessageNorm": (lambda: gnn.MessageNorm(True), lambda m, s, x: m(x, x.tanh())),
    "DiffGroupNorm": (lambda: gnn.DiffGroupNorm(WIDTH, 3), alone),
    "HeteroBatchNorm": (lambda: gnn.HeteroBatchNorm(WIDTH, 2), lambda m, s, x: m(x, s.g.node_type)),
    "HeteroLayerNorm": (lambda: gnn.HeteroLayerNorm(WIDTH, 2), lambda m, s, x: m(x, s.g.node_type)),
    "inside a sequence": (
        lambda: gnn.Sequential(
            "x, e",
            [(gnn.GCNConv(WIDTH, 8), "x, e -> x"), (gnn.BatchNorm(8), "x -> x"), nn.ReLU(inplace=True), linear(8)],
        ),
        plain,
    ),
    "under names of one's own": (lambda: _Wrapped(gnn.PairNorm()), alone),
}


def _rgat(*widths, **options):
    """RGATConv, whose parameter l2 PyG leaves as it finds the memory."""
    layer = gnn.RGATConv(*widths, **options)
    nn.init.constant_(layer.l2, 0.3)
    return layer


class _Wrapped(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norms = nn.ModuleDict({"first": norm, "second": nn.BatchNorm1d(WIDTH)})
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.norms["second"](self.norms["first"](x) * self.scale)


def _jump(mode):
    def run(first, second, jump, x, edge_index):
        hidden = first(x, edge_index).relu()
        return jump([hidden, second(hidden, edge_index)])

    return Function(run, gnn.GCNConv(WIDTH, 8), gnn.GCNConv(8, 8), gnn.JumpingKnowledge(mode, 8, 2))


class _Meta(nn.Module):
    """MetaLayer with models of edges, vertices and the whole."""

    def __init__(self):
        super().__init__()
        edges, nodes, whole = nn.Linear(2 * WIDTH + EDGE_WIDTH, 4), nn.Linear(WIDTH + 4, OUT), nn.Linear(OUT, 2)

        class Edges(nn.Module):
            def forward(self, src, dst, attr, u, batch):
                return edges(torch.cat([src, dst, attr], 1))

        class Nodes(nn.Module):
            def forward(self, x, edge_index, attr, u, batch):
                from torch_geometric.utils import scatter

                return nodes(torch.cat([x, scatter(attr, edge_index[1], 0, x.size(0), reduce="mean")], 1))

        class Whole(nn.Module):
            def forward(self, x, edge_index, attr, u, batch):
                return whole(x.mean(0, keepdim=True))

        self.edges, self.nodes, self.whole = edges, nodes, whole
        self.meta = gnn.MetaLayer(Edges(), Nodes(), Whole())

    def forward(self, x, edge_index, attr):
        x, attr, u = self.meta(x, edge_index, attr)
        return x * u.mean()


MODELS = {
    "MLP": (lambda: gnn.MLP([WIDTH, 8, OUT]), alone),
    "MLP no norm": (lambda: gnn.MLP([WIDTH, 8, OUT], norm=None, act="elu"), alone),
    "GCN": (lambda: gnn.GCN(WIDTH, 8, 2, OUT, norm="batch_norm"), weighted),
    "GraphSAGE": (lambda: gnn.GraphSAGE(WIDTH, 8, 3, OUT, jk="cat"), plain),
    "GIN": (lambda: gnn.GIN(WIDTH, 8, 2, OUT), plain),
    "GAT": (lambda: gnn.GAT(WIDTH, 8, 2, OUT, v2=True, heads=2), plain),
    "PNA": (lambda: gnn.PNA(WIDTH, 8, 2, OUT, deg=DEGREES, **PNA), plain),
    "EdgeCNN": (lambda: gnn.EdgeCNN(WIDTH, 8, 2, OUT), plain),
    "JumpingKnowledge cat": (lambda: _jump("cat"), plain),
    "JumpingKnowledge max": (lambda: _jump("max"), plain),
    "JumpingKnowledge lstm": (lambda: _jump("lstm"), plain),
    "MetaLayer": (_Meta, with_attr),
    "InnerProductDecoder": (lambda: gnn.InnerProductDecoder(), lambda m, s, x: m(x, s.ids.pos)),
    "InnerProductDecoder all": (lambda: gnn.InnerProductDecoder(), lambda m, s, x: m.forward_all(x)),
    "InnerProductDecoder arcs": (lambda: gnn.InnerProductDecoder(), plain),
    "GraphUNet": (lambda: gnn.GraphUNet(WIDTH, 8, OUT, 2), plain),
    "DeepGCNLayer res+": (lambda: gnn.DeepGCNLayer(gnn.GENConv(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU()), plain),
    "DeepGCNLayer dense": (
        lambda: gnn.DeepGCNLayer(gnn.GCNConv(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(inplace=True), "dense"),
        plain,
    ),
    "DeepGCNLayer recomputed": (
        lambda: gnn.DeepGCNLayer(gnn.GCNConv(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU(), ckpt_grad=True),
        plain,
    ),
    "LabelPropagation": (lambda: gnn.LabelPropagation(3, 0.8), lambda m, s, x: m(s.y, s.g.edge_index, s.train_mask)),
    "LabelPropagation ids": (lambda: gnn.LabelPropagation(3, 0.8), lambda m, s, x: m(s.y, s.g.edge_index, s.ids.train)),
    "LabelPropagation rows": (lambda: gnn.LabelPropagation(3, 0.8), lambda m, s, x: m(x.softmax(1), s.g.edge_index)),
    "CorrectAndSmooth": (lambda: _smooth(False), lambda m, s, x: _correct_and_smooth(m, s, x, s.train_mask)),
    "CorrectAndSmooth autoscale": (lambda: _smooth(True), lambda m, s, x: _correct_and_smooth(m, s, x, s.train_mask)),
    "CorrectAndSmooth ids": (lambda: _smooth(True), lambda m, s, x: _correct_and_smooth(m, s, x, s.ids.train)),
    "AttentiveFP": (
        lambda: gnn.AttentiveFP(WIDTH, 8, OUT, EDGE_WIDTH, 2, 2),
        lambda m, s, x: m(x, s.g.edge_index, s.g.edge_attr, torch.zeros(s.num_nodes).long()),
    ),
    "RECT_L": (lambda: gnn.RECT_L(WIDTH, 8), plain),
    "LINKX": (lambda: gnn.LINKX(61, WIDTH, 8, OUT, 2, 1, 1), plain),
    "LINKX weighted": (lambda: gnn.LINKX(61, WIDTH, 8, OUT, 2), weighted),
    "LightGCN": (lambda: gnn.LightGCN(61, 8, 2), lambda m, s, x: m.get_embedding(s.g.edge_index)),
    "LightGCN ranking": (lambda: gnn.LightGCN(61, 8, 2), lambda m, s, x: m(s.g.edge_index, s.ids.pos).view(-1, 1)),
    "MaskLabel": (lambda: gnn.MaskLabel(NUM_CLASSES, WIDTH), lambda m, s, x: m(x, s.y, s.train_mask)),
    "MaskLabel concat": (lambda: gnn.MaskLabel(NUM_CLASSES, 4, "concat"), lambda m, s, x: m(x, s.y, s.train_mask)),
    "GroupAddRev": (lambda: gnn.GroupAddRev(gnn.GCNConv(4, 4), num_groups=2), lambda m, s, x: m(x * 1, s.g.edge_index)),
    "PMLP": (lambda: gnn.PMLP(WIDTH, 8, OUT, 2), plain),
    "PMLP evaluated": (lambda: gnn.PMLP(WIDTH, 8, OUT, 2).eval(), plain),
    "NeuralFingerprint": (lambda: gnn.NeuralFingerprint(WIDTH, 8, OUT, 2), plain),
    "SGFormer": (lambda: gnn.SGFormer(WIDTH, 8, OUT, 1, 1, 0.0, 1, 0.0), one_batch),
    "Polynormer": (
        lambda: gnn.Polynormer(WIDTH, 8, OUT, 2, 1, in_dropout=0.0, dropout=0.0, global_dropout=0.0, heads=2),
        one_batch,
    ),
    "SignedGCN": (
        lambda: gnn.SignedGCN(WIDTH, 8, 2),
        lambda m, s, x: m(x, s.g.edge_index[:, s.g.edge_type == 0], s.g.edge_index[:, s.g.edge_type == 1]),
    ),
    "Linear": (lambda: gnn.Linear(WIDTH, OUT), alone),
    "Linear lazy": (lambda: _lazy(), plain),
    "HeteroLinear": (lambda: gnn.HeteroLinear(WIDTH, OUT, 2), lambda m, s, x: m(x, s.g.node_type)),
    "DenseGCNConv": (lambda: gnn.DenseGCNConv(WIDTH, OUT), lambda m, s, x: m(x, _dense(s))),
    "DenseSAGEConv": (lambda: gnn.DenseSAGEConv(WIDTH, OUT), lambda m, s, x: m(x, _dense(s))),
    "DMoNPooling": (lambda: gnn.DMoNPooling(WIDTH, 3, 0.0), lambda m, s, x: m(x.unsqueeze(0), _dense(s))[1]),
    "dense_diff_pool": (
        lambda: Function(gnn.dense_diff_pool),
        lambda m, s, x: m(x.unsqueeze(0), _dense(s), x[:, :3].unsqueeze(0)),
    ),
    "PositionalEncoding": (lambda: gnn.PositionalEncoding(6), lambda m, s, x: m(x[:, 0])),
}


def _lazy():
    layer = gnn.SAGEConv(-1, OUT)
    layer(torch.zeros(2, WIDTH), torch.zeros(2, 0, dtype=torch.long))
    return layer


def _dense(s):
    from torch_geometric.utils import to_dense_adj

    return to_dense_adj(s.g.edge_index, max_num_nodes=s.num_nodes)


def _smooth(autoscale):
    return gnn.CorrectAndSmooth(3, 0.8, 3, 0.7, autoscale=autoscale, scale=0.9)


def _correct_and_smooth(layer, s, x, mask):
    soft = x[:, :NUM_CLASSES].detach().softmax(1)
    soft = layer.correct(soft, s.y[mask], mask, s.g.edge_index)
    return layer.smooth(soft, s.y[mask], mask, s.g.edge_index)


for name, (make, call) in (CONVS | MODELS).items():
    add_layer("pyg", name, make, call)
for name, (make, call) in NORMS.items():
    add_layer("pyg", f"norm {name}", make, call, "whole, in place, mask, ids, no gradient")
