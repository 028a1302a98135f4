"""Power cuts: what may stand on a disk at any instant while a program writes, when only what was synced is sure to.

    with Recorder(folder) as disk: …       what the program does below `folder` is done, and remembered in order
    disk.states(random)                    (number of operations begun, what may be there then), as nested dicts

The model: contents of a file are sure once it was synced, names in a folder once the folder was. Of what was done
since, each name may have reached the disk or not, whatever came later; contents are the last synced ones, or a part of
newer ones. Stricter than ext4, which keeps names in order; as POSIX allows.

Source: the model of Pillai et al., OSDI'14 (ALICE), without blocks.
"""

import builtins
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Tree = dict[str, Any]  # name -> bytes or Tree


class Node:
    """A file (entries is None) or a folder."""

    def __init__(self, entries: dict[str, "Node"] | None = None):
        self.entries = entries
        self.synced: list[tuple[int, bytes]] = []  # (operation, contents)


class Recorder:
    """What a program does to files and folders below `folder`, which is sure at the beginning."""

    def __init__(self, folder: Path):
        self.folder = Path(folder).resolve()
        self.root = self._scan(self.folder)
        self.first = {node: dict(node.entries) for node in _folders(self.root)}
        self.steps: list[tuple] = []  # ("names", [(folder, name, node or None), …]) or ("sync", node)
        self._kept: list[tuple[Any, str, Any]] = []

    def _scan(self, path: Path) -> Node:
        if path.is_dir():
            return Node({below.name: self._scan(below) for below in path.iterdir()})
        node = Node()
        node.synced.append((0, path.read_bytes()))
        return node

    def __enter__(self) -> "Recorder":
        for holder, name in (
            (builtins, "open"),
            (os, "fsync"),
            (os, "mkdir"),
            (os, "rename"),
            (os, "replace"),
            (os, "unlink"),
            (shutil, "rmtree"),
        ):
            self._kept.append((holder, name, getattr(holder, name)))
            setattr(holder, name, self._wrapped(getattr(self, f"_{name}"), getattr(holder, name)))
        return self

    def __exit__(self, *_: object) -> None:
        for holder, name, original in self._kept:
            setattr(holder, name, original)
        for node, path in _files(self.root, self.folder):
            if not node.synced or path.read_bytes() != node.synced[-1][1]:
                node.synced.append((len(self.steps) + 1, path.read_bytes()))  # never sure, but it may be there

    def _wrapped(self, record, original):
        def call(*args, **kwargs):
            if "dir_fd" in kwargs:
                return original(*args, **kwargs)
            return record(original, *args, **kwargs)

        return call

    def _find(self, path) -> tuple[Node, str] | None:
        """The folder of a path below ours, and its name there."""
        try:
            *above, name = Path(os.path.abspath(os.fspath(path))).relative_to(self.folder).parts
        except (ValueError, TypeError):
            return None
        node = self.root
        for part in above:
            node = (node.entries or {}).get(part)
            if node is None:
                return None
        return node, name

    def _names(self, *changes: tuple[Node, str, Node | None]) -> None:
        self.steps.append(("names", changes))
        for folder, name, node in changes:
            if node is None:
                del folder.entries[name]
            else:
                folder.entries[name] = node

    def _open(self, original, file, mode="r", *args, **kwargs):
        stream = original(file, mode, *args, **kwargs)
        place = self._find(file) if isinstance(file, str | os.PathLike) else None
        if place and set(mode) & set("wax") and place[1] not in place[0].entries:
            self._names((*place, Node()))
        return stream

    def _fsync(self, original, descriptor) -> None:
        original(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor if isinstance(descriptor, int) else descriptor.fileno()}")
        place = self._find(path)
        node = self.root if Path(path) == self.folder else place and place[0].entries.get(place[1])
        if node:
            self.steps.append(("sync", node))
            if node.entries is None:
                node.synced.append((len(self.steps), Path(path).read_bytes()))

    def _mkdir(self, original, path, *args, **kwargs) -> None:
        original(path, *args, **kwargs)
        if place := self._find(path):
            self._names((*place, Node({})))

    def _rename(self, original, source, target) -> None:
        original(source, target)
        here, there = self._find(source), self._find(target)
        if here and there:
            node = here[0].entries[here[1]]
            self._names((*there, node), (*here, None))

    _replace = _rename

    def _unlink(self, original, path) -> None:
        original(path)
        if place := self._find(path):
            self._names((*place, None))

    def _rmtree(self, original, path, *args, **kwargs) -> None:
        place = self._find(path)
        node = place and place[0].entries.get(place[1])
        original(path, *args, **kwargs)
        if node:
            for folder in [*_folders(node)][::-1]:
                for name in list(folder.entries):
                    self._names((folder, name, None))
            self._names((*place, None))

    def states(self, rng: random.Random, each: int = 4) -> Iterator[tuple[int, Tree]]:
        """After each number of operations: all names that are not sure kept, none, and `each` random choices."""
        for count in range(len(self.steps) + 1):
            unsure = self._unsure(count)
            for kept in [set(unsure), set(), *({i for i in unsure if rng.random() < 0.5} for _ in range(each))]:
                yield count, self._state(count, set(unsure) - kept, rng)

    def _unsure(self, count: int) -> list[int]:
        """Numbers of the operations on names, of the first `count`, whose folders were not synced since."""
        synced: set[Node] = set()
        unsure = []
        for number in range(count - 1, -1, -1):
            kind, what = self.steps[number]
            if kind == "sync":
                synced.add(what)
            # A rename is one operation: it is sure with either of its folders.
            elif not any(folder in synced for folder, _, _ in what):
                unsure.append(number)
        return unsure[::-1]

    def _state(self, count: int, dropped: set[int], rng: random.Random) -> Tree:
        entries = {node: dict(names) for node, names in self.first.items()}
        for number in range(count):
            kind, what = self.steps[number]
            if kind == "names" and number not in dropped:
                removed = [(folder, name) for folder, name, node in what if node is None]
                moved = next((node for _, _, node in what if node is not None), None)
                if moved is not None and any(moved is not entries.get(f, {}).get(name) for f, name in removed):
                    continue  # renamed from a name that never reached the disk
                for folder, name, node in what:
                    if node is None:
                        entries.get(folder, {}).pop(name, None)
                    else:
                        entries.setdefault(folder, {})[name] = node
        return self._tree(self.root, entries, count, rng)

    def _tree(self, node: Node, entries: dict[Node, dict[str, Node]], count: int, rng: random.Random) -> Tree:
        found: Tree = {}
        for name, below in entries.get(node, {}).items():
            found[name] = self._contents(below, count, rng) if below.entries is None else None
            if found[name] is None:
                found[name] = self._tree(below, entries, count, rng)
        return found

    def _contents(self, node: Node, count: int, rng: random.Random) -> bytes:
        sure = [content for step, content in node.synced if step <= count]
        later = [content for step, content in node.synced if step > count]
        content = sure[-1] if sure else b""
        if later and rng.random() < 0.7:
            fewest = len(content) if later[0].startswith(content) else 0  # what was synced stays where it is added to
            content = later[0][: rng.randint(fewest, len(later[0]))]
        return content


def write_tree(folder: Path, tree: Tree) -> None:
    """Make a state on a disk."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in tree.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            write_tree(folder / name, content)


def _folders(node: Node) -> Iterator[Node]:
    if node.entries is not None:
        yield node
        for below in list(node.entries.values()):
            yield from _folders(below)


def _files(node: Node, path: Path) -> Iterator[tuple[Node, Path]]:
    for name, below in (node.entries or {}).items():
        if below.entries is None:
            yield below, path / name
        else:
            yield from _files(below, path / name)
