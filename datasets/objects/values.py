"""Values as users have them, as the arrays that `GraphData` holds: nothing is changed that is not said.

Legend: N vertices, E edges, C classes.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError

WHOLE_FLOAT32 = 1 << 24  # whole numbers beyond are rounded
SHOWN = 40  # characters of a value in an error


def as_array(values: Any, name: str = "values") -> np.ndarray:
    """A numpy array of a list, an array, a torch tensor (bfloat16, which numpy lacks, becomes float32) or a column."""
    try:
        array = _plain_array(values)
    except InputError:
        raise
    except Exception as error:  # each library has its own: sparse, quantised and meta tensors, lists of lists
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"{name}: a {type(values).__name__} makes no array of numbers ({reason})") from error
    if np.ma.isMaskedArray(array):
        hidden = np.ma.getmaskarray(array)
        if hidden.any():
            fail_at(name, in_rows(hidden), "{} is masked out; fill it, as array.filled(0)")
        array = np.ma.getdata(array)
    return plain_objects(array, name) if array.dtype == object else array


def _plain_array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()
        return np.asarray((tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy())
    if hasattr(values, "to_numpy"):  # pandas and polars
        return np.asarray(values.to_numpy())
    if isinstance(values, set | frozenset | range):
        values = sorted(values)
    if isinstance(values, list | tuple) and any(hasattr(value, "detach") for value in values):
        values = [as_array(value) for value in values]
    array = np.asanyarray(values)
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        array = np.array(values, dtype=object)  # numpy makes texts of numbers and of NaN that stand among texts
    return array


def plain_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Numbers, texts or rows of numbers of an array of Python objects; raises InputError with the first that is none.

    Notes: missing entries (None, NaN, NA) stay objects: what they mean is for the field to say.
    """
    flat = list(array.flat)
    missing = np.array([is_missing(value) for value in flat], dtype=bool).reshape(array.shape)
    known = [value for value in flat if not is_missing(value)]
    if missing.any():
        if not known or all(isinstance(value, str) for value in known):
            return array
        if all(_is_number(value) for value in known):
            return np.array([np.nan if is_missing(value) else float(value) for value in flat]).reshape(array.shape)
        fail_at(name, in_rows(missing), "{} has no value (None or NaN)")
    if all(isinstance(value, str) for value in known):
        return array.astype(str)
    if all(_is_number(value) for value in known):
        if all(isinstance(value, bool | np.bool_) for value in known):
            return array.astype(bool)
        whole = all(isinstance(value, int | np.integer | np.bool_) for value in known)
        if whole and any(abs(int(value)) >= 1 << 63 for value in known):
            bad = np.array([abs(int(value)) >= 1 << 63 for value in flat])
            fail_at(name, in_rows(bad), "{} holds a number of more than 63 bits")
        return np.array(flat, dtype=None if not whole else np.int64).reshape(array.shape)
    if array.ndim == 0:
        raise InputError(f"{name}: a {type(flat[0]).__name__} is no number, text or row of numbers")
    rows = [as_array(value, name) if not isinstance(value, str) else np.array(value) for value in flat]
    first = rows[0]
    other = np.array([row.shape != first.shape or row.dtype.kind not in "biufU" for row in rows])
    text = np.array([row.dtype.kind == "U" for row in rows])
    if other.any() or (text.any() and not text.all()) or array.ndim != 1 or first.dtype.kind == "U":
        bad = other | (text != text[0])
        place = int(np.argmax(bad)) if bad.any() else 0
        if array.ndim == 1 and not text.any():
            raise InputError(
                f"{name}: values of different lengths: row {place} has shape {list(rows[place].shape)}, "
                f"row 0 {list(first.shape)}"
            )
        raise InputError(
            f"{name}: row {place} holds {str(flat[place])[:SHOWN]!r}, others {str(flat[0])[:SHOWN]!r}: "
            "give numbers, or texts, in all rows"
        )
    return np.stack(rows)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)


def is_missing(value: Any) -> bool:
    """None, NaN, or what pandas has for no value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def refuse_missing(name: str, array: np.ndarray, text: str = "{} has no value (None or NaN)") -> None:
    """Raise InputError with the first row without a value, where an array of objects has any."""
    if array.dtype == object:
        missing = np.array([is_missing(value) for value in array.flat], dtype=bool).reshape(array.shape)
        if missing.any():
            fail_at(name, in_rows(missing), text)


def in_rows(where: np.ndarray) -> np.ndarray:
    """[n] bool: the rows that have any entry of [n, …] bool."""
    return np.asarray(where.any(axis=tuple(range(1, where.ndim))) if where.ndim > 1 else where)


def fail_at(name: str, bad: np.ndarray, text: str) -> None:
    """Raise InputError with the first bad row in place of {}, and how many there are."""
    row, count = int(np.argmax(bad)), int(np.count_nonzero(bad))
    more = f" ({count} such rows)" if count > 1 else ""
    error = InputError(f"{name}: {text.format(f'row {row}')}{more}")
    error.count = count
    raise error


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Numbers of any kind, [n] or [n, D]. Raises: InputError for text, dates, complex numbers and missing values."""
    array = as_array(values, name)
    refuse_missing(name, array)
    if array.dtype.kind not in "biuf":
        shown = str(array.flat[0])[:SHOWN] if array.size else ""
        what = f"text, as {shown!r}" if array.dtype.kind in "US" else f"{array.dtype}"
        raise InputError(f"{name}: expected numbers, found {what}; make numbers of it, or leave it out")
    return array


def as_float32(name: str, values: Any, findings: Findings) -> np.ndarray:
    """Numbers that float32 holds: float64 and floats of other widths become float32, whole numbers stay."""
    array = as_numbers(name, values)
    if array.dtype.kind == "f" and array.dtype.itemsize > 4 and array.size:
        with np.errstate(over="ignore", under="ignore"):
            narrow = array.astype(np.float32)
        bad = np.isinf(narrow) & np.isfinite(array)
        if bad.any():
            fail_at(name, in_rows(bad), "{} holds a number beyond float32's 3.4e38; scale it")
        add_vanished(name, array[(narrow == 0) & (array != 0)], findings)
        return narrow
    return array


def add_vanished(name: str, lost: np.ndarray, findings: Findings) -> None:
    """Write down which numbers of an array are 0 as float32, and were not before."""
    if len(lost):
        more = f" ({len(lost)} such numbers)" if len(lost) > 1 else ""
        text = f"{name} holds {lost[0]:.4g}, which is 0 in float32; scale it{more}"
        findings.add("caution", name, text, len(lost))


def as_rows(name: str, values: Any, findings: Findings) -> Any:
    """Features: [n, D], a list of numbers as one column; sparse matrices of scipy and torch as CSR."""
    sparse = sparse_matrix(values)
    if sparse is not None:
        matrix = scipy.sparse.csr_matrix(sparse)
        matrix.data = as_float32(name, matrix.data, findings)
        return matrix
    array = as_float32(name, values, findings)
    return array[:, None] if array.ndim == 1 else array


def sparse_matrix(values: Any) -> Any:
    """A scipy matrix of a sparse matrix of scipy, torch, `torch_sparse` or `dgl.sparse`; None for anything else.

    Raises: InputError where its arrays do not belong together: scipy's loops would read and write outside them.
    Notes: torch's entries that are given twice are summed, as torch does.
    """
    try:
        matrix = _as_scipy(values)
        form = getattr(matrix, "format", None)
        if form == "coo":
            scipy.sparse.coo_array((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape)
        elif form in ("csr", "csc", "bsr"):
            arrays = matrix.data, matrix.indices, matrix.indptr
            check_compressed(getattr(scipy.sparse, f"{form}_array")(arrays, shape=matrix.shape))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"the arrays of this {type(values).__name__} do not belong together: {error}") from None
    return matrix


def check_compressed(matrix: Any) -> None:
    """Raise ValueError unless the arrays of a CSR, CSC or BSR matrix belong together.

    Notes: scipy does not look at pointers where the last one is 0, and its differences of pointers may overflow.
    """
    matrix.check_format(full_check=True)
    if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
        raise ValueError("index pointer values must form a non-decreasing sequence")


def _as_scipy(values: Any) -> Any:
    if scipy.sparse.issparse(values):
        return values
    layout = str(getattr(values, "layout", ""))
    if hasattr(values, "detach") and layout.startswith("torch.sparse"):
        tensor = values.detach().cpu()
        if layout == "torch.sparse_coo":
            tensor = tensor.coalesce()
            if tensor.dense_dim() or tensor.sparse_dim() != 2:
                raise InputError(f"a sparse tensor of shape {list(tensor.shape)} is no matrix of numbers")
            rows, columns = tensor.indices().numpy()
            data = as_array(tensor.values())
            return scipy.sparse.coo_matrix((data, (rows, columns)), shape=tuple(tensor.shape))
        if layout in ("torch.sparse_csr", "torch.sparse_csc") and tensor.dim() == 2 and tensor.values().dim() == 1:
            by_rows = layout == "torch.sparse_csr"
            pointers = tensor.crow_indices() if by_rows else tensor.ccol_indices()
            indices = tensor.col_indices() if by_rows else tensor.row_indices()
            make = scipy.sparse.csr_matrix if by_rows else scipy.sparse.csc_matrix
            arrays = (as_array(tensor.values()), indices.numpy(), pointers.numpy())
            return make(arrays, shape=tuple(tensor.shape))
        raise InputError(f"a tensor of layout {layout} and shape {list(tensor.shape)} is no matrix: to_sparse_coo()")
    if type(values).__name__ in ("SparseTensor", "SparseMatrix") and callable(getattr(values, "coo", None)):
        found = values.coo()  # of `torch_sparse` (row, col, value), of `dgl.sparse` (row, col)
        rows, columns = as_array(found[0]), as_array(found[1])
        numbers = found[2] if len(found) > 2 else getattr(values, "val", None)
        data = np.ones(len(rows), np.float32) if numbers is None else as_array(numbers)
        shape = tuple(values.sizes()) if callable(getattr(values, "sizes", None)) else tuple(values.shape)
        return scipy.sparse.coo_matrix((data, (rows, columns)), shape=shape)
    return None


def as_ids(name: str, values: Any) -> np.ndarray:
    """Vertex ids: whole numbers of any type, also where they are stored as floats, int64 or a narrower signed type."""
    array = as_array(values, name)
    refuse_missing(name, array, "{} has no vertex (None or NaN): take such rows out")
    if array.dtype.kind == "f" and array.size:
        flat = array.reshape(len(array), -1)
        bad = np.isnan(flat).any(axis=1)
        if bad.any():
            fail_at(name, bad, "{} has no vertex (NaN): take such rows out")
        most = 2.0 ** (np.finfo(array.dtype).nmant + 1)
        whole = ((flat == np.rint(flat)) & (np.abs(flat) < most)).all(axis=1)
        if not whole.all():
            held = flat[int(np.argmin(whole))].tolist()
            fail_at(name, ~whole, f"expected integer vertex ids, found {array.dtype}: {{}} holds {held}")
        return array.astype(np.int64)
    if array.dtype.kind == "u":
        if array.dtype.itemsize == 8 and array.size and int(array.max()) >= 1 << 63:
            bad = (array >= np.uint64(1 << 63)).reshape(len(array), -1).any(axis=1)
            fail_at(name, bad, "{} holds a vertex id of 64 bits; dg.renumber takes other ids")
        return array.astype(np.int64)
    return array


def as_split(name: str, values: Any, num_nodes: int, is_mask: bool = False) -> np.ndarray:
    """Ids of a split of a list of ids, or of a mask: bool, or 0 and 1 in any type, [N] or [N, 1].

    Args: is_mask: its name says that it is a mask.
    Notes: three or more numbers that are all 0 or 1 are a mask: as ids, some would be there twice.
    """
    array = as_array(values, name)
    refuse_missing(name, array)
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim == 2 and array.shape[0] == num_nodes:
        raise InputError(
            f"{name}: expected a mask [{num_nodes}], found {list(array.shape)}; of several masks choose one column: "
            "mask[:, 0]"
        )
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        raise InputError(f"{name}: expected vertex ids or a mask, found {array.dtype} {list(array.shape)}")
    if is_mask and len(array) == num_nodes:
        bad = ~((array == 0) | (array == 1))
        if bad.any():
            fail_at(name, bad, f"a mask is 0 and 1, or False and True: {{}} holds {array[int(np.argmax(bad))]}")
    elif not looks_like_mask(array):
        return as_ids(name, array).astype(np.int64)
    if len(array) != num_nodes and array.dtype != bool:
        again = np.setdiff1d(np.arange(len(array)), np.unique(array, return_index=True)[1])[0]
        raise InputError(
            f"{name}: row {again} repeats vertex {array[again]:g}; name each vertex once (a mask would have "
            f"{num_nodes} rows, this has {len(array)})"
        )
    if len(array) != num_nodes:
        raise InputError(f"{name}: a mask must have shape [{num_nodes}], found {list(array.shape)}")
    return np.flatnonzero(array)


def looks_like_mask(array: np.ndarray) -> bool:
    """Bools, or numbers that can only be a mask."""
    if array.dtype == bool:
        return True
    return array.ndim == 1 and len(array) > 2 and array.dtype.kind in "iuf" and not ((array != 0) & (array != 1)).any()


def rows_of(field: str, values: Any) -> int | None:
    """How many vertices a column speaks of; None for a list of ids, and what has no rows."""
    if sparse_matrix(values) is not None:
        return int(values.shape[0])
    array = as_array(values, field)
    if array.ndim == 0:
        return None
    if field in ("train", "valid", "test"):
        squeezed = array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array
        return len(squeezed) if looks_like_mask(squeezed) else None
    return len(array)


def refuse_rows_of_edges(rows: dict[str, int | None], named: int, num_edges: int) -> None:
    """Raise InputError where only labels and masks say how many vertices there are, and they have a row per edge.

    Args: rows: field -> rows of its column; named: vertices that edges name.
    """
    counted = [field for field, count in rows.items() if count is not None]
    if counted and named < num_edges and all(rows[field] == num_edges for field in counted):
        if not {*counted} - {"labels", "train", "valid", "test"}:
            raise InputError(
                f"{counted[0]}: {num_edges} rows, one per edge, and edges name {named} vertices: give labels of edges "
                f"as train_edges and train_edge_labels; or num_nodes, if there are {num_edges} vertices"
            )


def as_codes(name: str, values: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Whole numbers from 0, and names of them where the values are texts: the texts in order."""
    array = as_array(values, name)
    refuse_missing(name, array)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype.kind in "US" and array.ndim == 1:
        names, codes = np.unique(array.astype(str), return_inverse=True)
        return codes.astype(np.int64), tuple(names.tolist())
    if array.dtype.kind == "f" and array.size and not np.array_equal(array, np.rint(array)):
        fail_at(name, array != np.rint(array), "expected whole numbers: {} is none")
    return (array.astype(np.int64) if array.dtype.kind in "fbu" else array), ()


def name_list(names: Iterable[Any]) -> str:
    """Some names, in one line."""
    shown = [str(name)[:SHOWN] for name in names]
    return ", ".join(shown[:6] + ([f"… ({len(shown)})"] if len(shown) > 6 else []))
