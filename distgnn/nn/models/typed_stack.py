"""Models by name of typed graphs: a linear layer for each type in front, a table where a type has no features, layers
over relations, and logits of the type that the task is on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from distgnn.config import ModelConfig
from distgnn.errors import InputError, on_all_ranks
from distgnn.nn.conv.typed_convs import HGTConv, Key, RelationalConv, RelationalGATConv, Rows
from distgnn.nn.dropout import Dropout
from distgnn.nn.models.around import make_norms
from distgnn.nn.node_embedding import NodeEmbedding


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
        rows |= {kind: table.weight.inner for kind, table in self.tables.items()}
        for layer, conv in enumerate(self.convs):
            rows = self._between(graph, layer - 1, rows) if layer else rows
            rows = rows | conv(graph, rows)  # HGTConv makes none of a type without arcs into it
        return rows[self.sizes.target]

    def _between(self, graph: Any, place: int, rows: Rows) -> Rows:
        norms: Any = self.norms[place]
        drop: Any = self.drops[place]
        made = {kind: (norms[kind](some) if kind in norms else some).relu() for kind, some in rows.items()}
        return {kind: drop.of_ids(some, graph[kind].vertex_space.draw_ids, graph.plain) for kind, some in made.items()}


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
