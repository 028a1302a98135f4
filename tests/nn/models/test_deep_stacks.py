"""Deep stacks equal the same of DGL's layers."""

import pytest
from plain_models import label, same_as_dgls

from distgnn.config import ModelConfig

VARIANTS = [ModelConfig(name, weighted=True) for name in ("gcn2", "appnp")]
VARIANTS += [ModelConfig("gcn2", norm="batch"), ModelConfig("appnp", norm="none", num_layers=1)]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("config", VARIANTS, ids=label)
def test_a_model_equals_the_same_of_dgls_layers(comm, config):
    same_as_dgls(comm, config, directed=VARIANTS.index(config) % 2 == 1)
