"""Other people's methods: Libra, METIS, minimum vertex cover."""
