"""Damaged files: one function per way to change the bytes of a file, and which of them suit which kind of file."""

import gzip
import io
import json
import pickletools
import random
import struct
import zipfile

import numpy as np

NUMBERS = (
    0, 1, -1, 2, 3, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63), 10**12, 10**30,
    10**400,
)  # fmt: skip


def flip_bytes(content: bytes, rng: random.Random) -> bytes:
    """A few bytes become others; or a piece is cut out, doubled, or cut off."""
    data = bytearray(content)
    kind = rng.randrange(4)
    if not data or kind == 0:
        for _ in range(rng.randint(1, 4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 1:
        del data[rng.randrange(len(data)) :]
    else:
        begin = rng.randrange(len(data))
        piece = data[begin : begin + rng.randint(1, 64)]
        data[begin : begin + (0 if kind == 2 else len(piece))] = piece if kind == 2 else b""
    return bytes(data)


def change_json(content: bytes, rng: random.Random) -> bytes:
    """One value anywhere becomes another; or a key goes or is doubled under another name."""
    try:
        value = json.loads(content)
    except ValueError:
        return flip_bytes(content, rng)
    holders = []

    def walk(node) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, below in items:
            holders.append((node, key))
            walk(below)

    walk(value)
    if holders:
        node, key = rng.choice(holders)
        old = node[key]
        news = [*NUMBERS, None, True, "", "../../etc/passwd", "x" * 300, [], {}, [[]], 1e308, -0.5, float("nan")]
        if isinstance(old, int) and not isinstance(old, bool):
            news += [old + 1, old - 1, old * 2, -old]
        if isinstance(node, dict) and rng.random() < 0.2:
            del node[key]
        else:
            node[key] = rng.choice(news)
    return json.dumps(value).encode()


def change_header(content: bytes, rng: random.Random) -> bytes:
    """Another shape, type or order in the header of a .npy file, its length kept right."""
    if not _holds_what_it_says(content):
        return flip_bytes(content, rng)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception:
        return flip_bytes(content, rng)
    shape = list(array.shape) or [1]
    place = rng.randrange(len(shape))
    shape[place] = rng.choice([*NUMBERS, shape[place] + 1, max(shape[place] - 1, 0)])
    if rng.random() < 0.2:
        shape = [*shape, rng.choice(NUMBERS)]
    kinds = [array.dtype.str] * 3 + "<f8 <i8 |b1 |O <U9 >i4 <c16 |V1000000 [('a','<i4')] |S0".split()
    descr = rng.choice(kinds)
    text = f"{{'descr': {descr!r}, 'fortran_order': {rng.random() < 0.2}, 'shape': {tuple(shape)}, }}"
    if descr.startswith("["):
        text = text.replace(repr(descr), descr)
    header = text.encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.tobytes()


def change_values(content: bytes, rng: random.Random) -> bytes:
    """A few numbers of an array become extreme ones; the header stays."""
    if not _holds_what_it_says(content):  # already hostile: making it would take what it promises
        return flip_bytes(content, rng)
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False).copy()
    except Exception:
        return flip_bytes(content, rng)
    flat = array.reshape(-1)
    for _ in range(rng.randint(1, 3)):
        if len(flat):
            place = rng.randrange(len(flat))
            if array.dtype.kind == "f":
                flat[place] = rng.choice([np.nan, np.inf, -1e30, 0.0])
            elif array.dtype.kind in "iu":
                info = np.iinfo(array.dtype)
                flat[place] = min(max(rng.choice([*NUMBERS, int(flat[place]) + 1, len(flat)]), info.min), info.max)
            elif array.dtype.kind == "b":
                flat[place] = not flat[place]
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _holds_what_it_says(content: bytes) -> bool:
    stream = io.BytesIO(content)
    try:
        np.lib.format.read_magic(stream)
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    except Exception:
        return False
    return int(np.prod(shape, dtype=object)) * max(dtype.itemsize, 1) <= len(content)


def change_gzip(content: bytes, rng: random.Random) -> bytes:
    """The text inside is changed and packed again; now and then it is a bomb."""
    try:
        text = gzip.decompress(content)
    except Exception:
        return flip_bytes(content, rng)
    if rng.random() < 0.01:
        return gzip.compress(b"1,1\n" * (1 << 20), 1)
    return gzip.compress(change_text(text, rng), 1)


def change_text(content: bytes, rng: random.Random) -> bytes:
    """A number of a table or a setting becomes another, or a line is doubled, cut or nonsense."""
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        lines[place] = str(rng.choice(NUMBERS)).encode()
    elif kind == 1:
        fields = lines[place].replace(b"=", b",").split(b",")
        fields[rng.randrange(len(fields))] = str(
            rng.choice([*NUMBERS, "nan", "1e400", "", "x", "../../x", "'", "[[", '"""'])
        ).encode()
        lines[place] = (b" = " if b"=" in lines[place] else b",").join(fields)
    elif kind == 2:
        lines[place:place] = [lines[place]] * rng.randint(1, 3)
    elif kind == 3:
        del lines[place]
    else:
        return flip_bytes(content, rng)
    return b"\n".join(lines)


def change_zip(content: bytes, rng: random.Random) -> bytes:
    """A member of an .npz is changed, renamed, packed, or left out."""
    return _change_archive(content, rng, (change_header, change_values, flip_bytes))


def change_members(content: bytes, rng: random.Random) -> bytes:
    """The same for an archive of tables."""
    return _change_archive(content, rng, (change_gzip, flip_bytes))


def _change_archive(content: bytes, rng: random.Random, kinds: tuple) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return flip_bytes(content, rng)
    if not members:
        return flip_bytes(content, rng)
    name = rng.choice(list(members))
    kind = rng.randrange(4)
    if kind == 0:
        members[rng.choice(["../../x.npy", "/x.npy", "y.npy", "mag/../../../x", "mag/raw"])] = members.pop(name)
    elif kind == 1:
        members.pop(name)
    else:
        members[name] = rng.choice(kinds)(members[name], rng)
    out = io.BytesIO()
    packing = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(out, "w", packing) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return out.getvalue() if rng.random() < 0.9 else flip_bytes(out.getvalue(), rng)


def change_safetensors(content: bytes, rng: random.Random) -> bytes:
    """Another header (names, shapes, offsets, its length) in front of the same bytes."""
    length = struct.unpack("<Q", content[:8])[0] if len(content) >= 8 else 0
    if not 0 < length < len(content):
        return flip_bytes(content, rng)
    header, rest = content[8 : 8 + length], content[8 + length :]
    header = change_json(header, rng)
    said = len(header) if rng.random() < 0.8 else rng.choice([n for n in NUMBERS if 0 <= n < 2**64])
    return struct.pack("<Q", said) + header + rest


def change_pickle(content: bytes, rng: random.Random) -> bytes:
    """An instruction goes, comes twice, or gets another argument of the same length."""
    try:
        places = [place for _, _, place in pickletools.genops(content)] + [len(content)]
    except Exception:
        return flip_bytes(content, rng)
    number = rng.randrange(len(places) - 1)
    begin, end = places[number], places[number + 1]
    kind = rng.randrange(3)
    if kind == 2 and end - begin in (2, 3, 5, 9):
        changed = bytes(rng.choice((0, 1, 127, 255)) for _ in range(end - begin - 1))
        return content[: begin + 1] + changed + content[end:]
    return content[:begin] + content[begin:end] * (2 if kind else 0) + content[end:]


PICKLES = (".x", ".y", ".tx", ".ty", ".allx", ".ally", ".graph")
MUTATIONS = {
    **dict.fromkeys(PICKLES, (change_pickle, change_pickle, flip_bytes)),
    ".index": (change_text, flip_bytes),
    ".log": (flip_bytes,),
    ".npy": (change_header, change_values, change_values, flip_bytes),
    ".npz": (change_zip, change_zip, flip_bytes),
    ".zip": (change_members, change_members, flip_bytes),
    ".json": (change_json, change_json, flip_bytes),
    ".jsonl": (change_text, flip_bytes),
    ".toml": (change_text, change_text, flip_bytes),
    ".gz": (change_gzip, change_gzip, flip_bytes),
    ".csv": (change_text, flip_bytes),
    ".txt": (change_text, flip_bytes),
    ".safetensors": (change_safetensors, flip_bytes),
}
