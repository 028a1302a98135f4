"""What a cut is: edges to parts, vertices to owners, copies, one rank's arrays, exchange plans."""
