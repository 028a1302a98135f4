"""Dense work on rows: products, bias + ReLU + dropout, random masks."""
