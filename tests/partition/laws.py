"""Laws of the book, the local graphs and the plans of any cut."""

import numpy as np
import pytest

from distgnn.partition import PartitionBook, build_local
from distgnn.partition.core.local_graph import BLOCKS

from .graphs import arc_parts


def local_arcs(local):
    """(global source, global target) of each local arc, in local arc order."""
    ids, owned = local.global_ids, local.global_ids[: local.num_owned]
    sources, targets = [], []
    for name in BLOCKS:
        block = local.blocks[name]
        rows = np.repeat(np.arange(len(block.indptr) - 1), np.diff(block.indptr))
        targets.append((owned if name.startswith("owned") else ids[local.target_halo_rows])[rows])
        sources.append((owned if name.endswith("_owned") else ids[local.source_halo_rows])[block.indices])
    return np.concatenate(sources), np.concatenate(targets)


def roles(edges, cut):
    """Slow and obvious: sets of (vertex, part) with an arc from it and with an arc to it."""
    sources, targets, _ = edges.arcs()
    parts = arc_parts(edges, cut).tolist()
    return set(zip(sources.tolist(), parts, strict=True)), set(zip(targets.tolist(), parts, strict=True))


def built(edges, cut):
    """The book of a cut and all its local graphs."""
    book = PartitionBook(edges, cut)
    return book, [build_local(book, part) for part in range(cut.num_parts)]


def every_law(edges, cut):
    book, locals_ = built(edges, cut)
    check_rows(edges, cut, book, locals_)
    check_arcs(edges, cut, locals_)
    check_plans(locals_)
    check_measures(edges, cut, book, locals_)


def check_arcs(edges, cut, locals_):
    """Every arc is in the one part the cut names, between the right vertices, with its weight."""
    sources, targets, ids = edges.arcs()
    place = {arc: i for i, arc in enumerate(ids.tolist())}
    parts = arc_parts(edges, cut)
    seen = []
    for local in locals_:
        at = np.array([place[arc] for arc in local.arc_ids.tolist()], dtype=np.int64)
        np.testing.assert_array_equal(parts[at], local.part_id)
        got_sources, got_targets = local_arcs(local)
        np.testing.assert_array_equal(got_sources, sources[at])
        np.testing.assert_array_equal(got_targets, targets[at])
        if edges.edge_weight is not None:
            np.testing.assert_array_equal(local.edge_weight, edges.edge_weight[local.arc_ids % len(edges.src)])
        seen += local.arc_ids.tolist()
    assert sorted(seen) == ids.tolist()
    check_order_inside_rows(locals_)
    check_symmetry(locals_)


def check_rows(edges, cut, book, locals_):
    """[interior | boundary | halo by owner: source only, both, target only], each sorted by the owner's local row."""
    is_source, is_target = roles(edges, cut)
    order = cut.order if cut.order is not None else np.zeros(edges.num_nodes, dtype=np.int64)
    owned = np.concatenate([local.global_ids[: local.num_owned] for local in locals_])
    np.testing.assert_array_equal(np.sort(owned), np.arange(edges.num_nodes))
    in_degrees, out_degrees = edges.in_degrees(), edges.out_degrees()
    for local in locals_:
        part, ids = local.part_id, local.global_ids.tolist()
        present = {v for v, p in is_source | is_target if p == part} | set(np.flatnonzero(cut.owner == part).tolist())
        away = {v for v, p in is_source | is_target if p != cut.owner[v]}

        def key(v, part=part, away=away):
            if cut.owner[v] == part:
                return (0, v in away, 0, order[v], v)
            role = ((v, part) in is_target) + ((v, part) not in is_source)
            return (1, cut.owner[v], role, book.local_row[v], v)

        assert ids == sorted(present, key=key)
        assert local.num_owned == sum(cut.owner[v] == part for v in ids)
        assert local.num_interior == sum(cut.owner[v] == part and v not in away for v in ids)
        np.testing.assert_array_equal(local.in_degrees, in_degrees[local.global_ids])
        np.testing.assert_array_equal(local.out_degrees, out_degrees[local.global_ids])


def check_order_inside_rows(locals_):
    """Arcs of a row rise by (global id of the source, arc id)."""
    for local in locals_:
        sources, _ = local_arcs(local)
        done = 0
        for name in BLOCKS:
            for size in np.diff(local.blocks[name].indptr).tolist():
                keys = list(zip(sources[done : done + size], local.arc_ids[done : done + size], strict=True))
                assert keys == sorted(keys)
                done += size


def check_symmetry(locals_):
    """`symmetric` says exactly whether weighted arcs and their transposes are the same multiset."""
    for local in locals_:
        sources, targets = local_arcs(local)
        weights = np.ones(len(sources)) if local.edge_weight is None else local.edge_weight
        forward = sorted(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True))
        backward = sorted(zip(targets.tolist(), sources.tolist(), weights.tolist(), strict=True))
        assert local.symmetric == (forward == backward)
        if local.symmetric:
            np.testing.assert_array_equal(local.source_halo_rows, local.target_halo_rows)


def check_plans(locals_):
    """What p packs for q is what q's halos of p are, vertex by vertex; and the mirror for the reduce."""
    for owner in locals_:
        plan, back = owner.plan, owner.plan.transposed()
        for holder in locals_:
            halos, ranges = holder.global_ids[holder.source_halo_rows], holder.plan.source_indptr
            assert_same_rows(owner, holder, plan.broadcast_indptr, plan.broadcast_rows, halos, ranges)
            halos, ranges = holder.global_ids[holder.target_halo_rows], holder.plan.target_indptr
            assert_same_rows(owner, holder, plan.reduce_indptr, plan.reduce_rows, halos, ranges)
        assert back.broadcast_rows is plan.reduce_rows and back.source_indptr is plan.target_indptr
        assert back.transposed() == plan


def assert_same_rows(owner, holder, indptr, rows, halos, ranges):
    assert indptr.dtype == ranges.dtype == np.int64 and rows.dtype == np.int32
    packed = owner.global_ids[rows[indptr[holder.part_id] : indptr[holder.part_id + 1]]]
    np.testing.assert_array_equal(packed, halos[ranges[owner.part_id] : ranges[owner.part_id + 1]])


def check_measures(edges, cut, book, locals_):
    """Each reported number from sets."""
    is_source, is_target = roles(edges, cut)
    copies = is_source | is_target | {(v, p) for v, p in enumerate(cut.owner.tolist())}
    with_arc = {v for v, _ in is_source | is_target}
    if with_arc:
        expected = sum(v in with_arc for v, _ in copies) / len(with_arc)
        assert book.replication_factor == pytest.approx(expected)
    halos = [(v, p) for role in (is_source, is_target) for v, p in role if cut.owner[v] != p]
    assert book.exchange_rows == len(halos)
    traffic = np.zeros(cut.num_parts, dtype=np.int64)
    for v, p in halos:
        traffic[p] += 1
        traffic[cut.owner[v]] += 1
    assert book.max_rank_rows == traffic.max()
    pairs = np.zeros((cut.num_parts, cut.num_parts), dtype=np.int64)
    for v, p in is_source:
        pairs[cut.owner[v], p] += cut.owner[v] != p  # a broadcast: from the owner
    for v, p in is_target:
        pairs[p, cut.owner[v]] += cut.owner[v] != p  # a reduce: to the owner
    np.testing.assert_array_equal(book.pair_rows, pairs)
    np.testing.assert_array_equal(book.num_arcs, np.bincount(arc_parts(edges, cut), minlength=cut.num_parts))
    np.testing.assert_array_equal(book.num_rows, np.bincount([p for _, p in copies], minlength=cut.num_parts))
    if edges.num_arcs:
        assert book.edge_balance == pytest.approx(book.num_arcs.max() * cut.num_parts / edges.num_arcs)
    assert book.owned_balance == pytest.approx(book.num_owned.max() * cut.num_parts / max(edges.num_nodes, 1) or 1.0)
    assert book.copies_balance == pytest.approx(book.num_rows.max() * cut.num_parts / max(len(copies), 1) or 1.0)
    assert [local.num_arcs for local in locals_] == book.num_arcs.tolist()
