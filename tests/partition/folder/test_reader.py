"""The partition folder: what is written is read back, by its own rank only."""

import numpy as np
import pytest
from scipy import sparse

from distgnn.partition import PartitionBook, build_local, cut_edges, load_part, read_manifest, write_partition
from distgnn.partition.core.local_graph import BLOCKS

from ..folders import make_graph


@pytest.mark.parametrize(
    ("feats", "multilabel", "weighted", "directed"),
    [
        ("dense", False, False, False),
        ("sparse", True, True, False),
        ("none", False, True, True),
        ("dense", True, False, True),
    ],
)
def test_what_is_written_is_read_back(feats, multilabel, weighted, directed, tmp_path):
    graph = make_graph(feats, multilabel, weighted, directed)
    edges = graph.edge_list()
    cut = cut_edges(edges, 3)
    manifest = write_partition(graph, edges, cut, tmp_path / "parts", method="libra")
    assert manifest == read_manifest(tmp_path / "parts")
    book = PartitionBook(edges, cut)
    for part in range(3):
        local, built = load_part(tmp_path / "parts", part), build_local(book, part)
        assert_same_structure(local, built)
        assert_same_vertex_data(local, graph)


SIZES = ("part_id", "num_parts", "num_nodes", "num_owned", "num_interior", "symmetric", "num_arcs")
ARRAYS = ("global_ids", "in_degrees", "out_degrees", "halo_counts", "arc_ids", "source_halo_rows", "edge_weight")
OF_PLAN = ("broadcast_indptr", "broadcast_rows", "source_indptr", "reduce_indptr", "reduce_rows", "target_indptr")


def assert_same_structure(local, built):
    assert [getattr(local, name) for name in SIZES] == [getattr(built, name) for name in SIZES]
    pairs = [(getattr(local, name), getattr(built, name)) for name in ARRAYS]
    pairs += [(getattr(local.plan, name), getattr(built.plan, name)) for name in OF_PLAN]
    for name in BLOCKS:
        pairs += zip(local.blocks[name], built.blocks[name], strict=True)
        for array in local.blocks[name]:
            assert type(array) is np.ndarray and array.flags.writeable, "numba and torch take it as it is"
    for got, expected in pairs:
        np.testing.assert_array_equal(got, expected)
        assert got is expected is None or got.dtype == expected.dtype


def assert_same_vertex_data(local, graph):
    ids = local.global_ids[: local.num_owned]
    np.testing.assert_array_equal(local.labels, graph.labels[ids])
    for split, mask in graph.split_masks().items():
        np.testing.assert_array_equal(getattr(local, f"{split}_mask"), mask[ids])
    found, expected = (rows.toarray() if sparse.issparse(rows) else rows for rows in (local.feats, graph.feats))
    np.testing.assert_array_equal(found, None if expected is None else expected[ids].astype(np.float32))
    assert found is None or found.dtype == np.float32


def test_a_rank_reads_only_the_manifest_and_its_own_folder(folder):
    for part in (0, 2):
        for file in (folder / f"part-{part}").iterdir():
            file.unlink()
        (folder / f"part-{part}").rmdir()
    assert load_part(folder, 1).part_id == 1


def test_writes_to_a_loaded_part_stay_private(folder):
    load_part(folder, 0).global_ids[:] = -1
    assert load_part(folder, 0).global_ids.min() >= 0
