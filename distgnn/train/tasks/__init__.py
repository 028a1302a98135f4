"""What a run learns: loss, metrics and predictions of each task (`distgnn/config/task.py` lists them)."""
