"""What recipe fast takes besides where K-FAC is here: options, by the name of the recipe's row."""

from typing import Any

STEPS: dict[str, Any] = {"optimizer": "kfac", "lr": 0.01}
FAST = {"sparse features": STEPS, "dense features": STEPS}
