"""Launched ranks: started, watched, ended with their launcher, started again. Faults: docs/internals/faults.md."""
