"""`dg.predict`: what a trained model gives for every vertex."""
