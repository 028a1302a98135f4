"""What a training step is made of: features, cluster batches and their stages, and the recipes that pick them."""
