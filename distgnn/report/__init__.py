"""`distgnn report`: runs, benchmarks and partitions as one HTML page that needs nothing but itself."""

from distgnn.report.page import make_page
from distgnn.report.read import Bench, Inputs, Parts, Run, read_inputs

__all__ = ["Bench", "Inputs", "Parts", "Run", "make_page", "read_inputs"]
