"""The program's own optimisers: what one step does with summed gradients, and its state in checkpoints."""
