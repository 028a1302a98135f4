"""SplitPairs: the pairs of a split of edges, their labels, and the scores that a model gives them."""

from typing import Any

import torch

from distgnn.errors import InputError
from distgnn.graph.links.edge_pairs import EdgePairs
from distgnn.train.tasks.task import Predicted

Pairs = tuple[EdgePairs, Any]  # and the RowLookup of their ends


class SplitPairs:
    """The pairs of each split with the rows they need, asked for once. Collective: the first `of` each split."""

    def __init__(self, model: Any):
        self.model = model
        self._found: dict[str, Pairs] = {}

    def of(self, graph: Any, split: str) -> Pairs | None:
        """(pairs, RowLookup) of a split; None where the graph has none."""
        if f"{split}_edges" not in graph.info.get("edge_splits", {}):
            return None
        if split not in self._found:
            pairs = graph.edge_pairs(split)
            self._found[split] = pairs, graph.look_up(pairs.pairs)
        return self._found[split]

    def need(self, graph: Any, split: str) -> Pairs:
        """As `of`. Raises: InputError where the graph has none."""
        found = self.of(graph, split)
        if found is None:
            raise InputError(f"the graph has no {split} edges: nothing to score")
        return found

    def scores(self, graph: Any, rows: torch.Tensor, split: str) -> torch.Tensor:
        """Scores of a split's pairs. Collective: yes."""
        scores: torch.Tensor = self.model.scores(self.need(graph, split)[1], rows)
        return scores

    def labels(self, graph: Any, split: str) -> torch.Tensor:
        """Labels of a split's pairs. Raises: InputError where they have none."""
        labels = self.need(graph, split)[0].labels
        if labels is None:
            raise InputError("these edges have no labels")
        return labels

    def predict(self, graph: Any, rows: torch.Tensor) -> Predicted:
        """Scores of the test split, as `Task.predict` gives them. Collective: yes."""
        pairs, _ = self.need(graph, "test")
        return pairs.ids, self.scores(graph, rows, "test"), pairs.num_pairs
