"""How ranks end: together after an error, quickly at the end, and by a watchdog in loops of one's own."""
