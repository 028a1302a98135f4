"""Read the tensors of a file that `dgl.data.utils.save_tensors` wrote, without DGL.

u64 magic, u64 count, u64 count, then for each tensor: u64 length of its name, name,
u64 magic, u64 0, i32 device, i32 device id, i32 D, u8 kind, u8 bits, u16 lanes, i64 [D] shape, i64 bytes, content
"""

import struct
from pathlib import Path

import numpy as np

from distgnn.datasets.array_files import check_file, damaged

FILE, TENSOR = 0xDD5A9FBE3FA2443F, 0xDD5E40F096B4A13F
KINDS = {0: "i", 1: "u", 2: "f"}
MOST_TENSORS, MOST_DIMENSIONS = 1 << 16, 8


def read_dgl_tensors(path: Path) -> dict[str, np.ndarray]:
    """Name -> array. Raises: InputError for a missing file, GraphFormatError for a damaged one."""
    check_file(path)
    try:
        content = path.read_bytes()
        magic, count, again = struct.unpack_from("<QQQ", content)
        if magic != FILE or count > MOST_TENSORS or again != count:
            raise ValueError("no file of DGL's tensors")
        found, place = {}, 24
        for _ in range(count):
            (length,) = struct.unpack_from("<Q", content, place)
            if length > len(content):
                raise ValueError("a name is longer than the file")
            name = content[place + 8 : place + 8 + length].decode()
            place += 8 + length
            magic, _, _, _, dimensions, kind, bits, lanes = struct.unpack_from("<QQiiiBBH", content, place)
            place += 32
            if magic != TENSOR or not 0 <= dimensions <= MOST_DIMENSIONS or lanes != 1:
                raise ValueError("no tensor where one should be")
            shape = struct.unpack_from(f"<{dimensions}q", content, place)
            (size,) = struct.unpack_from("<q", content, place + 8 * dimensions)
            place += 8 * dimensions + 8
            dtype = np.dtype(f"<{KINDS[kind]}{bits // 8}")
            values = int(np.prod(shape, dtype=object))
            if min((0, *shape)) < 0 or values * dtype.itemsize != size or place + size > len(content):
                raise ValueError("a tensor is shorter than its header says")
            found[name] = np.frombuffer(content, dtype, values, place).reshape(shape)
            place += size
        return found
    except (ValueError, struct.error, TypeError, KeyError, OSError, UnicodeDecodeError) as error:
        raise damaged(path, error) from error
