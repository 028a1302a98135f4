"""Folds of the labelled vertices: each is tested once, whatever the ranks.

Legend: O owned rows.
"""

from typing import Any

import numpy as np
import torch

from distgnn.errors import InputError, on_all_ranks


def folds_of(graph: Any, folds: int, seed: int) -> np.ndarray:
    """int64 [O]: the fold of each owned vertex, at random by `seed`; -1 without a label. Collective: yes.

    Raises: InputError where there are fewer labels than folds.
    Notes: folds differ by at most one vertex, in all and of each class.
    """
    labels, values = graph.labels, graph.node_values
    if labels is None and values is None:
        raise on_all_ranks(InputError("folds are of labelled vertices: the graph has no labels"))
    if labels is None:
        known = ~torch.isnan(values.reshape(len(values), -1)).any(1)
        classes = torch.zeros(len(values), dtype=torch.int64)
    else:
        known = (labels if labels.dim() == 1 else labels[:, 0]) >= 0
        classes = labels if labels.dim() == 1 else torch.zeros(len(labels), dtype=torch.int64)
    owned = known[: graph.num_owned].numpy()
    mine = graph.owned_ids[owned], classes[: graph.num_owned].numpy()[owned]
    ids, of_ids = (np.concatenate(parts) for parts in zip(*graph.comm.allgather(mine), strict=True))
    if len(ids) < folds:
        raise on_all_ranks(InputError(f"folds is {folds}: only {len(ids)} vertices have labels"))
    by_id = np.argsort(ids)
    order = np.random.default_rng([seed, folds]).permutation(by_id)
    order = order[np.argsort(of_ids[order], kind="stable")]  # class by class, dealt out one after the other
    dealt = np.empty(len(ids), np.int64)
    dealt[order] = np.arange(len(ids)) % folds
    found = np.full(graph.num_owned, -1, np.int64)
    found[owned] = dealt[by_id][np.searchsorted(ids[by_id], mine[0])]
    return found


def fold_masks(fold_of: np.ndarray, fold: int, folds: int) -> dict[str, np.ndarray]:
    """Which vertices train, validate (the fold behind) and test (this fold), bool [O]."""
    valid, test = fold_of == (fold + 1) % folds, fold_of == fold
    return {"train": (fold_of >= 0) & ~valid & ~test, "valid": valid, "test": test}
