"""Graphs in memory as other libraries hold them, read by asking for their arrays."""
