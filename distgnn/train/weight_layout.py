"""How weights lie in memory: the weight [D, I] of a linear layer as [I, D], the way its products read it.

    x W'        reads rows of W' [I, D]        its gradient x' g is made as [I, D] too

So nothing is turned round in a step: not the weight, for the product of sparse rows, and not its gradient, which torch
takes as it is where it lies like its parameter. With a first layer of thousands of columns that is most of what a step
on a small batch does beside its products. Shapes, names and values are as they were.
"""

import torch
from torch import nn


@torch.no_grad()
def lay_out(model: nn.Module) -> None:
    """Put the weights of all `nn.Linear` in this order, in place."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.weight.data = module.weight.data.t().contiguous().t()
