import numpy as np
import pytest

from distgnn.datasets.formats.dgl_file import read_dgl_tensors
from distgnn.errors import GraphFormatError
from distgnn.system.other_libraries import import_dgl


def test_tensors_of_dgl_are_read_and_damage_is_one_line(tmp_path):
    import torch

    dgl, path = import_dgl(), tmp_path / "tensors.dgl"
    arrays = {"_N": np.array([3, 1, 2]), "é": np.ones((2, 3), np.float32), "none": np.zeros((0, 2), np.int32)}
    dgl.data.utils.save_tensors(str(path), {name: torch.from_numpy(array) for name, array in arrays.items()})
    found = read_dgl_tensors(path)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole[: int(rng.integers(1, len(whole) + 1))])
        damaged[int(rng.integers(0, len(damaged)))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            read_dgl_tensors(path)
        except GraphFormatError as error:
            assert "\n" not in str(error)
    path.write_bytes(whole[:-1])
    with pytest.raises(GraphFormatError, match="damaged or not the expected file"):
        read_dgl_tensors(path)
