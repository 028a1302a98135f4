"""Launched ranks: started without a proxy, watched, ended with their launcher, started again. Faults: faults.py."""
