"""What a step is made of: settings of features, and of what else a step is."""
