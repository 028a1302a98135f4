"""`python -m distgnn.cli`: how launched ranks start."""

from distgnn.cli import program

program()
