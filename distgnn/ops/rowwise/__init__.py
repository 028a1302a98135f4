"""Differentiable work on rows without arcs: products, norms, activation, dropout, loss, sparse features."""
