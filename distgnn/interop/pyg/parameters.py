"""Parameters of our models under PyG's names: for `to_pyg`."""

from typing import Any

import torch

from distgnn.errors import RunError

MLP = {f"nn.{layer}.{kind}": f"apply_func.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
# Kind of convolution -> PyG's parameter -> ours; "'" behind ours: transposed.
PARAMETERS: dict[str, dict[str, str]] = {
    "sage": {"lin_l.weight": "fc_neigh.weight", "lin_l.bias": "fc_self.bias", "lin_r.weight": "fc_self.weight"},
    "sage weighted": {
        "lin_rel.weight": "fc_neigh.weight",
        "lin_rel.bias": "fc_self.bias",
        "lin_root.weight": "fc_self.weight",
    },
    "gcn": {"lin.weight": "weight'", "bias": "bias"},
    "gin": {"eps": "eps", **MLP},
    "gine": {
        "eps": "conv.eps",
        "lin.weight": "encoder.weight",
        "lin.bias": "encoder.bias",
        **{theirs: f"conv.{ours}" for theirs, ours in MLP.items()},
    },
    "gat": {"lin.weight": "fc.weight", "att_src": "attn_l", "att_dst": "attn_r", "bias": "bias"},
    "gatv2": {
        "att": "attn",
        **{f"lin_l.{kind}": f"fc_src.{kind}" for kind in ("weight", "bias")},
        **{f"lin_r.{kind}": f"fc_dst.{kind}" for kind in ("weight", "bias")},
    },
    "gcn2": {"conv.weight1": "weight1", "bias": "bias"},
    "rgcn": {"weight": "linear_r.W", "comp": "linear_r.coeff", "root": "loop_weight", "bias": "h_bias"},
}


def load(model: Any, state: dict[str, torch.Tensor]) -> None:
    """Put parameters of ours into a model that `export.plain_model` made.

    Raises: RunError where they belong to another model.
    """
    names = our_names(model)
    own, wanted = model.state_dict(), {name.rstrip("'") for name in names.values()}
    if wanted != state.keys():
        raise RunError(f"the weights do not fit the model: {sorted(wanted ^ state.keys())[0]} is in one of them only")
    for theirs, ours in names.items():
        value = state[ours.removesuffix("'")]
        value = value.T if ours.endswith("'") else value
        if value.shape != own[theirs].shape and value.dim() == 1:  # a bias per head, of heads that are averaged
            value = value.view(-1, len(own[theirs])).mean(0)
        if value.shape != own[theirs].shape:
            raise RunError(f"{ours} is {list(value.shape)}, the model has {list(own[theirs].shape)}")
        own[theirs].copy_(value)


def our_names(model: Any) -> dict[str, str]:
    """Name of each parameter and buffer -> what ours is called."""
    names = {}
    for name in model.state_dict():
        words = name.removeprefix(model.prefix).split(".")
        if words[0] == "convs":
            ours = PARAMETERS[model.kind][".".join(words[2:])]
            names[name] = f"{model.prefix}convs.{words[1]}.{ours}"
        else:
            names[name] = name
    return names
