"""The partition folder on disk, and what each file in it must look like.

    parts/
        partition.json            what was cut, how, how well; size and SHA-256 of every file below; its own SHA-256
        part-0/                   all a rank reads besides partition.json; arrays are .npy, mapped when read
            global_ids.npy        int64 [V]     rows [interior | boundary | halo]
            in_degrees.npy        int32/64 [V]  over all arcs of the whole graph; out_degrees.npy likewise
            halo_counts.npy       int64 [P, 3]  source only, both, target only of each owner rank
            owned_owned_indptr.npy, owned_owned_indices.npy; owned_halo_…, halo_owned_…, halo_halo_…
            arc_ids.npy           int64 [A]     global arc ids; edge_weight.npy float32 [A] if there are weights
            edge_feats.npy        float32 [A, De]; edge_types.npy int32 [A]; both in this part's order of arcs, if any
            broadcast_indptr.npy, broadcast_rows.npy, reduce_indptr.npy, reduce_rows.npy       the exchange plan
            feats.npy             float32 [O, D]; or feats_indptr, feats_indices, feats_data (CSR) if sparse
            labels.npy            int64 [O] or 0/1 [O, C]; train_mask, valid_mask, test_mask bool [O]
            node_types.npy        int32 [O]     if vertices have types
            node_values.npy       float32 [O, T]; graph_ids.npy int64 [O]                      if there are any
            node_names.npy        int64 [O], or uint8 [O, bytes]: UTF-8 with zeros behind      if vertices have names
            cluster_places.npy    int64 [O]     place of each vertex in an order of all that keeps clusters together
            train_edges.npy       int64 [m, 2]  global ids of pairs whose source is owned; train_edge_ids.npy int64 [m]:
                                  rows in the whole split; train_edge_labels; valid_…, test_…; valid_negatives and
                                  valid_negative_ids, valid_negative_targets (datasets/links/part_edges.py)
        part-1/ …

Format version 2 is 1 with any of node_values, graph_ids and train_edges, version 3 has cluster_places: folders without
them say the version before, and are the same to the byte.

Shapes: V local rows, O owned, S and T source and target halos, A arcs, P parts, D feature width, C classes,
De width of edge features.
"""

from __future__ import annotations

from pathlib import Path

FORMAT_VERSION = 3
SINCE_2 = ("edge_splits", "num_values", "num_graphs")  # of the manifest's graph section
MANIFEST = "partition.json"
ANY = None  # a length the file itself decides

Files = dict[str, tuple[tuple[int | None, ...], tuple[str, ...]]]  # array name -> shape, allowed dtypes

INTS = ("int32", "int64")


def format_version(graph: dict) -> int:
    """The version that a folder with this `graph` section needs to be read."""
    if graph.get("clusters"):
        return 3
    return 2 if any(graph.get(name) for name in SINCE_2) else 1


def part_folder(folder: Path, part_id: int) -> Path:
    """Where a part lies: made from its number, never from a name in a file."""
    return Path(folder) / f"part-{part_id}"


def expected_files(part: dict, graph: dict, num_parts: int) -> Files:
    """Array name -> (shape, allowed dtypes) of one part, from its sizes in the manifest."""
    # Here, as who only starts ranks reads a manifest and needs neither arrays nor kernels.
    from distgnn.datasets.links.part_edges import expected_edge_files
    from distgnn.partition.core.local_graph import BLOCKS

    owned, targets, arcs = part["owned"], part["target_halos"], part["arcs"]
    rows = (part["rows"],)
    files: Files = {
        "global_ids": (rows, ("int64",)),
        "in_degrees": (rows, INTS),
        "out_degrees": (rows, INTS),
        "halo_counts": ((num_parts, 3), ("int64",)),
        "arc_ids": ((arcs,), ("int64",)),
        "broadcast_indptr": ((num_parts + 1,), ("int64",)),
        # As many as the indptr beside it says, which verify.py compares.
        "broadcast_rows": ((ANY,), ("int32",)),
        "reduce_indptr": ((num_parts + 1,), ("int64",)),
        "reduce_rows": ((ANY,), ("int32",)),
    }
    # Rows of a block are owned rows or target halos.
    block_rows = dict(zip(BLOCKS, (owned, owned, targets, targets), strict=True))
    for name in BLOCKS:
        files[f"{name}_indptr"] = ((block_rows[name] + 1,), ("int64",))
        files[f"{name}_indices"] = ((ANY,), ("int32",))
    if graph["edge_weight"]:
        files["edge_weight"] = ((arcs,), ("float32",))
    if graph.get("num_edge_feats"):
        files["edge_feats"] = ((arcs, graph["num_edge_feats"]), ("float32",))
    if graph.get("num_relations"):
        files["edge_types"] = ((arcs,), ("int32",))
    files |= expected_edge_files(graph.get("edge_splits", {}), graph.get("edge_labels", "int64"))
    return files | _expected_vertex_files(owned, graph)


def _expected_vertex_files(owned: int, graph: dict) -> Files:
    files: Files = {f"{split}_mask": ((owned,), ("bool",)) for split in ("train", "valid", "test")}
    if graph["sparse_feats"]:
        files["feats_indptr"] = ((owned + 1,), ("int64",))
        files["feats_indices"] = ((ANY,), INTS)
        files["feats_data"] = ((ANY,), ("float32",))
    elif graph["num_feats"]:
        files["feats"] = ((owned, graph["num_feats"]), ("float32",))
    if graph["multilabel"]:
        # 0, 1 and -1 in the dtype of the source; class numbers are always written as int64.
        files["labels"] = ((owned, graph["num_classes"]), ("bool", "int8", "uint8", "int16", "int32", "int64"))
    elif graph["labels"]:
        files["labels"] = ((owned,), ("int64",))
    if graph.get("num_node_types"):
        files["node_types"] = ((owned,), ("int32",))
    if graph.get("num_values"):
        files["node_values"] = ((owned, graph["num_values"]), ("float32",))
    if graph.get("num_graphs"):
        files["graph_ids"] = ((owned,), ("int64",))
    if graph.get("name_bytes") is not None:  # 0: whole numbers
        width = graph["name_bytes"]
        files["node_names"] = ((owned, width), ("uint8",)) if width else ((owned,), ("int64",))
    if graph.get("clusters"):
        files["cluster_places"] = ((owned,), ("int64",))
    return files
