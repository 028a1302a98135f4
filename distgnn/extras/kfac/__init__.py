"""K-FAC: steps along the natural gradient, with the curvature of each weight as a Kronecker product of two factors.

recorder.py     sums x'x and g'g of the rows that a weight reads and whose gradient it makes, over all ranks
optimizer.py    the step: damped inverses on both sides of a gradient, trust ratio, momentum; checkpoints
"""
