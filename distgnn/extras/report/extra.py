"""What the report attaches: the command."""

from distgnn.config.extras import Extra

EXTRA = Extra(commands={"report": "command:report"})
