"""The setting of columns: ranks and memory that it asks for, and what it does not go with."""

import pytest
from cut_graphs import random_graph

from distgnn.config import Settings
from distgnn.config.together import check_together
from distgnn.errors import InputError
from distgnn.partition import partition_graph
from distgnn.train.run.estimate import estimate_bytes

REFUSED = [
    ({"split_columns": 0}, "split_columns is 0: expected at least 1"),
    ({"model": "gat"}, "--split-columns is for models of sums and means: gat"),
    ({"model": "gcn2", "weighted": True}, "gcn2 with --weighted works arc by arc; leave --split-columns"),
    ({"algorithm": "cd-2"}, "--split-columns is for exact rows"),
    ({"wire": "int8"}, "--split-columns is for exact rows"),
    ({"inductive": True}, "inductive training is for one rank a part"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_what_it_does_not_go_with_is_refused(options, says):
    with pytest.raises(InputError, match=says):
        Settings().with_options({"split_columns": 2} | options).checked()


def test_fewer_ranks_after_a_fault_are_refused():
    with pytest.raises(InputError, match="with --split-columns ranks are started again as many as before"):
        check_together(split_columns=2, min_ranks=1, parts_for=None)


def test_ranks_and_memory_of_shared_parts(tmp_path):
    manifest = partition_graph(random_graph(0), 2, tmp_path / "parts", method="libra")
    alone = Settings().with_options({"num_layers": 6}).checked()
    shared = alone.with_options({"split_columns": 2}).checked()
    assert (alone.num_ranks(manifest), shared.num_ranks(manifest)) == (2, 4)
    large = manifest | {"parts": [part | {"owned": 10**6, "rows": 10**6} for part in manifest["parts"]]}
    assert estimate_bytes(large, 0, shared.sections()) < 0.9 * estimate_bytes(large, 0, alone.sections())
