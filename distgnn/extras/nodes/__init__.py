"""Exchange by nodes: a row crosses the network once per node, and ranks of a node share memory.

groups.py        which ranks are a node
plan.py          who receives, adds and sends for whom
shared_rows.py   rows that all ranks of a node read and write
exchange.py      the exchange
graph.py         the graph whose exact exchanges it makes
"""
