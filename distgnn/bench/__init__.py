"""Measurements that stay in the program, behind `distgnn bench` and `distgnn calibrate`."""
