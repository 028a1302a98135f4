"""How ranks end: quickly at the end, and by a watchdog in loops of one's own."""
