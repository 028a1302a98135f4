"""Buffers are free again as soon as nothing looks at them."""

import gc

import torch
from cut_graphs import random_graph, whole_graph

from distgnn.config import ModelConfig
from distgnn.nn import model_for
from distgnn.ops import Buffers

ROWS = 1 << 14  # of 1 KiB in the widest layer: nothing here is so small that it is left to malloc


def rows(buffers, width=256):
    return buffers.empty(ROWS, width, torch.float32)


def test_a_free_block_is_used_again():
    buffers = Buffers()
    first = rows(buffers)
    place, view = first.data_ptr(), first[5:].numpy()
    del first
    assert rows(buffers).data_ptr() != place  # a view looks at it
    del view
    assert rows(buffers).data_ptr() == place
    assert buffers.empty(ROWS + 1, 33, torch.bfloat16).data_ptr() % 64 == 0


def test_a_pass_without_gradients_keeps_no_free_block_beside_the_one_it_takes():
    buffers = Buffers()
    buffers.lean = True
    kept = [rows(buffers, 64), rows(buffers)]
    del kept
    rows(buffers, 32).fill_(1)
    assert buffers.num_bytes == ROWS * 64 * 4


def test_narrower_rows_share_a_free_block():
    """Layers of 256 columns, then of 160, 64 and 32: the memory of the widest is enough."""
    buffers = Buffers()
    wide = rows(buffers)
    start, size = wide.data_ptr(), wide.nbytes
    del wide
    parts = [rows(buffers, 160).fill_(1), rows(buffers, 64).fill_(2), rows(buffers, 32).fill_(3)]
    assert buffers.num_bytes == size and buffers.used_bytes == size
    assert [part.data_ptr() - start for part in parts] == [0, ROWS * 160 * 4, ROWS * 224 * 4]
    assert [part.unique().tolist() for part in parts] == [[1], [2], [3]]
    del parts[1:]
    assert rows(buffers, 96).data_ptr() == start + ROWS * 160 * 4  # two gaps side by side are one


def test_the_smallest_gap_is_taken():
    buffers = Buffers()
    kept = [rows(buffers, width) for width in (256, 128, 192)]
    smallest = kept.pop(1).data_ptr()
    kept.clear()
    assert rows(buffers, 100).data_ptr() == smallest


def test_a_whole_block_is_not_broken_for_little():
    """The next wide layer would need another one."""
    buffers = Buffers()
    wide = rows(buffers)
    place = wide.data_ptr()
    del wide
    narrow = rows(buffers, 64)
    assert rows(buffers).data_ptr() == place and narrow.data_ptr() != place


def test_a_larger_block_takes_the_place_of_free_smaller_ones():
    buffers = Buffers()
    kept, free = rows(buffers, 64), rows(buffers, 128)
    del free
    assert buffers.num_bytes == kept.nbytes + ROWS * 128 * 4
    wide = rows(buffers)
    assert buffers.num_bytes == kept.nbytes + wide.nbytes


def bytes_after_steps(name: str) -> set[int]:
    """Bytes in use after each of three steps."""
    graph = whole_graph(random_graph(typed=True))
    model = model_for(ModelConfig(name, 8, num_layers=4), graph).to(graph.feats.dtype)
    held = set()
    for _ in range(3):
        torch.sum(model(graph, graph.feats)).backward()
        held.add(graph.buffers.used_bytes)
    return held


def test_a_step_leaves_no_rows_to_the_garbage_collector(monkeypatch):
    """A cycle of references keeps rows until some later collection: memory grows by layers' rows in every step."""
    monkeypatch.setattr("distgnn.ops.buffers.SMALL", 1)
    cases = ("sage", "gcn", "gin", "gat", "gatv2", "gcn2", "appnp", "gine", "rgcn")
    gc.collect()
    gc.disable()
    try:
        held = {case: bytes_after_steps(case) for case in cases}
    finally:
        gc.enable()
    assert [case for case, found in held.items() if len(found) > 1] == []
