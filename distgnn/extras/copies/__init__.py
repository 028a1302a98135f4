"""Update on copies, the form of the DistGNN paper: every rank with a copy of a vertex computes it."""
