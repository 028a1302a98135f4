"""The errors a user can cause. The command line prints them as one line and exits with code 2."""


class DistGNNError(Exception):
    """Base of every error that is the input's fault: what was wrong, where, and what to do."""


class InputError(DistGNNError, ValueError):
    """An argument, option or input graph is wrong."""


class GraphFormatError(DistGNNError, ValueError):
    """A graph folder, OGB download or array file is damaged or not what its reader expects."""


class PartitionFormatError(DistGNNError, ValueError):
    """A partition folder is damaged, from another version, or not one: says which file and what."""


class RunError(DistGNNError, RuntimeError):
    """A run cannot go on: wrong rank count, no MPI library, a loss that is not a number."""
