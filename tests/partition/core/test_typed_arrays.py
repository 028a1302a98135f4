"""Cuts of typed graphs: each part has the columns of its types and relations, whatever the cut."""

import numpy as np
import pytest
import scipy.sparse
from typed_graphs import typed_graph

from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.edge_list import arc_relations
from distgnn.datasets.typed import arc_column, arc_relation_names, type_ranges
from distgnn.errors import PartitionFormatError
from distgnn.partition import cut_edges, describe, load_part, local_part, partition_graph, read_manifest
from distgnn.partition.repartition import merge_parts, repartition

from ..folders import replace_array, resign
from ..laws import local_arcs


def dense(rows):
    return rows.toarray() if scipy.sparse.issparse(rows) else rows


def check_part(graph, edge_list, local):
    """A part has for its owned vertices and its arcs what the graph has for them."""
    assert local.types == graph.types and local.relations == tuple(arc_relation_names(graph, edge_list))
    owned = local.global_ids[: local.num_owned]
    for number, (kind, (begin, end)) in enumerate(type_ranges(graph).items()):
        ids = owned[local.node_types == number] - begin
        assert ((ids >= 0) & (ids < end - begin)).all()
        masks = {
            name: graph.split_masks()[name[:-5]][begin:end] for name in graph.typed.get(kind, {}) if "mask" in name
        }
        for name, column in (graph.typed.get(kind, {}) | masks).items():
            np.testing.assert_array_equal(dense(local.typed[kind][name]), dense(column)[ids], err_msg=f"{kind}.{name}")
    np.testing.assert_array_equal(local.edge_types, arc_relations(graph, edge_list, local.arc_ids))
    sources, targets = local_arcs(local)
    for number, (source, _, target) in enumerate(local.relations):
        mine = local.edge_types == number
        for ids, kind in ((sources, source), (targets, target)):
            begin, end = type_ranges(graph)[kind]
            assert ((ids[mine] >= begin) & (ids[mine] < end)).all()
        for name, column in local.relation_columns[number].items():
            np.testing.assert_array_equal(column, arc_column(graph, edge_list, number, name, local.arc_ids[mine]))
    np.testing.assert_array_equal(local.labels, graph.labels[owned])
    np.testing.assert_array_equal(local.train_mask, graph.split_masks()["train"][owned])


@pytest.mark.parametrize("direction", ["stored", "both", "reversed"])
def test_parts_have_what_the_graph_has_on_disk_in_memory_and_cut_anew(direction, tmp_path):
    for seed in range(4):
        graph = typed_graph(seed, one_width=5 * (seed % 2))
        edge_list = graph.edge_list(direction, "remove" if seed == 2 else "keep")
        how = {"direction": direction, "self_loops": edge_list.self_loops, "overwrite": True}
        manifest = partition_graph(graph, 3, tmp_path / "parts", method=("cmr", "libra", "random", "cmr")[seed], **how)
        parts = [load_part(tmp_path / "parts", part) for part in range(3)]
        memory = [local_part(graph, edge_list, cut_edges(edge_list, 2), part) for part in range(2)]
        for local in (*parts, *memory):
            check_part(graph, edge_list, local)
        if seed % 2:  # one width: also the features of all types
            widths = [
                np.zeros((n, 5)) if "feats" not in graph.typed.get(k, {}) else dense(graph.typed[k]["feats"])
                for k, n in zip(graph.types, graph.type_counts, strict=True)
            ]
            everything = np.concatenate(widths)
            for local in parts:
                np.testing.assert_array_equal(local.feats[:], everything[local.global_ids[: local.num_owned]])
        assert sum(np.array(part["type_rows"]) for part in manifest["parts"]).tolist() == list(graph.type_counts)
        assert np.sum([part["relation_arcs"] for part in manifest["parts"]]) == edge_list.num_arcs
        partition_graph(graph, 2, tmp_path / "two", **how)
        repartition(tmp_path / "two", 3, tmp_path / "again", method=manifest["method"], overwrite=True)
        files, again = (read_manifest(tmp_path / name)["parts"] for name in ("parts", "again"))
        assert [part["files"] for part in files] == [part["files"] for part in again]
        merge_parts(tmp_path / "parts", 2, tmp_path / "merged", overwrite=True)
        for part in range(2):
            check_part(graph, edge_list, load_part(tmp_path / "merged", part))


@pytest.mark.parametrize("method", ["cmr", "libra", "random"])
def test_each_type_each_relation_and_training_vertices_are_balanced_and_described(method, tmp_path, on_disk):
    """Of a type 1.04 times the share, and of a relation 1.03; one more, or an edge, where that is less than one."""
    graph = load_graph("typed:nodes=4000,reverse=0")
    for memory in (None, "8GB") if method == "cmr" else (None,):
        how = {"memory": memory, "direction": "both", "overwrite": True}
        partition_graph(graph, 4, tmp_path / "parts", method, **how)
        facts = describe(tmp_path / "parts")
        for name, of in facts["types"].items():
            share = graph.type_counts[graph.types.index(name)] / 4
            assert sum(of["owned"]) == 4 * share and max(of["owned"]) <= max(1.04 * share, share + 2) + 2
            assert max(of["train"]) <= max(1.04 * sum(of["train"]) / 4, sum(of["train"]) / 4 + 2)
        if memory is None:  # on disk arcs are balanced as a whole
            for of in facts["relations"].values():
                share = sum(of["arcs"]) / 4
                assert max(of["arcs"]) <= max(1.03 * share, share + 2)


def test_a_damaged_typed_part_is_named(tmp_path):
    partition_graph(typed_graph(), 2, tmp_path / "parts")
    good = load_part(tmp_path / "parts", 0)
    changes = {
        "type_0_labels": good.typed["paper"]["labels"] + 4,
        "node_types": np.roll(good.node_types, 1) * 0,
        "edge_types": good.edge_types * 0,
        "type_2_feats_indptr": good.typed["field"]["feats"].indptr + 1,
        "relation_0_weight": good.relation_columns[0]["weight"][1:],
    }
    for name, array in changes.items():
        partition_graph(typed_graph(), 2, tmp_path / "parts", overwrite=True)
        replace_array(tmp_path / "parts", name, array)
        with pytest.raises(PartitionFormatError, match=name):
            load_part(tmp_path / "parts", 0)
    tables = {"a": {"num_nodes": 2, "node_names": np.array(["ä", "b"])}, ("a", "to", "a"): [[0, 1], [1, 0]]}
    partition_graph(GraphData.from_types(tables), 1, tmp_path / "named")
    assert load_part(tmp_path / "named", 0).typed["a"]["names"].tolist() == ["ä", "b"]
    replace_array(tmp_path / "named", "type_0_names", np.full((2, 2), 255, np.uint8))
    with pytest.raises(PartitionFormatError, match="a name of a vertex is no UTF-8"):
        load_part(tmp_path / "named", 0)
    for field, value in {"type_counts": [1], "relations": [["a"]], "typed": {"paper": {"feats": ["object"]}}}.items():
        partition_graph(typed_graph(), 2, tmp_path / field)
        resign(tmp_path / field, lambda manifest, f=field, v=value: manifest["graph"].update({f: v}))
        with pytest.raises(PartitionFormatError, match=f"graph.{field} is missing or wrong"):
            read_manifest(tmp_path / field)
