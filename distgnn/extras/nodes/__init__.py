"""Exchange by nodes: a row crosses the network once per node."""
