"""Differentiable dense work on rows: products, activation, dropout, sparse features."""
