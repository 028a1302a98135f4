"""Work on rows without arcs: products, bias + norm + ReLU + dropout, cross entropy."""
