"""What a rank's memory is at its peak, block by block and by name."""

from distgnn.graph.memory.ledger import MemoryLedger, MemoryReport, blocks_of

__all__ = ["MemoryLedger", "MemoryReport", "blocks_of"]
