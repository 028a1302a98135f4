"""To be written."""

if __name__ != "distgnn.partition":
    raise ImportError("this folder is the package distgnn.partition: import that name")
