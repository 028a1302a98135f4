"""Input features as a model sees them."""
