"""Small awkward graphs for kernel tests: (indptr, indices, number of sources); rows, and attention by torch."""

import numpy as np
import torch

from distgnn.kernels import attention, transpose_csr
from distgnn.kernels.check import reference


def awkward(name, index_dtype=np.int32):
    """A named graph; every one has another way to go wrong."""
    generator = np.random.default_rng(7)
    src, dst, rows = {
        "random": (generator.integers(0, 50, 400), generator.integers(0, 60, 400), 60),
        "hub": (generator.integers(0, 50, 400), np.where(generator.random(400) < 0.7, 11, 3), 30),
        "no edges": (np.zeros(0), np.zeros(0), 5),
        "no rows": (np.zeros(0), np.zeros(0), 0),
        "one loop": (np.zeros(1), np.zeros(1), 1),
        "isolated": (np.full(9, 4), np.arange(9) * 2, 40),
        "duplicates": (np.repeat(np.arange(5), 6), np.repeat(np.arange(5), 6), 7),
    }[name]
    indptr, indices, _ = reference.csr_from_edges(src.astype(index_dtype), dst.astype(index_dtype), rows)
    return indptr, indices, 50


NAMES = ("random", "hub", "no edges", "no rows", "one loop", "isolated", "duplicates")


def rows_of(num_rows, width, dtype=np.float32, seed=0):
    """Normal rows."""
    return np.random.default_rng(seed).standard_normal((num_rows, width)).astype(dtype)


def close(got, expected):
    """Equal up to the rounding of a few hundred terms in the dtype of `got`."""
    tolerance = {"float32": 2e-5, "float64": 1e-13}[got.dtype.name]
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * 10)


def attention_by_torch(indptr, indices, feats, source, target, grad):
    """Arc by arc in float64: (out, gradients of feats, source scores, target scores)."""
    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (feats, source, target)]
    rows = torch.repeat_interleave(torch.arange(len(indptr) - 1), torch.from_numpy(np.diff(indptr)))
    cols = torch.from_numpy(indices.astype(np.int64))
    power = torch.nn.functional.leaky_relu(leaves[1][cols] + leaves[2][rows], 0.2).exp()
    sums = torch.zeros(len(indptr) - 1, source.shape[1], dtype=torch.float64).index_add(0, rows, power)
    messages = leaves[0][cols] * (power / sums[rows])[..., None]
    out = torch.zeros(len(indptr) - 1, *feats.shape[1:], dtype=torch.float64).index_add(0, rows, messages)
    out.backward(torch.from_numpy(grad.astype(np.float64)))
    return [out.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


def both_passes(indptr, indices, feats, source, target, grad):
    """The result of attention, and the arguments of its backward pass with this gradient."""
    out, top, sums = attention(indptr, indices, feats, source, target)
    backward = transpose_csr(indptr, indices, len(feats))[:2]
    return out, (*backward, feats, source, target, grad, top, sums, (grad * out).sum(axis=2))
