"""Columns: ranks share a part; each has some of its rows, and for aggregation some columns of all of them.

graph.py         the graph that a model sees: a rank's rows of the part
group.py         all-to-alls among the ranks that share a part
aggregation.py   a sum of neighbours between two of them
"""
