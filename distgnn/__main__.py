"""`python -m distgnn` is the program `distgnn`, also where its script is not on the PATH."""

from distgnn.cli import program

if __name__ == "__main__":
    program()
