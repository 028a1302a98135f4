"""cluster - merge - refine, the default method."""
