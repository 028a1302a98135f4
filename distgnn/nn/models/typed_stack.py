"""Layers over the relations of a typed graph (sums, attention, HGT), and the models by name that are made of them.

    conv(graph, rows)     rows by type [O_t, D] to rows by type [O_t, F] of the types that it makes

A model has a linear layer for each type in front, a table where a type has no features, and logits of the type that the
task is on. Each relation is a graph from one type to another with its own exchange (`distgnn/graph/relation.py`), and
the operators of `distgnn.ops` run on it: no row is written on an arc.

Legend: O_t owned rows of type t, A local arcs of a relation, H heads, F features per head, R relations, B bases.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

from distgnn import ops
from distgnn.config import ModelConfig
from distgnn.errors import InputError, on_all_ranks
from distgnn.nn.dropout import Dropout
from distgnn.nn.models.around import make_norms
from distgnn.nn.node_embedding import NodeEmbedding
from distgnn.ops.attention.over_types import attend_over_types
from distgnn.ops.function import multiplies

Key = tuple[str, str, str]
Rows = dict[str, torch.Tensor]


def word(relation: Key) -> str:
    """A relation as the name of a module."""
    return "__".join(relation)


class TypedConv(nn.Module):
    """Base: relations, and a linear layer of each type's own rows.

    Args: in_feats, out_feats: widths of all types; types, relations: of the graph, in its order; targets: types that
        rows are made of; None: all.
    """

    in_feats: int
    out_feats: int
    relations: list[Key]

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        types: Collection[str],
        relations: Collection[Key],
        targets: Collection[str] | None = None,
    ):
        super().__init__()
        wanted = types if targets is None else targets
        self.in_feats, self.out_feats = in_feats, out_feats
        self.relations = [one for one in relations if one[2] in wanted]
        self.loops: nn.ModuleDict = nn.ModuleDict(
            {kind: nn.Linear(in_feats, out_feats) for kind in types if kind in wanted}
        )

    def of_relation(self, graph: Any, number: int, rows: Rows) -> torch.Tensor:
        """What relation `number` sends to its targets, [O_t, out_feats]. Collective: yes, and backward."""
        raise NotImplementedError

    def forward(self, graph: Any, rows: Rows) -> Rows:
        out = {kind: loop(rows[kind]) for kind, loop in self.loops.items()}
        for number, relation in enumerate(self.relations):
            out[relation[2]] = out[relation[2]] + self.of_relation(graph[relation].plain, number, rows)
        return out


class RelationalConv(TypedConv):
    """y[v] = W_t x[v] + b_t + sum over relations r into t of W_r (mean over arcs (u -> v) of r of x[u]).

    Args: num_bases: matrices that relations share, W_r = sum over b of coeff[r, b] V_b; 0: each has its own.

    Notes: rows of a type travel once for all relations from it (`ops.RelationArcs`).

    Source: Schlichtkrull et al., ESWC'18, equation 2, with a matrix for each type's own rows.
    """

    def __init__(self, *sizes: Any, num_bases: int = 0, **options: Any):
        super().__init__(*sizes, **options)
        count, shape = num_bases or len(self.relations), (self.in_feats, self.out_feats)
        self.weight: nn.Parameter = nn.Parameter(torch.empty(count, *shape))
        self.coeff: nn.Parameter | None = None
        if num_bases:
            self.coeff = nn.Parameter(torch.empty(len(self.relations), num_bases))
            nn.init.xavier_uniform_(self.coeff, gain=nn.init.calculate_gain("relu"))
        nn.init.uniform_(self.weight, -1 / math.sqrt(self.in_feats), 1 / math.sqrt(self.in_feats))

    def weight_of(self, number: int) -> torch.Tensor:
        """The matrix of a relation, [in_feats, out_feats]."""
        if self.coeff is None:
            return self.weight[number]
        return torch.einsum("b,bio->io", self.coeff[number], self.weight)

    def forward(self, graph: Any, rows: Rows) -> Rows:
        graphs = [graph[one].plain for one in self.relations]
        kinds = list(dict.fromkeys([*self.loops, *(one[0] for one in self.relations)]))
        loops: list[Any] = [self.loops[kind] if kind in self.loops else None for kind in kinds]
        read = [loop if loop is not None and multiplies(loop) else None for loop in loops]
        own = [None if loop is None else loop.weight.T for loop in read]
        biases = [None if loop is None else loop.bias for loop in read]
        if not graphs:
            return {kind: loop(rows[kind]) for kind, loop in self.loops.items()}
        spaces = [graph[kind].vertex_space for kind in kinds]
        arcs = graphs[0].arcs_of(graphs, [True] * len(graphs), spaces)
        weights = [self.weight_of(number) for number in range(len(graphs))]
        made = arcs.by_type([rows[kind] for kind in kinds], weights, own, biases)
        out: dict[str, Any] = {kind: one for kind, one in zip(kinds, made, strict=True) if kind in self.loops}
        for kind, loop in self.loops.items():
            if read[kinds.index(kind)] is None:
                out[kind] = loop(rows[kind]) if out[kind] is None else out[kind] + loop(rows[kind])
        return out


class RelationalGATConv(TypedConv):
    """y[v] = W_t x[v] + b_t + sum over relations r into t of GAT_r: z = W_r x, and a softmax over the arcs of r
    into v of leaky_relu(<attn_l, z[u]> + <attn_r, z[v]>), head by head.

    Args: num_heads: H; mean: heads are averaged, else side by side, out_feats wide together.

    Notes: memory: O_s * H * F numbers and a few per arc and head, for each relation.

    Source: Veličković et al., ICLR'18; Busbridge et al., Relational Graph Attention Networks, 2019 (softmax within
        relations).
    """

    num_heads: int

    def __init__(self, *sizes: Any, num_heads: int = 1, mean: bool = False, **options: Any):
        super().__init__(*sizes, **options)
        self.num_heads, self.mean = num_heads, mean
        self.width: int = self.out_feats if mean else self.out_feats // num_heads
        wide, names = num_heads * self.width, [word(one) for one in self.relations]
        self.fc: nn.ModuleDict = nn.ModuleDict({name: nn.Linear(self.in_feats, wide, bias=False) for name in names})
        self.attn_l, self.attn_r = (
            nn.ParameterDict({name: nn.Parameter(torch.empty(1, num_heads, self.width)) for name in names})
            for _ in range(2)
        )
        for one in (*(layer.weight for layer in self.fc.values()), *self.attn_l.values(), *self.attn_r.values()):
            nn.init.xavier_normal_(one, gain=nn.init.calculate_gain("relu"))

    def of_relation(self, graph: Any, number: int, rows: Rows) -> torch.Tensor:
        source, _, target = self.relations[number]
        name = word(self.relations[number])
        fc: Any = self.fc[name]
        sent = fc(rows[source]).view(-1, self.num_heads, self.width)
        left = (sent * self.attn_l[name]).sum(-1)
        if multiplies(fc):
            weight = fc.weight.view(self.num_heads, self.width, self.in_feats)
            right = rows[target] @ torch.einsum("hfi,hf->ih", weight, self.attn_r[name][0])
        else:
            right = (fc(rows[target]).view(-1, self.num_heads, self.width) * self.attn_r[name]).sum(-1)
        scores = ops.to_arcs(graph, left, "source") + ops.to_arcs(graph, right, "target")
        attention = ops.edge_softmax(graph, functional.leaky_relu(scores, 0.2))
        out = ops.spmm_heads(graph, sent, attention)
        return out.mean(1) if self.mean else out.flatten(1)


class HGTConv(nn.Module):
    """The layer of heterogeneous graph transformers: keys and values per relation, queries per type, one softmax over
    the arcs of all relations into a vertex, and a gate for its own rows.

    Args: in_feats, out_feats: widths, or of input a dict by type; types, relations: of the graph; num_heads: H.

    Notes: parameters have PyG's names and shapes: `load_state_dict` takes those of `torch_geometric.nn.HGTConv`. The
        relations into a type share one exchange. Types without arcs into them get no rows, as in PyG.

    Source: Hu et al., WWW'20; `torch_geometric.nn.HGTConv` 2.8.
    """

    def __init__(
        self,
        in_feats: int | Mapping[str, int],
        out_feats: int,
        types: Collection[str],
        relations: Collection[Key],
        num_heads: int = 1,
    ):
        super().__init__()
        widths = in_feats if isinstance(in_feats, Mapping) else dict.fromkeys(types, in_feats)
        self.relations = list(relations)
        self.out_channels, self.heads, self.edge_types = out_feats, num_heads, self.relations  # PyG's names
        self.kqv_lin, self.out_lin = _ByType(), _ByType()
        self.kqv_lin.lins.update({kind: nn.Linear(widths[kind], 3 * out_feats) for kind in types})
        self.out_lin.lins.update({kind: nn.Linear(out_feats, out_feats) for kind in types})
        width, count = out_feats // num_heads, num_heads * len(self.edge_types)
        self.k_rel, self.v_rel = _Matrices(count, width), _Matrices(count, width)
        self.skip: nn.ParameterDict = nn.ParameterDict({kind: nn.Parameter(torch.ones(1)) for kind in types})
        self.p_rel: nn.ParameterDict = nn.ParameterDict(
            {word(one): nn.Parameter(torch.ones(1, num_heads)) for one in self.edge_types}
        )

    def forward(self, graph: Any, rows: Rows) -> Rows:
        """Collective: yes, and backward."""
        return attend_over_types(self, {key: graph[key].plain for key in self.edge_types}, rows)


class _ByType(nn.Module):
    """A linear layer for each type, under PyG's name."""

    def __init__(self) -> None:
        super().__init__()
        self.lins: nn.ModuleDict = nn.ModuleDict()


class _Matrices(nn.Module):
    """A square matrix for each head and relation, under PyG's name."""

    def __init__(self, count: int, width: int):
        super().__init__()
        bound = 1 / math.sqrt(width)
        self.weight: nn.Parameter = nn.Parameter(torch.empty(count, width, width).uniform_(-bound, bound))


@dataclass(frozen=True)
class TypedSizes:
    """What a model is for. Args: widths: of features by type, 0 without any; target: the type of its logits."""

    widths: Mapping[str, int]
    relations: Sequence[Key]
    target: str
    num_classes: int


class TypedStack(nn.Module):
    """Shared by the models of types: `make_conv` says which layer.

    x = relu(W_t x + b_t), or a learned row; then num_layers times a layer over relations, and between them norm, ReLU
    and dropout by type. The last layer makes rows of the target alone, and each layer those that the next one reads.

    Args:
        sizes: of the graph; table: makes the table of a type without features.
        hidden_feats, num_layers, dropout: as of other stacks; norm: "layer" or "none".

    Shape: features by type [O_t, D_t] to logits [O_target, num_classes].
    """

    config_name: ClassVar[str]

    def __init__(self, sizes: TypedSizes, table: Callable[[str], nn.Module], config: ModelConfig):
        super().__init__()
        if sizes.num_classes < 1:
            raise on_all_ranks(InputError("num_classes is 0: the type has no labels; give the width of the output"))
        self.sizes, self.config = sizes, config
        width, layers = config.hidden_feats, config.num_layers
        # From the last layer to the first: the types whose rows each layer makes
        reached = [{sizes.target}]
        for _ in range(layers):
            sources = {source for source, _, target in sizes.relations if target in reached[0]}
            reached.insert(0, reached[0] | sources)
        kinds = [[kind for kind in sizes.widths if kind in some] for some in reached]
        self.stems: nn.ModuleDict = nn.ModuleDict(
            {kind: nn.Linear(sizes.widths[kind], width) for kind in kinds[0] if sizes.widths[kind]}
        )
        self.tables: nn.ModuleDict = nn.ModuleDict({kind: table(kind) for kind in kinds[0] if not sizes.widths[kind]})
        self.convs: nn.ModuleList = nn.ModuleList()
        self.norms: nn.ModuleList = nn.ModuleList()
        for layer in range(layers):
            last = layer == layers - 1
            self.convs.append(self.make_conv(kinds[layer], kinds[layer + 1], last))
            if not last:
                made = make_norms(config.norm, width, len(kinds[layer + 1]))
                self.norms.append(nn.ModuleDict({} if made is None else dict(zip(kinds[layer + 1], made, strict=True))))
        self.drops: nn.ModuleList = nn.ModuleList(Dropout(config.dropout, site) for site in range(layers - 1))

    def make_conv(self, types: list[str], targets: list[str], last: bool) -> nn.Module:
        raise NotImplementedError

    def width_of(self, last: bool) -> int:
        return self.sizes.num_classes if last else self.config.hidden_feats

    def forward(self, graph: Any, feats: Rows) -> torch.Tensor:
        rows = {kind: stem(feats[kind]).relu() for kind, stem in self.stems.items()}
        rows |= {kind: table().inner for kind, table in self.tables.items()}
        for layer, conv in enumerate(self.convs):
            rows = self._between(graph, layer - 1, rows) if layer else rows
            rows = rows | conv(graph, rows)  # HGTConv makes none of a type without arcs into it
        return rows[self.sizes.target]

    def _between(self, graph: Any, place: int, rows: Rows) -> Rows:
        norms: Any = self.norms[place]
        drop: Any = self.drops[place]
        made = {kind: (norms[kind](some) if kind in norms else some).relu() for kind, some in rows.items()}
        return {kind: drop(some, graph.plain, graph[kind].vertex_space.draw_ids) for kind, some in made.items()}


class TypedRGCN(TypedStack):
    """Layers `RelationalConv`. Source: Schlichtkrull et al., ESWC'18."""

    config_name = "rgcn"

    def make_conv(self, types: list[str], targets: list[str], last: bool) -> nn.Module:
        sizes = self.config.hidden_feats, self.width_of(last)
        return RelationalConv(*sizes, types, self.sizes.relations, targets=targets, num_bases=self.config.num_bases)


class RGAT(TypedStack):
    """Layers `RelationalGATConv`; heads share the hidden width, the last layer averages them.

    Source: Busbridge et al., Relational Graph Attention Networks, 2019.
    """

    config_name = "rgat"

    def make_conv(self, types: list[str], targets: list[str], last: bool) -> nn.Module:
        sizes, options = (self.config.hidden_feats, self.width_of(last)), {"num_heads": self.config.num_heads}
        return RelationalGATConv(*sizes, types, self.sizes.relations, targets=targets, mean=last, **options)


class HGT(TypedStack):
    """Layers `HGTConv`, and a linear layer that reads the target's last rows. Source: Hu et al., WWW'20."""

    config_name = "hgt"

    def __init__(self, sizes: TypedSizes, table: Callable[[str], nn.Module], config: ModelConfig):
        super().__init__(sizes, table, config)
        self.read: nn.Linear = nn.Linear(config.hidden_feats, sizes.num_classes)

    def make_conv(self, types: list[str], targets: list[str], last: bool) -> nn.Module:
        width = self.config.hidden_feats
        relations = [one for one in self.sizes.relations if one[2] in targets]
        return HGTConv(width, width, types, relations, self.config.num_heads)

    def forward(self, graph: Any, feats: Rows) -> torch.Tensor:
        return self.read(super().forward(graph, feats))


TYPED_STACKS: dict[str, type[TypedStack]] = {one.config_name: one for one in (TypedRGCN, RGAT, HGT)}


def typed_model_for(config: ModelConfig, graph: Any, rows: Any, num_classes: int) -> TypedStack:
    """The stack that `config` describes for a `TypedGraph`.

    Collective: yes. Args: rows: of the task (`rows_of_task`).
    """
    config.check()
    sizes = TypedSizes(
        {kind: graph[kind].num_features for kind in graph.node_types}, graph.edge_types, rows.kind, num_classes
    )
    return TYPED_STACKS[config.name](sizes, lambda kind: NodeEmbedding(graph[kind], config.hidden_feats), config)
