"""A graph with everything in it, and changes to the partition folder that is made of it."""

import json

import numpy as np
from scipy import sparse

from distgnn.datasets import GraphData
from distgnn.partition.folder.writer import manifest_digest

from .graphs import awkward


def make_graph(feats="dense", multilabel=False, weighted=False, directed=False, typed=False):
    edges, num_nodes = awkward("random")
    generator = np.random.default_rng(0)
    values = generator.standard_normal((num_nodes, 6))
    labels = generator.integers(-1, 4, num_nodes)
    if multilabel:
        labels = generator.integers(0, 2, (num_nodes, 5)).astype(np.int8)
    return GraphData(
        "random",
        num_nodes,
        np.array(edges),
        directed,
        feats={"dense": values, "sparse": sparse.csr_matrix(values * (values > 0.5)), "none": None}[feats],
        labels=labels,
        edge_weight=generator.random(len(edges)).astype(np.float32) if weighted else None,
        edge_feats=generator.random((len(edges), 3)).astype(np.float32) if typed else None,
        edge_types=generator.integers(0, 4, len(edges)) if typed else None,
        node_types=generator.integers(0, 2, num_nodes) if typed else None,
        train=np.arange(0, 20),
        valid=np.arange(20, 25),
        test=np.arange(25, 33),
    )


def resign(folder, change):
    """Change the manifest and give it a right checksum again: a folder that somebody else wrote."""
    path = folder / "partition.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest["sha256"] = manifest_digest(manifest)
    path.write_text(json.dumps(manifest))


def replace_array(folder, name, array):
    """Put another array in place of one, with a right entry in a right manifest."""
    from distgnn.partition.folder.writer import write_array

    entry = write_array(folder / "part-0" / f"{name}.npy", array)
    resign(folder, lambda manifest: manifest["parts"][0]["files"].update({name: entry}))
