"""What torch's own functions keep for their gradients, moved into the pool of buffers: `--offload` for any module.

Layers of ours keep rows of the pool, which wait in files by themselves. Rows that torch has made are copied into it
when a function saves them; what torch held is then free.
"""

import contextlib
import weakref
from collections.abc import Iterator

import torch

from distgnn.ops.buffers import SMALL, Buffers
from distgnn.ops.function import is_same, version_of

WRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor {} was "
    "written to after it was saved for the backward pass; write out of place (relu, x + y)"
)


@contextlib.contextmanager
def saved_in(buffers: Buffers) -> Iterator[None]:
    """A forward pass whose saved rows wait in files; without a folder nothing changes."""
    if buffers.disk is None:
        yield
        return
    rows = _SavedRows(buffers)
    with torch.autograd.graph.saved_tensors_hooks(rows.pack, rows.unpack):
        yield


class _SavedRows:
    """The hooks of one forward pass: (what is kept, its version)."""

    def __init__(self, buffers: Buffers):
        self._buffers = buffers
        self._copies: dict[tuple, weakref.ref] = {}  # several functions save one tensor

    def pack(self, tensor: torch.Tensor) -> tuple[torch.Tensor, int | None]:
        """As it is, or a copy in the pool: of large rows of numbers that torch has made."""
        rows = type(tensor) is torch.Tensor and tensor.is_floating_point() and tensor.is_contiguous()
        if not rows or tensor.nbytes < SMALL or self._buffers.holds(tensor.data_ptr()):
            return tensor, version_of(tensor)
        plain = tensor.detach()
        key = plain.data_ptr(), version_of(plain), plain.shape, plain.dtype
        known = self._copies.get(key)
        copy = None if known is None else known()
        as_bits = (one.view(-1).view(torch.uint8) for one in (copy, plain) if one is not None)
        if copy is None or not torch.equal(*as_bits):  # another tensor may lie there by now
            copy = self._buffers.empty(1, plain.numel(), plain.dtype).view(plain.shape).copy_(plain)
            self._copies[key] = weakref.ref(copy)
        return copy, version_of(copy)

    def unpack(self, kept: tuple[torch.Tensor, int | None]) -> torch.Tensor:
        """What was saved. Raises: RuntimeError, as torch does, where it was written to since."""
        tensor, version = kept
        if not is_same(tensor, version):
            raise RuntimeError(WRITTEN.format(list(tensor.shape)))
        self._buffers.read_ahead()
        return tensor
