"""K-FAC: steps along the natural gradient, with the curvature of each weight as a Kronecker product of two factors.

recorder.py     sums x'x and g'g of the rows that a weight reads and whose gradient it makes, over all ranks
inverses.py     damped inverses of the factors, each made by one rank
optimizer.py    the step: inverses on both sides of a gradient, trust ratio, momentum; damping; checkpoints
"""
