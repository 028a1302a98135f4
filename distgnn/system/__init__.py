"""Processes, hosts and files: launching ranks, atomic writes, sizes of memory."""
