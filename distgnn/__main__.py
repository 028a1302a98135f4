"""`python -m distgnn` is the program `distgnn`, also where its script is not on the PATH."""

import sys

from distgnn.cli import main

if __name__ == "__main__":
    sys.exit(main())
