"""Arrays in files of DGL and torch: read as they were saved, never run, damage in one line."""

import numpy as np
import pytest
import torch

from distgnn.datasets.formats.foreign_arrays import read_dgl_tensors, read_torch_arrays
from distgnn.errors import GraphFormatError
from distgnn.system.other_libraries import import_dgl


def test_tensors_of_dgl_are_read_and_damage_is_one_line(tmp_path):
    path = tmp_path / "tensors.dgl"
    arrays = {"_N": np.array([3, 1, 2]), "é": np.ones((2, 3), np.float32), "none": np.zeros((0, 2), np.int32)}
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    import_dgl().data.utils.save_tensors(str(path), tensors)
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


LEGACY = {"pickle_protocol": 4, "_use_new_zipfile_serialization": False}


@pytest.mark.parametrize("options", [{}, {"pickle_protocol": 4}, LEGACY])
def test_every_form_of_torch_save(tmp_path, options):
    arrays = {"edge": np.arange(6).reshape(3, 2), "weight": np.ones((2, 1), np.float32), "year": np.arange(0)}
    torch.save(arrays | {"about": "text"}, tmp_path / "x.pt", **options)
    found = read_torch_arrays(tmp_path / "x.pt")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert np.array_equal(found[name], array) and found[name].dtype == array.dtype
    columns = torch.arange(12).view(3, 4)[:, ::2]
    torch.save({"edge": columns}, tmp_path / "y.pt")
    assert np.array_equal(read_torch_arrays(tmp_path / "y.pt")["edge"], columns.numpy())


class Runs:
    def __reduce__(self):
        return exec, ("raise SystemExit('ran')",)


@pytest.mark.parametrize("options", [{}, {"pickle_protocol": 4}, LEGACY])
def test_nothing_in_a_file_is_run(options, tmp_path):
    torch.save({"edge": Runs()}, tmp_path / "x.pt", **options)
    with pytest.raises(GraphFormatError, match=r"x\.pt: damaged .*builtin.*\.exec, which no array needs"):
        read_torch_arrays(tmp_path / "x.pt")
    torch.save([1, 2], tmp_path / "x.pt", **options)
    with pytest.raises(GraphFormatError, match="expected a dictionary of arrays, found list"):
        read_torch_arrays(tmp_path / "x.pt")
