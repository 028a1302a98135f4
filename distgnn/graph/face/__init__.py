"""The face of a graph that scripts see: rows of all ranks, and the habits of PyG's Data."""
