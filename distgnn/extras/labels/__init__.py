"""Labels beside a model: training labels as its input (label reuse), and Correct and Smooth of what it predicts."""
