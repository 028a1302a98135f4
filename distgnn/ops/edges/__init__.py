"""Messages made on arcs one by one, and softmax over in-arcs."""
