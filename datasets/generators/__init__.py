"""Generated graphs, and the text that names one."""
