"""Laws of the book, the local graphs and the plans, for any cut of any graph."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

from distgnn.partition import PartitionBook, VertexCut, build_local
from distgnn.partition.core.local_graph import BLOCKS

from ..graphs import NAMES, arc_parts, awkward, cut_graphs, edge_list, random_cut


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


def every_law(edges, cut):
    book = PartitionBook(edges, cut)
    locals_ = [build_local(book, part) for part in range(cut.num_parts)]
    check_arcs(edges, cut, locals_)
    check_rows(edges, cut, book, locals_)
    check_order_inside_rows(locals_)
    check_symmetry(locals_)
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
        for holder in locals_:
            halos = holder.global_ids[holder.source_halo_rows]
            assert_same_rows(owner, holder, owner.plan.broadcast_indptr, owner.plan.broadcast_rows, halos, True)
            halos = holder.global_ids[holder.target_halo_rows]
            assert_same_rows(owner, holder, owner.plan.reduce_indptr, owner.plan.reduce_rows, halos, False)
        back = owner.plan.transposed()
        assert back.broadcast_rows is owner.plan.reduce_rows and back.source_indptr is owner.plan.target_indptr
        assert back.transposed() == owner.plan


def assert_same_rows(owner, holder, indptr, rows, halos, is_source):
    plan = holder.plan
    ranges = plan.source_indptr if is_source else plan.target_indptr
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
    for v, p in [(v, p) for v, p in is_source if cut.owner[v] != p]:
        pairs[cut.owner[v], p] += 1  # a broadcast: from the owner
    for v, p in [(v, p) for v, p in is_target if cut.owner[v] != p]:
        pairs[p, cut.owner[v]] += 1  # a reduce: to the owner
    np.testing.assert_array_equal(book.pair_rows, pairs)
    np.testing.assert_array_equal(book.num_arcs, np.bincount(arc_parts(edges, cut), minlength=cut.num_parts))
    np.testing.assert_array_equal(book.num_rows, np.bincount([p for _, p in copies], minlength=cut.num_parts))
    if edges.num_arcs:
        assert book.edge_balance == pytest.approx(book.num_arcs.max() * cut.num_parts / edges.num_arcs)
    assert book.owned_balance == pytest.approx(book.num_owned.max() * cut.num_parts / max(edges.num_nodes, 1) or 1.0)
    assert book.copies_balance == pytest.approx(book.num_rows.max() * cut.num_parts / max(len(copies), 1) or 1.0)
    assert [local.num_arcs for local in locals_] == book.num_arcs.tolist()


@settings(max_examples=150, deadline=None)
@given(cut_graphs())
def test_laws_hold_for_any_cut(case):
    every_law(*case)


MORE_THAN_A_WORD = ("random", "hub joined to everything", "no vertices")  # parts are bits of 64-bit words, too


@pytest.mark.parametrize(
    ("name", "directed", "num_parts"),
    [(name, *one) for name in NAMES for one in ((False, 1), (True, 3))]
    + [(one, False, 70) for one in MORE_THAN_A_WORD],
)
def test_laws_hold_for_awkward_graphs(name, directed, num_parts):
    edges = edge_list(*awkward(name), directed)
    generator = np.random.default_rng(num_parts)
    every_law(edges, random_cut(edges, num_parts, generator, split_reverse=not directed))


@pytest.mark.parametrize(
    ("weights", "symmetric"), [((1, 1, 2, 2), True), ((1, 2, 1, 2), False), ((1, 2, 2, 1), True)], ids=str
)
def test_a_symmetric_part_has_symmetric_weights(weights, symmetric):
    """Arcs there and back, twice: their weights must be the same, in any order."""
    edges = edge_list([(0, 1), (1, 0)] * 2, 2, directed=True, weights=np.array(weights, dtype=np.float32))
    cut = VertexCut(1, np.zeros(4, dtype=np.int64), np.zeros(2, dtype=np.int64))
    every_law(edges, cut)
    assert build_local(PartitionBook(edges, cut), 0).symmetric is symmetric


def test_a_part_whose_arcs_back_are_elsewhere_is_not_symmetric():
    """A ring: each vertex is source and target."""
    edges, zeros = edge_list([(0, 1), (1, 2), (2, 0)], 3), np.zeros(3, dtype=np.int64)
    cut = VertexCut(2, zeros, zeros, zeros + 1)
    every_law(edges, cut)
    assert not any(build_local(PartitionBook(edges, cut), part).symmetric for part in range(2))


def test_an_owner_without_arcs_just_has_the_row():
    """Both ends of the one edge are owned where the edge is not."""
    edges = edge_list([(0, 1)], 2)
    book = PartitionBook(edges, VertexCut(2, np.array([1]), np.array([0, 0])))
    owner, worker = build_local(book, 0), build_local(book, 1)
    assert (owner.num_owned, owner.num_arcs, worker.num_owned, worker.num_arcs) == (2, 0, 0, 2)
    assert worker.global_ids.tolist() == [0, 1] and worker.halo_counts[0].tolist() == [0, 2, 0]
    assert book.replication_factor == 2 and book.exchange_rows == 4


def test_an_edge_cut_has_source_halos_only():
    """All arcs at the owner of their target."""
    edges = edge_list(*awkward("random"))
    owner = np.arange(edges.num_nodes) % 3
    cut = VertexCut(3, owner[edges.dst], owner, reverse_part=owner[edges.src])
    book = PartitionBook(edges, cut)
    assert book.halo_counts[:, :, 1:].sum() == 0
    assert sum(build_local(book, part).num_target_halos for part in range(3)) == 0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_parts", 0, "at least 1 part"),
        ("edge_part", np.zeros(2, dtype=np.int64), r"edge_part must be an integer array of shape \(3,\)"),
        ("edge_part", np.zeros(3), "not float64"),
        ("owner", np.array([0, 0, 0, 2]), "parts 0 to 1"),
        ("owner", np.array([0, 0, 0, -1]), "from -1"),
        ("owner", [0, 0, 0, 0], "not list"),
        ("reverse_part", np.array([0, 1, 9]), "reverse_part"),
        ("order", np.zeros(9, dtype=np.int64), "order"),
    ],
)
def test_a_cut_that_does_not_fit_is_refused(field, value, message):
    edges = edge_list([(0, 1), (1, 2), (2, 3)], 4)
    fields = {"num_parts": 2, "edge_part": np.zeros(3, dtype=np.int32), "owner": np.zeros(4, dtype=np.int32)}
    with pytest.raises(ValueError, match=message):
        VertexCut(**(fields | {field: value})).check(edges)


def test_reverse_parts_need_two_way_rows():
    edges = SimpleNamespace(src=np.zeros(1), num_nodes=1, two_way=False)
    zeros = np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="two-way"):
        VertexCut(1, zeros, zeros, zeros).check(edges)
