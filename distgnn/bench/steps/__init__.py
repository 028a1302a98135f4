"""Ways to take a step, measured: time to a target accuracy."""
