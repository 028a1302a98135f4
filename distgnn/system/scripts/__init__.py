"""What a user's script finds on ranks: files, states of random numbers, and how it is run."""
