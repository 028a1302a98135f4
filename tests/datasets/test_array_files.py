"""Files that are no regular files, and arrays that unpack to more than there is memory for."""

import os

import numpy as np
import pytest

from distgnn.datasets import array_files, load_graph
from distgnn.errors import InputError


@pytest.mark.parametrize("name", ["graph.json", "edges.npy", "labels.npy", "feats.npz", "train.npy"])
def test_a_pipe_in_place_of_a_file_is_refused(graph_folder, name):
    (graph_folder / name).unlink(missing_ok=True)
    os.mkfifo(graph_folder / name)
    with pytest.raises(InputError, match=f"{name}: expected a regular file, found a folder, a pipe or a device"):
        load_graph(graph_folder)


def test_a_device_in_place_of_a_table_is_refused(ogb_folder):
    folder = ogb_folder("ogbn_arxiv", "time", [[0, 1]], 4, [0, 1, 0, 1])
    edges = folder / "raw" / "edge.csv.gz"
    edges.unlink()
    edges.symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"edge\.csv\.gz: expected a regular file"):
        load_graph(folder)


def test_an_array_that_unpacks_beyond_the_free_memory_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "data.npz", zeros=np.zeros(1_000_000))
    monkeypatch.setattr(array_files, "available_bytes", lambda: 1_000_000)
    with pytest.raises(InputError, match=r"data\.npz: unpacks to more than the 0\.001 GB .* \(at least 0\.008 GB\)"):
        array_files.read_npz(tmp_path / "data.npz")
