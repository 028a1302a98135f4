"""The run folder, logs, the machine, signals, hangs and memory of a run."""
