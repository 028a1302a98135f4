"""`distgnn report`: runs, benchmarks and partitions as one HTML page that needs nothing but itself."""

from distgnn.report.read import Bench, Inputs, Parts, Run, read_inputs
from distgnn.report.runs import make_page

__all__ = ["Bench", "Inputs", "Parts", "Run", "make_page", "read_inputs"]
