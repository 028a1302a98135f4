"""Floor 5: differentiable operations over the whole graph. Forward and backward are mirrored exchanges."""

from distgnn.ops.dropout import dropout
from distgnn.ops.halo import halo_broadcast, halo_reduce
from distgnn.ops.spmm import spmm
from distgnn.ops.sums import all_sum

__all__ = ["all_sum", "dropout", "halo_broadcast", "halo_reduce", "spmm"]
