"""Rows on their way out of torch: numpy, lists and files get all rows in the source's order, on every rank."""

from typing import Any

import torch

from distgnn.rows.row_tensor import RowTensor, gathered, handles, refuse


@handles("numpy", "tolist", "__array__", "__dlpack__", "__reduce_ex__")
def exported(func: Any, args: tuple, kwargs: dict) -> Any:
    """Of all rows. Collective: yes."""
    rows = args[0]
    if func.__name__ == "numpy" and rows.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    return func(gathered(rows), *args[1:], **kwargs)


@handles("item", "__float__", "__int__", "__index__", "__bool__")
def item(func: Any, args: tuple, kwargs: dict) -> Any:
    rows: RowTensor = args[0]
    if rows.numel() != 1:
        refuse(func.__name__, "take .sum(), .mean() or a row first")
    return func(gathered(rows))


@handles("data_ptr", "untyped_storage", "storage", "__cuda_array_interface__", "share_memory_", "pin_memory", "set_")
def refused(func: Any, args: tuple, kwargs: dict) -> Any:
    refuse(getattr(func, "__name__", "storage"))


@handles("__contains__")
def contains(func: Any, args: tuple, kwargs: dict) -> bool:
    return bool((args[0] == args[1]).any())


@handles("is_nonzero")
def is_nonzero(func: Any, args: tuple, kwargs: dict) -> bool:
    return bool(item(torch.Tensor.item, args, kwargs))
