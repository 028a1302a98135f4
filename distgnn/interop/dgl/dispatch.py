"""Where DGL itself must be told of a DistGraph: `dgl.ops`, `edge_softmax` and `dgl.reverse`.

Most of DGL asks the graph and needs no change. The operators of `dgl.ops`, `edge_softmax` among them, hand
`graph._graph` to C code instead. A DistGraph's `_graph` is an `Index` without C data; asked for the first time, it puts
a dispatcher in front of the names below, which sends an `Index` to us and everything else on to DGL. So do readouts
and products by type, which hand rows to C code. A process that never gives a DistGraph to DGL has DGL as it was.
"""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

from distgnn.comm import Transport
from distgnn.errors import InputError
from distgnn.interop.in_front import put_in_front
from distgnn.interop.sum_of_relations import Term, are_rows, summed
from distgnn.ops.edges import messages
from distgnn.ops.edges.softmax import edge_softmax
from distgnn.ops.function import is_alone, is_seen, multiplies, runs_as
from distgnn.rows.align import local_in
from distgnn.rows.row_tensor import RowTensor, local_of, rows_of


def index_of(graph: Any) -> Any:
    """The graph index that DGL's operators get for a DistGraph."""
    _dispatch_in_dgl()
    return _index_class()(graph)


def _gspmm(index: Any, op: str, reduce: str, lhs: Any, rhs: Any) -> torch.Tensor:
    if not index.reversed:
        found = messages.gspmm(index.graph, op, reduce, lhs, rhs)
        if reduce == "sum" or not index.num_edges():
            return found
        # Extremes as `dgl.ops` has them where there is no in-arc: infinite, but 0 where the graph has none at all
        # (`update_all` has 0 in both cases).
        alone = (index.graph.in_degrees() == 0).view(-1, *[1] * (found.dim() - 1))
        return found.masked_fill(alone, -torch.inf if reduce == "max" else torch.inf)
    return messages.gspmm(index.graph, op, reduce, lhs, rhs, "source")


def _gsddmm(index: Any, op: str, lhs: Any, rhs: Any, lhs_target: str, rhs_target: str) -> torch.Tensor:
    swapped = {"u": "v", "v": "u", "e": "e"} if index.reversed else {"u": "u", "v": "v", "e": "e"}
    return messages.gsddmm(index.graph, op, lhs, rhs, swapped[lhs_target], swapped[rhs_target])


def _softmax(index: Any, logits: torch.Tensor, eids: Any = "__ALL__", norm_by: str = "dst") -> torch.Tensor:
    if not isinstance(eids, str):
        raise InputError("edge_softmax over some edges cannot run distributed: leave eids out")
    if index.reversed:
        norm_by = {"dst": "src", "src": "dst"}[norm_by]
    return edge_softmax(index.graph, logits, norm_by)


def _softmax_of_types(index: Any, eids: Any, norm_by: str, *logits: torch.Tensor) -> Any:
    """Over the arcs of all relations at each vertex; logits in the order of `canonical_etypes`."""
    if not isinstance(eids, str):
        raise InputError("edge_softmax over some edges cannot run distributed: leave eids out")
    return index.graph.softmax_of_relations(logits, norm_by)


def _to_homogeneous(graph: Any, *arguments: Any, **options: Any) -> Any:
    """Of a graph with types; a graph of one type is refused as others are."""
    if not hasattr(graph, "homogeneous"):
        return _refused("to_homogeneous")(graph)
    return graph.homogeneous(*arguments, **options)


def _typed_linear(self: Any, x: Any, x_type: Any, sorted_by_type: bool = False) -> Any:
    """TypedLinear of rows of all ranks, which are sorted on no rank."""
    if not sorted_by_type or not isinstance(x, RowTensor):
        return NotImplemented
    return type(self).forward(self, x, x_type)


def _hetero_graph_conv(self: Any, g: Any, inputs: Any, mod_args: Any = None, mod_kwargs: Any = None) -> Any:
    """HeteroGraphConv over SAGEConv and GraphConv, summed: one exchange for the rows of each type."""
    if not hasattr(g, "relations_of") or not isinstance(inputs, dict) or mod_args or torch.is_autocast_enabled("cpu"):
        return NotImplemented
    adds: Any = importlib.import_module("dgl.nn.pytorch.hetero").get_aggregate_fn("sum")
    if getattr(self.agg_fn, "keywords", None) != adds.keywords:
        return NotImplemented
    terms = []
    for key in g.canonical_etypes:
        if key[0] not in inputs:
            continue
        if key[2] not in inputs:
            return NotImplemented
        layer, named = self.mod_dict.get(key, self.mod_dict.get(key[1])), (mod_kwargs or {}).get(key[1], {})
        term = None if layer is None else _term(key, g.relations_of[key].plain, layer, named)
        if term is None or not are_rows([inputs[kind] for kind in term.ends], term.weight.dtype):
            return NotImplemented
        terms.append(term)
    if not terms:
        return NotImplemented
    trail = vars(g.plain).get("trail")
    run = functools.partial(summed, terms)
    found: dict[str, Any] = run(inputs) if trail is None else trail.run("HeteroGraphConv", run, (inputs,), {})
    return {kind: found[kind] for kind in g.dsttypes if kind in found}


def _term(key: tuple[str, str, str], relation: Any, layer: Any, named: dict[str, Any]) -> Term | None:
    """SAGEConv of means, or GraphConv of sums or means, without dropped features and without edge weights."""
    layers = importlib.import_module("dgl.nn.pytorch.conv")
    ends = key[0], key[2]
    if is_seen(layer) or not runs_as(layer, layers.SAGEConv, layers.GraphConv):
        return None
    if type(layer) is layers.SAGEConv and not named:
        is_mean = hasattr(layer, "fc_self") and not hasattr(layer, "fc_pool") and not hasattr(layer, "lstm")
        drops = layer.training and layer.feat_drop.p > 0
        if not is_mean or drops or layer.norm is not None or layer.activation is not None:
            return None
        own = layer.fc_self
        if not (multiplies(own) and multiplies(layer.fc_neigh) and is_alone(layer.feat_drop)):
            return None
        return Term(ends, relation, layer.fc_neigh.weight.T, True, own.weight.T, own.bias)
    if type(layer) is layers.GraphConv and named.keys() <= {"weight"}:
        words = layer.extra_repr()
        norm = next((one for one in ("right", "none") if f"normalization={one}" in words), None)
        weight = named.get("weight", layer.weight)
        ordinary = type(weight) in (torch.Tensor, torch.nn.Parameter)
        if norm is None or not ordinary or "activation=None" not in words:
            return None
        return Term(ends, relation, weight, norm == "right", None, layer.bias)
    return None


OVER_ROWS: dict[str, Callable[..., Any]] = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}


def _segment(lengths: torch.Tensor, rows: RowTensor, reducer: str = "sum") -> Any:
    """A readout of the one graph, or its softmax."""
    if len(lengths) != 1:
        raise InputError(
            f"rows of all ranks in {len(lengths)} segments cannot run distributed: use dg.ops.readout, or one graph"
        )
    return rows.softmax(0) if reducer == "softmax" else OVER_ROWS[reducer](rows, 0, keepdim=True)


def _gather_mm(rows: RowTensor, matrices: torch.Tensor, *, idx_b: torch.Tensor) -> RowTensor:
    """Each row times the matrix of its type: row by row."""
    types = local_in(idx_b, rows.row_space, 0, "gather_mm")
    found = sys.modules["dgl.ops"].gather_mm(rows.inner, local_of(matrices), idx_b=types)
    return rows_of(found, rows.row_space)


def _segment_mm(*arguments: Any, **options: Any) -> NoReturn:
    raise InputError("rows of all ranks are not sorted by type: leave presorted (segment_mm) out, or use gather_mm")


OF_INDEX: dict[tuple[str, str], Callable[..., Any]] = {
    ("dgl.ops.spmm", "gspmm_internal"): _gspmm,
    ("dgl.ops.sddmm", "gsddmm_internal"): _gsddmm,
    ("dgl.ops.edge_softmax", "edge_softmax_internal"): _softmax,
    ("dgl.ops.edge_softmax", "edge_softmax_hetero_internal"): _softmax_of_types,
}
OF_ROWS: dict[tuple[str, str], Callable[..., Any]] = {
    ("dgl.ops.segment", "segment_reduce"): _segment,
    ("dgl.ops.segment", "segment_softmax"): functools.partial(_segment, reducer="softmax"),
    ("dgl.ops.segment", "segment_mm"): _segment_mm,
    ("dgl.nn.pytorch.linear", "segment_mm"): _segment_mm,
    ("dgl.ops", "gather_mm"): _gather_mm,
    ("dgl.nn.pytorch.linear", "gather_mm"): _gather_mm,
}
EXACT = ("reverse", "batch_graphs")  # functions of a graph that ask it for what it has
READOUTS = ("readout", "sum", "mean", "max", "softmax", "broadcast")  # of nodes and edges: `sum_nodes`, …
BEFORE = {  # what a graph is made with, before it is cut
    "add_self_loop": "distgnn partition --self-loops add, and leave this line out",
    "remove_self_loop": "distgnn partition --self-loops remove, or add where each gets one next: leave this line out",
    **dict.fromkeys(
        ("to_bidirected", "add_reverse_edges"), "distgnn partition --direction both, and leave this line out"
    ),
}


def tell_dgl() -> None:
    """Put our functions in front of DGL's, once, where DGL is loaded."""
    if "dgl" in sys.modules:
        _dispatch_in_dgl()


@functools.cache
def _dispatch_in_dgl() -> None:
    for place, ours in OF_INDEX.items():
        _put_before(place, ours, lambda arguments: isinstance(arguments[0], _index_class()))
    for place, ours in OF_ROWS.items():
        _put_before(place, ours, lambda arguments: any(isinstance(one, RowTensor) for one in arguments[:2]))
    found = {}  # functions of `dgl` and `dgl.sampling` that need the structure of a real graph
    for module in ("dgl", "dgl.sampling"):
        for name, one in vars(importlib.import_module(module)).items():
            made_for = getattr(one, "__module__", "")
            allowed = name in EXACT or name.split("_")[0] in READOUTS or made_for.startswith(("dgl.ops", "dgl.backend"))
            if inspect.isfunction(one) and made_for.startswith("dgl.") and not name.startswith("_") and not allowed:
                found[name] = one
    for name, theirs in found.items():
        for place_of in [one for key, one in sys.modules.items() if key == "dgl" or key.startswith("dgl.")]:
            if vars(place_of).get(name) is theirs:
                ours = _to_homogeneous if name == "to_homogeneous" else _refused(name)
                _put_before((place_of.__name__, name), ours, _has_graph)
    put_in_front(importlib.import_module("dgl.nn.pytorch.linear").TypedLinear, "forward", _typed_linear)
    put_in_front(importlib.import_module("dgl.nn.pytorch").HeteroGraphConv, "forward", _hetero_graph_conv)


def _refused(name: str) -> Callable[..., Any]:
    advice = BEFORE.get(name, "prepare it before it is cut (GraphData.from_dgl, distgnn partition)")

    def refuse(*arguments: Any, **options: Any) -> Any:
        if name == "remove_self_loop" and hasattr(arguments[0], "has_self_loops") and not arguments[0].has_self_loops():
            return arguments[0].clone()  # there is none: what DGL gives
        raise InputError(f"dgl.{name} needs a whole graph, and a rank has its own arcs only: {advice}")

    return refuse


def _has_graph(arguments: tuple[Any, ...]) -> bool:
    graphs = arguments[0] if arguments else None
    graphs = graphs if isinstance(graphs, list | tuple) else [graphs]
    return any(isinstance(getattr(one, "transport", None), Transport) for one in graphs)


def _put_before(place: tuple[str, str], ours: Callable[..., Any], is_ours: Callable[[tuple[Any, ...]], bool]) -> None:
    """Send calls whose arguments are ours to `ours`, all others to what stands there."""

    def answer(*arguments: Any, **options: Any) -> Any:
        return ours(*arguments, **options) if is_ours(arguments) else NotImplemented

    put_in_front(importlib.import_module(place[0]), place[1], answer)


@functools.cache
def _index_class() -> type[Any]:
    """`Index`: a DGL graph index without C data, so that nothing in DGL can take it for a graph of its own."""
    from dgl import ndarray
    from dgl.heterograph_index import HeteroGraphIndex

    class Index(HeteroGraphIndex):
        def __new__(cls, graph: Any, is_reversed: bool = False) -> Any:
            return HeteroGraphIndex.__new__(cls)

        def __init__(self, graph: Any, is_reversed: bool = False):
            self.graph, self.reversed = graph, is_reversed

        dtype = "int64"
        ctx = ndarray.cpu(0)
        metagraph = SimpleNamespace(find_edge=lambda etype: (0, 0))  # one edge type, between the one vertex type

    def turned(index: Any) -> Any:
        if len(index.graph.ntypes) > 1:
            raise InputError(
                "dgl.reverse of a relation between two types cannot run distributed: use the relation that leads back; "
                "distgnn partition --direction both makes one"
            )
        return Index(index.graph, not index.reversed)

    answers: dict[str, Callable[..., Any]] = {
        "number_of_ntypes": lambda index: len(index.graph.ntypes),
        "number_of_etypes": lambda index: len(index.graph.canonical_etypes),
        **dict.fromkeys(("num_nodes", "number_of_nodes"), lambda index, ntype=0: index.graph.num_nodes()),
        **dict.fromkeys(("num_edges", "number_of_edges"), lambda index, etype=0: index.graph.num_edges()),
        "get_relation_graph": lambda index, etype: index,
        "is_pinned": lambda index: False,
        "reverse": turned,
    }

    def refuse(name: str, self: Any) -> NoReturn:
        raise InputError(
            f"DGL asks for {name!r} of a graph that is spread over ranks: use update_all, apply_edges, edge_softmax "
            "and degrees, or the layers of distgnn.nn"
        )

    for name in answers.keys() | (vars(HeteroGraphIndex).keys() - vars(Index).keys()):
        if not name.startswith("__"):
            setattr(Index, name, answers.get(name) or property(functools.partial(refuse, name)))
    return Index
