"""Restarts with fewer ranks: a run goes on while a machine stays away, on parts that are merged."""
