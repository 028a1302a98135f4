"""Arcs of several relations in one sum: for a transformation per relation, made once per group and not per arc.

    y_t[v] = x_t[v] W_t + b_t + sum over relations r into t of (sum over arcs (u -> v) of r of weight[arc] x_s[u]) W_r

A graph of one vertex set with a relation for each arc is the case of one type s = t. Rows of a type travel once for all
relations from it, and what all relations send to a target is added before it travels.

Legend: O owned rows of a type, S / T its source and target halos, A arcs, G groups (pairs of relation and target copy
with an arc), R relations, I columns in, D columns out.

Groups stand in the order of relations, and are worked off in chunks: one chunk's sums [g, I] and products [g, D] are
there at a time, and nothing is stored for the backward pass. It makes sums again, chunk by chunk, for the gradients of
W_r. Sums of constant rows are kept, as `spmm` keeps them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.errors import InputError
from distgnn.ops.aggregation.halo import onto_owners, with_halos
from distgnn.ops.edges.on_arcs import check_update
from distgnn.ops.edges.relation_groups import Chunk, End, Groups, Rows
from distgnn.ops.function import Function, GraphView, operator
from distgnn.ops.remote_rows import RowLookup
from distgnn.ops.rowwise.products import weight_gradient, write_product
from distgnn.ops.rowwise.sparse_rows import dense
from distgnn.ops.sums import min_over_ranks

LEAST_GROUPS = 1 << 14  # of a chunk, where there are as many
SHARE = 4  # a chunk has this share of the rows of its sources, or LEAST_GROUPS
COUNTED = 16  # relations whose arcs are counted over all ranks at a time
FULL = 0.7  # of the targets with an arc: from here on those without one are groups, too


class RelationArcs:
    """The groups of a rank's arcs, of one graph whose arcs have relations, or of graphs between types (`of_types`).

    Args:
        graph: update on owners.
        relations: relation of every local arc, int64 [A].
        num_relations: R.
        weight: of every local arc, [A] or [A, 1], constant; "mean": one over the number of arcs of the same relation at
            the same target, in the whole graph; None: 1.

    Example:
        >>> arcs = dg.ops.RelationArcs(graph, graph.edata["etype"], 2)
        >>> arcs.convolve(graph.feats, [torch.ones(8, 4)] * 2).shape
        torch.Size([60, 4])
    """

    @operator
    def __init__(
        self, graph: GraphView, relations: torch.Tensor, num_relations: int, weight: torch.Tensor | str | None = None
    ):
        check_update(graph)
        known = not len(relations) or (int(relations.min()) >= 0 and int(relations.max()) < num_relations)
        if not min_over_ranks(graph.comm, int(known)):
            raise InputError(f"relations of arcs run from 0 to {num_relations - 1}, and there are others")
        ends, num_targets = graph.local_arcs.ends, max(graph.local_arcs.num_copies["target"], 1)
        keys = relations.numpy().astype(np.int64) * num_targets + ends["target"]
        found, group_of_arc = np.unique(keys, return_inverse=True)
        bounds = np.searchsorted(found, np.arange(num_relations + 1, dtype=np.int64) * num_targets)
        indptr, indices, order = kernels.csr_from_edges(ends["source"], group_of_arc, len(found))
        groups = Groups((0, 0), range(num_relations), bounds, indptr, indices, (found % num_targets).astype(np.int32))
        if isinstance(weight, torch.Tensor):
            groups.weight = weight.detach().reshape(-1).numpy()[order]
            first = groups.weight[indptr[:-1]]
            if np.array_equal(groups.weight, np.repeat(first, np.diff(indptr))):
                groups.weight, groups.scale = None, first
        elif weight == "mean":
            groups.scale = 1 / _whole_counts(graph, groups)
        self._finish(graph, [End.of_graph(graph, "source")], [End.of_graph(graph, "target")], [groups])

    def _finish(self, graph: GraphView, sources: list[End], targets: list[End], groups: list[Groups]) -> None:
        self.pairs: list[tuple[int, int]] = [one.ends for one in groups for _ in one.relations]
        self.graph, self.sources, self.targets = graph, sources, targets
        self.chunks: list[Chunk] = []
        self._num_groups = [0] * len(sources)
        for one in groups:
            source, target = one.ends
            copies = sources[source].num_copies, targets[target].num_copies
            size = max(copies[0] // SHARE, LEAST_GROUPS)
            self.chunks += one.chunks(size, self._num_groups[source], copies)
            self._num_groups[source] += len(one.targets)

    @classmethod
    def of_types(cls, relations: Sequence[Any], means: Sequence[bool], kinds: Sequence[Any]) -> "RelationArcs":
        """Of graphs between types (`Relation`): the mean over the arcs of each target, or their sum. Collective: yes.

        Args: kinds: spaces of types; rows of them are what goes in, and what comes out.
        """
        made, graph = cls.__new__(cls), relations[0]
        numbers = {id(space): number for number, space in enumerate(kinds)}
        ends: dict[str, list[End]] = {}
        copies: list[dict[str, np.ndarray]] = [dict(one.local_arcs.ends) for one in relations]
        for role in ("source", "target"):
            ends[role] = []
            for space in kinds:
                chosen = [number for number, one in enumerate(relations) if one.space_at(role) is space]
                lookup = None
                if chosen and graph.num_ranks > 1:
                    places = [relations[number].ids_at(role)[copies[number][role]] for number in chosen]
                    lookup = RowLookup(space, np.concatenate(places))
                    found = np.split(lookup.places.numpy().astype(np.int32), np.cumsum([len(one) for one in places]))
                    for number, of_arcs in zip(chosen, found, strict=False):
                        copies[number][role] = of_arcs
                ends[role].append(End.of_type(space, lookup))
        groups = []
        for number, (one, is_mean) in enumerate(zip(relations, means, strict=True)):
            pair = numbers[id(one.source)], numbers[id(one.target)]
            at, count = copies[number], ends["target"][pair[1]].num_copies
            indptr, indices, order = kernels.csr_from_edges(at["source"], at["target"], count)
            degrees = np.diff(indptr)
            full = np.count_nonzero(degrees) >= FULL * count
            targets = np.arange(count) if full else np.flatnonzero(degrees)
            indptr = indptr if full else np.append(indptr[targets], indptr[-1])
            bounds = np.array([0, len(targets)])
            groups.append(Groups(pair, [number], bounds, indptr, indices, targets.astype(np.int32)))
            if is_mean:
                scale = one.degree_scale("in", -1)
                by_arc = np.concatenate([scale.owned, scale.targets])[one.local_arcs.ends["target"]][order]
                first = np.append(by_arc, 0.0)[indptr[:-1]]  # a group without arcs is the last, or has any factor
                groups[-1].scale = first
        made._finish(graph, ends["source"], ends["target"], groups)
        return made

    @operator
    def convolve(self, rows: Rows, weights: Sequence[Rows], own: Rows | None = None, bias: Rows | None = None) -> Rows:
        """y [O, D] from rows [O, I] of one vertex set. Collective: yes, and backward.

        Args: weights: [I, D] of each relation; own: W_t [I, D]; bias: b_t [D].
        """
        found: Any = self.by_type([rows], weights, [own], [bias])[0]
        return found

    def by_type(
        self,
        rows: Sequence[Rows | None],
        weights: Sequence[Rows],
        own: Sequence[Rows | None],
        biases: Sequence[Rows | None],
    ) -> list[Rows | None]:
        """`convolve` of rows by type, with a matrix and a bias for each type. Collective: yes, and backward.

        Args: rows: None of a type from which no arc leaves. Returns: None for a type without relations into it, and
            without a matrix of its own.
        """
        rows = [None if one is None else dense(one).contiguous() for one in rows]
        self._check(rows, weights, own, biases)
        kept = [self._kept(number, one) for number, one in enumerate(rows)]
        return list(_Convolve.apply(self, kept, *rows, *weights, *own, *biases))

    def _check(self, rows: Sequence[Any], weights: Sequence[Any], own: Sequence[Any], biases: Sequence[Any]) -> None:
        """Raise ValueError where widths do not fit, on every rank."""
        given = [*zip(self.pairs, weights, strict=True), *(((n, n), one) for n, one in enumerate(own))]
        made = [(target, len(bias)) for target, bias in enumerate(biases) if bias is not None]
        for (source, target), weight in given:
            if weight is not None:
                made.append((target, weight.shape[1]))
                if rows[source] is None or rows[source].shape[1] != weight.shape[0]:
                    found = None if rows[source] is None else rows[source].shape[1]
                    raise ValueError(f"rows are {found} wide, and the matrix of a relation takes {weight.shape[0]}")
        if len(dict(made)) != len(set(made)):
            raise ValueError("the matrices of relations into one type, its own and its bias differ in width")

    def parts(self, given: Sequence[Any]) -> list[Sequence[Any]]:
        """(rows, weights, own weights, biases) of what `_Convolve` is given, one behind the other."""
        ends = np.cumsum([0, len(self.sources), len(self.pairs), len(self.sources), len(self.sources)]).tolist()
        return [given[first:last] for first, last in pairwise(ends)]

    def spread(self, number: int, rows: Rows | None, role: str = "source") -> Rows | None:
        """Rows of a type at all copies that relations have at one end. Collective: yes."""
        end = (self.sources if role == "source" else self.targets)[number]
        return end.spread(rows) if rows is not None and self._has_relation(role, number) else rows

    def add(self, role: str, number: int, copies: Rows | None) -> Rows | None:
        """The transpose of `spread`. Collective: yes."""
        end = (self.sources if role == "source" else self.targets)[number]
        return end.add(copies) if copies is not None and self._has_relation(role, number) else copies

    def _has_relation(self, role: str, number: int) -> bool:
        return any(pair[role == "target"] == number for pair in self.pairs)

    def sums(self, chunk: Chunk, copies: Sequence[Any], kept: Sequence[Any]) -> Rows:
        """Sums of a chunk's groups, [g, I], made of source copies unless they are kept."""
        known = kept[chunk.source]
        if known is not None:
            return known[chunk.kept]
        like = copies[chunk.source]
        return chunk.sums(like, self.graph.buffers.empty(len(chunk.targets), like.shape[1], like.dtype))

    def _kept(self, number: int, rows: Rows | None) -> Rows | None:
        """The sums of constant rows over all groups of a source type, where they are kept; else None."""
        if rows is None or rows.requires_grad:
            return None

        def compute(keep: bool) -> Any:
            if not keep:
                return None
            copies: Any = self.spread(number, rows)
            out = rows.new_empty(self._num_groups[number], rows.shape[1])
            for chunk in self.chunks:
                if chunk.source == number:
                    chunk.sums(copies, out[chunk.kept])
            return out

        return self.graph.constants.get(rows, None, (self, number), compute)


def _whole_counts(graph: GraphView, groups: Groups) -> np.ndarray:
    """Arcs of each group on all ranks, float64 [G]. Collective: yes."""
    counts = np.diff(groups.indptr).astype(np.float64)
    if graph.num_ranks == 1:
        return counts
    for first in range(0, len(groups.relations), COUNTED):
        bounds = groups.bounds[first : first + COUNTED + 1]
        here = slice(int(bounds[0]), int(bounds[-1]))
        places = groups.targets[here], np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        copies = np.zeros((graph.local_arcs.num_copies["target"], len(bounds) - 1))
        copies[places] = counts[here]
        counts[here] = with_halos(graph, onto_owners(graph, copies, "target"), "target")[places]
    return counts


class _Convolve(Function):
    @staticmethod
    def forward(ctx: Any, arcs: RelationArcs, kept: list, *given: Any) -> tuple:
        ctx.set_materialize_grads(False)
        rows, weights, own, biases = arcs.parts(given)
        graph, halos = arcs.graph, []
        copies: list[Any] = [None] * len(rows)
        for number, one in enumerate(rows):
            copies[number] = arcs.spread(number, one) if kept[number] is None else None
        for one, end in zip(copies, arcs.sources, strict=True):
            is_more = one is not None and len(one) > end.num_owned
            halos.append(one[end.num_owned :].clone() if is_more else None)
        ctx.arcs, ctx.kept, ctx.halos = arcs, kept, halos
        ctx.save_for_backward(*given)
        outs: list[Any] = []
        for number, end in enumerate(arcs.targets):
            into = [weights[one].shape[1] for one, pair in enumerate(arcs.pairs) if pair[1] == number]
            into += [] if own[number] is None else [own[number].shape[1]]
            like = next(one for one in rows if one is not None)
            out = graph.buffers.empty(end.num_copies, into[0], like.dtype) if into else None
            outs.append(None if out is None else _begin(graph, out, end.num_owned, rows[number], own[number]))
            if out is not None and biases[number] is not None:
                out[: end.num_owned] += biases[number]
        for chunk in arcs.chunks:
            sums = arcs.sums(chunk, copies, kept)
            chunk.add_products(graph, sums, weights, outs[chunk.target])
            del sums
        return tuple(arcs.add("target", number, one) for number, one in enumerate(outs))

    @staticmethod
    def backward(ctx: Any, *given_grads: Any) -> tuple:
        arcs, kept, graph = ctx.arcs, ctx.kept, ctx.arcs.graph
        given = ctx.saved_tensors
        rows, weights, own, biases = arcs.parts(given)
        needs = arcs.parts(ctx.needs_input_grad[2:])
        grads: list[Any] = [None if one is None else one.contiguous() for one in given_grads]
        of_weights: list[Any] = [
            None if grads[pair[1]] is None else torch.zeros_like(weight)
            for pair, weight in zip(arcs.pairs, weights, strict=True)
        ]
        of_own = [
            None if one is None or grads[number] is None else weight_gradient(graph, rows[number], grads[number])
            for number, one in enumerate(own)
        ]
        of_biases = [
            None if one is None or bias is None else one.sum(0) for one, bias in zip(grads, biases, strict=True)
        ]
        at_copies = [arcs.spread(number, one, "target") for number, one in enumerate(grads)]
        copies = [one if halo is None else torch.cat([one, halo]) for one, halo in zip(rows, ctx.halos, strict=True)]
        of_rows: list[Any] = []
        for number, end in enumerate(arcs.sources):
            reached = any(grads[pair[1]] is not None for pair in arcs.pairs if pair[0] == number)
            if needs[0][number] and (reached or of_own[number] is not None):
                out = graph.buffers.empty(end.num_copies, rows[number].shape[1], rows[number].dtype)
                turned = None if of_own[number] is None else own[number].T
                of_rows.append(_begin(graph, out, end.num_owned, grads[number], turned))
            else:
                of_rows.append(None)
        for chunk in arcs.chunks:
            if grads[chunk.target] is None:
                continue
            at_groups = chunk.at_groups(graph, at_copies[chunk.target])
            sums = arcs.sums(chunk, copies, kept)
            for number, span in chunk.spans:
                of_weights[number] += weight_gradient(graph, sums[span], at_groups[span])
            out = of_rows[chunk.source]
            if out is not None:
                made = sums if kept[chunk.source] is None and sums.shape == at_groups.shape else torch.empty_like(sums)
                for number, span in chunk.spans:
                    write_product(graph, at_groups[span], weights[number].T, made[span])
                chunk.add_to_sources(made, out)
                del made
            del sums, at_groups
        found = [arcs.add("source", number, one) for number, one in enumerate(of_rows)]
        return None, None, *found, *of_weights, *of_own, *of_biases


def _begin(graph: GraphView, out: Rows, num_owned: int, rows: Any, weight: Rows | None) -> Rows:
    """Write rows [O, A] times a weight [A, B] to owned copies, and 0 to others; without a weight 0 to all: `out`."""
    if weight is None:
        return out.zero_()
    write_product(graph, rows, weight, out[:num_owned])
    out[num_owned:].zero_()
    return out
