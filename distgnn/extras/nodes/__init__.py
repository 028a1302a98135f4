"""Exchange by nodes: a row crosses the network once per node.

plan.py       who receives, adds and sends for whom
exchange.py   the exchange
graph.py      the graph whose exact exchanges it makes
"""
