"""Rows that wait in files: the same numbers, bounded memory, and nothing left behind."""

import os
import signal
import subprocess
import sys

import pytest
import torch
from cut_graphs import random_graph, whole_graph

import distgnn as dg
from distgnn.config import ModelConfig
from distgnn.errors import InputError, RunError
from distgnn.graph.memory.spans import Span, resident_in
from distgnn.nn import model_for
from distgnn.ops import Buffers, file_memory

ROWS = 1 << 14


def test_what_was_sent_out_is_read_and_written_where_it_was(tmp_path):
    buffers = Buffers(str(tmp_path))
    kept = [buffers.empty(ROWS, 64, torch.float32).fill_(number) for number in range(8)]
    assert buffers.disk.moved_bytes == 6 * kept[0].nbytes  # two stay in memory
    assert not os.listdir(tmp_path)
    kept[0].add_(100)
    buffers.read_ahead()
    del kept[3]
    new = buffers.empty(ROWS, 64, torch.float32).fill_(50)
    assert [int(rows.unique()) for rows in (*kept, new)] == [100, 1, 2, 4, 5, 6, 7, 50]


def test_what_free_pieces_leave_in_memory_counts_beside_pieces_at_work(tmp_path):
    buffers, size = Buffers(str(tmp_path)), 1 << 20
    free = buffers.empty(1, 6 * size, torch.uint8).fill_(1)
    left = Span(free.data_ptr() + 3 * size, free.data_ptr() + 6 * size)
    del free
    half = buffers.empty(1, 3 * size, torch.uint8)  # in its place
    assert resident_in(left)[0] == 3 * size
    wide = [buffers.empty(1, 5 * size, torch.uint8) for _ in range(2)]  # all that may be in memory
    assert sum(resident_in(left)) == 0
    assert [one.shape[1] for one in (half, *wide)] == [3 * size, 5 * size, 5 * size]


@pytest.mark.parametrize(("name", "norm"), [("sage", "layer"), ("gcn", "batch"), ("gat", "none"), ("gin", "layer")])
def test_losses_are_the_same_to_the_bit(name, norm, tmp_path, monkeypatch):
    for module in ("buffers", "recompute"):
        monkeypatch.setattr(sys.modules[f"distgnn.ops.{module}"], "SMALL", 256)
    found, moved = [], []
    for folder in (None, str(tmp_path)):
        torch.manual_seed(0)
        graph = whole_graph(random_graph(), offload=folder)
        model = model_for(ModelConfig(name, 8, num_layers=4, norm=norm), graph)
        result = dg.Trainer(model, graph, dg.TrainConfig(epochs=3, log=None)).fit()
        found.append([loss.hex() for loss in result.losses])
        moved.append(graph.buffers.disk.moved_bytes if folder else 0)
    assert found[0] == found[1] and moved[1] > 0


@pytest.mark.slow
def test_a_killed_process_leaves_no_file(tmp_path):
    text = (
        "import os, signal, sys, torch\nfrom distgnn.ops import Buffers\nbuffers = Buffers(sys.argv[1])\n"
        "kept = [buffers.empty(1 << 14, 64, torch.float32).fill_(1) for _ in range(6)]\n"
        "assert buffers.disk.moved_bytes\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", text, str(tmp_path)], timeout=900, check=False)
    assert done.returncode == -signal.SIGKILL and not os.listdir(tmp_path)


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_memory.os, "posix_fallocate", full)
    buffers = Buffers(str(tmp_path))
    kept = [buffers.empty(ROWS, 64, torch.float32) for _ in range(2)]
    with pytest.raises(RunError, match=r"^offload: .* is full after 0 B: free some room, or name a folder"):
        kept.append(buffers.empty(ROWS, 64, torch.float32))
    with pytest.raises(InputError, match="no such folder"):
        file_memory.check_folder(str(tmp_path / "none"))


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="no tmpfs here")
def test_a_tmpfs_is_known_as_memory_and_a_disk_is_not():
    assert file_memory.is_memory("/dev/shm") and not file_memory.is_memory("/proc")
