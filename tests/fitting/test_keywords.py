"""Keywords of `dg.fit`: another library's words, and values and objects of another form, are one line."""

import pytest
import torch

from distgnn.config import ModelConfig
from distgnn.errors import InputError
from distgnn.fitting.keywords import read_keywords


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"epoch": 3}, "unknown option 'epoch': did you mean 'epochs'?"),
        ({"hidden": 3}, "unknown option 'hidden': did you mean 'hidden_feats'?"),
        ({"model": "sagge"}, "did you mean sage?"),
        ({"model": torch.nn.Linear(8, 4), "hidden_feats": 3}, "hidden_feats is of models by name"),
        ({"model": ModelConfig("gcn"), "norm": "none"}, "norm is given twice: in the ModelConfig and by keyword"),
        ({"learning_rate": 0.1}, "fit takes no learning_rate: write lr"),
        ({"num_processes": 2}, "fit takes no num_processes: write ranks"),
        ({"optimizer": torch.optim.Adam([torch.zeros(1)])}, "give its class, as optimizer=torch.optim.Adam"),
        ({"callbacks": print}, "callbacks is a builtin_function_or_method: give a list"),
        ({"device": "cuda"}, "fit takes no device: it trains on CPUs"),
        ({"epochs": "10"}, "epochs is '10': expected a whole number"),
        ({"resume": "yes"}, "resume is 'yes': expected True or False"),
        ({"metrics": ["f1"]}, "metrics is a list: give a dict"),
        ({"loss": torch.nn.functional.mse_loss}, "loss is called as loss(graph, logits)"),
    ],
)
def test_mistakes_are_one_line(words, says):
    model = words.pop("model", None)
    with pytest.raises(InputError) as caught:
        read_keywords(model, words)
    assert says in str(caught.value) and "\n" not in str(caught.value)
