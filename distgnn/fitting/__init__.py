"""`dg.fit`: a graph in memory is cut (the cut is kept), ranks train on it, and a result comes back."""
