"""To be written."""

if __name__ != "distgnn.datasets":
    raise ImportError("this folder is the package distgnn.datasets: import that name")
