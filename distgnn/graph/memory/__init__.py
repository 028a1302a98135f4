"""What a rank's memory is at its peak, block by block and by name."""

from distgnn.graph.memory.ledger import MemoryLedger, blocks_of
from distgnn.graph.memory.report import MemoryReport

__all__ = ["MemoryLedger", "MemoryReport", "blocks_of"]
