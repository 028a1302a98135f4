"""The compiled loop that turns the bytes of a table into numbers.

One call takes a block that ends at a line's end and writes its numbers, line by line, into `out`. A line is skipped if
it is blank or starts with # or %. Numbers stand apart by blanks, tabs, commas or semicolons. A carriage return is part
of a line's end; elsewhere it is refused: lines that end in it alone would be one row, or one comment.
"""

import numba
import numpy as np

GOOD, NOT_A_NUMBER, WRONG_COLUMNS, LONE_RETURN = 0, 1, 2, 3
_NEWLINE, _RETURN, _BLANK, _TAB, _COMMA, _SEMICOLON = 10, 13, 32, 9, 44, 59
_HASH, _PERCENT, _PLUS, _MINUS, _DOT, _ZERO, _NINE = 35, 37, 43, 45, 46, 48, 57
# Powers of ten that float64 holds exactly.
_POWERS = 10.0 ** np.arange(23)


@numba.njit(cache=True, nogil=True, inline="always")
def _is_end(byte: int) -> bool:
    return byte == _NEWLINE or byte == _RETURN or byte == _BLANK or byte == _TAB or byte == _COMMA or byte == _SEMICOLON


@numba.njit(cache=True, nogil=True)
def _scan_int(text: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """(value, position after it); the position is negative where there is no whole number below 2^63."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    value, digits = 0, 0
    while at < end and _ZERO <= text[at] <= _NINE:
        value = value * 10 + (text[at] - _ZERO)
        at += 1
        digits += 1
    if digits == 0 or digits > 18 or (at < end and not _is_end(text[at])):
        return 0, -1
    return (-value if negative else value), at


@numba.njit(cache=True, nogil=True)
def _scan_word(text: np.ndarray, at: int, end: int, negative: bool) -> tuple[float, int]:
    """nan, inf or infinity in any case."""
    begin = at
    while at < end and not _is_end(text[at]):
        at += 1
    first, length = text[begin] | 32, at - begin
    if first == 110 and length == 3 and text[begin + 1] | 32 == 97 and text[begin + 2] | 32 == 110:
        return np.nan, at
    if first == 105 and (length == 3 or length == 8) and text[begin + 1] | 32 == 110 and text[begin + 2] | 32 == 102:
        return (-np.inf if negative else np.inf), at
    return 0.0, -1


@numba.njit(cache=True, nogil=True)
def _scan_exponent(text: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """(power of ten, position after it); the position is negative where there are no digits."""
    at += 1
    down = at < end and text[at] == _MINUS
    if at < end and (down or text[at] == _PLUS):
        at += 1
    value, digits = 0, 0
    while at < end and _ZERO <= text[at] <= _NINE:
        value = min(value * 10 + (text[at] - _ZERO), 9999)
        at += 1
        digits += 1
    return (-value if down else value), (at if digits else -1)


@numba.njit(cache=True, nogil=True)
def _scale(mantissa: float, exponent: int) -> float:
    """mantissa · 10^exponent; exact up to 2^53 and 10^22, else within a few units of float64's last place."""
    if -22 <= exponent < 0:
        return mantissa / _POWERS[-exponent]
    if 0 <= exponent <= 22:
        return mantissa * _POWERS[exponent]
    return mantissa * 10.0**exponent if mantissa else 0.0


@numba.njit(cache=True, nogil=True)
def _scan_float(text: np.ndarray, at: int, end: int) -> tuple[float, int]:
    """(value, position after it); the position is negative where there is no number. An empty field is NaN."""
    if _is_end(text[at]):
        return np.nan, at
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    if at < end and text[at] | 32 >= 97:
        return _scan_word(text, at, end, negative)
    mantissa, exponent, digits, point = np.int64(0), 0, 0, False
    while at < end and (_ZERO <= text[at] <= _NINE or (text[at] == _DOT and not point)):
        if text[at] == _DOT:
            point = True
        else:
            digits += 1
            # Digits beyond the 18th do not change a float64: they only move the decimal point.
            if mantissa < 100000000000000000:
                mantissa = mantissa * 10 + (text[at] - _ZERO)
                if point:
                    exponent -= 1
            elif not point:
                exponent += 1
        at += 1
    if digits and at < end and text[at] | 32 == 101:
        power, at = _scan_exponent(text, at, end)
        exponent += power
    if digits == 0 or at < 0 or (at < end and not _is_end(text[at])):
        return 0.0, -1
    value = _scale(float(mantissa), exponent)
    return (-value if negative else value), at


@numba.njit(cache=True, nogil=True)
def _is_lone(text: np.ndarray, at: int, end: int) -> bool:
    """Is this a carriage return, and not one of a line's end?"""
    return text[at] == _RETURN and at + 1 < end and text[at + 1] != _NEWLINE and text[at + 1] != _RETURN


@numba.njit(cache=True, nogil=True)
def _skip_blanks(text: np.ndarray, at: int, end: int) -> int:
    while at < end and (
        text[at] == _BLANK or text[at] == _TAB or (text[at] == _RETURN and not _is_lone(text, at, end))
    ):
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def _is_plain(text: np.ndarray, at: int, end: int) -> bool:
    """Is this number as Python writes an int: digits, none of them a 0 in front, after a minus or nothing?"""
    negative = text[at] == _MINUS
    at += negative
    if text[at] == _ZERO and (negative or end - at > 1):
        return False
    for place in range(at, end):
        if not _ZERO <= text[place] <= _NINE:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def scan_table(text: np.ndarray, columns: int, floats: bool, plain: int, out: np.ndarray) -> tuple[int, int, int, int]:
    """Numbers of a block of whole lines.

    Args: text uint8 [B]; columns, numbers per line (0: as many as the first line has); floats, else whole numbers;
        plain, a bit for each column whose numbers must be plain; out [B // 2 + 1] int64, or a float type.
    Returns: numbers written, lines seen, columns, status (GOOD or what is wrong with the last line seen).
    """
    at, end, count, lines = 0, len(text), 0, 0
    while at < end:
        lines += 1
        at = _skip_blanks(text, at, end)
        if at < end and (text[at] == _HASH or text[at] == _PERCENT):
            while at < end and text[at] != _NEWLINE and not _is_lone(text, at, end):
                at += 1
        in_line, more = 0, at < end and text[at] != _NEWLINE
        while more:
            if text[at] == _RETURN:
                return count, lines, columns, LONE_RETURN
            begin = at
            if floats:
                real, at = _scan_float(text, at, end)
                out[count] = real
            else:
                whole, at = _scan_int(text, at, end)
                out[count] = whole
            if at < 0 or (plain >> in_line & 1 and not _is_plain(text, begin, at)):
                return count, lines, columns, NOT_A_NUMBER
            count += 1
            in_line += 1
            at = _skip_blanks(text, at, end)
            more = at < end and text[at] != _NEWLINE
            if more and (text[at] == _COMMA or text[at] == _SEMICOLON):
                at = _skip_blanks(text, at + 1, end)
                if at == end or (in_line == columns and text[at] == _NEWLINE):
                    more = False
        if in_line and columns == 0:
            columns = in_line
        if in_line and in_line != columns:
            return count, lines, columns, WRONG_COLUMNS
        at += 1
    return count, lines, columns, GOOD
