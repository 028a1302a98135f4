"""`python -m distgnn.cli`: how launched ranks start."""

import sys

from distgnn.cli import main

sys.exit(main())
