"""Other people's methods: Libra, HDRF, DBH, METIS, minimum vertex cover."""
