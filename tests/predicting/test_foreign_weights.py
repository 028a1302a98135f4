"""Weights that were trained elsewhere: prefixes of trainers go, what does not fit is named, nothing is executed."""

import pytest
import torch

from distgnn.errors import InputError
from distgnn.predicting.foreign_weights import load_foreign

pyg = pytest.importorskip("torch_geometric").nn


def sage():
    torch.manual_seed(0)
    return pyg.models.GraphSAGE(8, 8, 2, 4)


def test_weights_from_elsewhere(tmp_path):
    model, state = sage(), sage().state_dict()
    kept = {
        "w.pt": state,
        "lightning.ckpt": {"epoch": 3, "state_dict": {f"net.inner.{name}": one for name, one in state.items()}},
        "parallel.pt": {f"module.{name}": one for name, one in state.items()},
    }
    for name, one in kept.items():
        torch.save(one, tmp_path / name)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        load_foreign(model, tmp_path / name)
        assert all(torch.equal(one, state[name]) for name, one in model.state_dict().items())
    other = {name.replace("lin_l", "lin_x"): one for name, one in state.items()} | {
        "convs.1.lin_r.weight": torch.ones(2)
    }
    torch.save(other, tmp_path / "other.pt")
    line = r"convs.1.lin_r.weight is \[2\] in the file.*; convs.0.lin_l.weight is missing, .* has convs.0.lin_x.weight"
    with pytest.raises(InputError, match=line):
        load_foreign(model, tmp_path / "other.pt")
    torch.save({name.replace("convs", "layers"): one for name, one in state.items()}, tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"convs.0.lin_l.weight is missing, the file has layers.0.lin_l.weight"):
        load_foreign(model, tmp_path / "other.pt")
    torch.save(model, tmp_path / "whole.pt")
    with pytest.raises(InputError, match="holds more than weights, and is not executed"):
        load_foreign(model, tmp_path / "whole.pt")
    (tmp_path / "cut.pt").write_bytes((tmp_path / "w.pt").read_bytes()[:500])
    (tmp_path / "text.pt").write_text("hello")
    for name, said in (("cut.pt", ""), ("text.pt", ": torch.save did not write it")):
        with pytest.raises(InputError, match=f"cannot be read as weights{said}"):
            load_foreign(model, tmp_path / name)
