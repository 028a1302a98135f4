"""Moving edges, groups of edges and vertices between parts: the copy counts and the prices."""
