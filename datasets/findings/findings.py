"""Findings: one table that every reader of graphs feeds, printed as lines, as one warning, or as a table.

| severity | means | line | Python | table |
|---|---|---|---|---|
| `wrong` | the graph is refused | the error | InputError | yes |
| `caution` | taken as it stands, but probably not what was meant | yes | `GraphWarning` | yes |
| `left out` | in the input, not in the graph | yes | `GraphWarning` | yes |
| `not needed` | in the input, not in the graph, as documented of this data set | yes | no | yes |
| `renamed` | taken from a name or form that was guessed | yes | `GraphNotice` | yes |
| `understood` | what a file of edges was read as | yes, first | no | yes |
| `note` | what only some models refuse | no | no | yes |
| `read` | taken from its usual name | no | no | yes |
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from distgnn.errors import DistGNNError, GraphNotice, GraphWarning

SEVERITIES = ("wrong", "caution", "left out", "not needed", "renamed", "understood", "note", "read")
MOST_LEFT = 12  # names in one line


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Args: field: of GraphData, or the name in the input; count: rows, entries or columns that it is about, 0 for none;
        text: what is wrong, where, and what to do.
    """

    severity: str
    field: str
    text: str
    count: int = 0


class Findings(list[Finding]):
    """The findings of one graph, in the order in which they were made.

    Args: collect: errors are kept as findings, and reading goes on; else they are raised.
    """

    def __init__(self, collect: bool = False) -> None:
        super().__init__()
        self.collect = collect

    def __repr__(self) -> str:
        counts = {kind: sum(one.severity == kind for one in self) for kind in SEVERITIES}
        return f"Findings({', '.join(f'{count} {kind}' for kind, count in counts.items() if count) or 'none'})"

    def add(self, severity: str, field: str, text: str, count: int = 0) -> None:
        finding = Finding(severity, field, text, count)
        if finding not in self:
            self.append(finding)

    @contextmanager
    def reading(self, field: str) -> Iterator[None]:
        """Keep the error of one field as a finding, where errors are collected."""
        try:
            yield
        except DistGNNError as error:
            if not self.collect:
                raise
            self.add("wrong", field, str(error), error.count)

    @property
    def wrong(self) -> list[Finding]:
        return [one for one in self if one.severity == "wrong"]

    def lines(self) -> list[str]:
        """What a file was understood as; one line for all that was renamed, one for all that was left out, one for each
        caution."""
        renamed = [one.text for one in self if one.severity == "renamed"]
        left = [one.text for one in self if one.severity in ("left out", "not needed")]
        said = [f"caution: {one.text}" for one in self if one.severity == "caution"]
        more = [f"and {len(left) - MOST_LEFT} more"] if len(left) > MOST_LEFT else []
        said = [f"left out: {', '.join(left[:MOST_LEFT] + more)}"] * bool(left) + said
        understood = [one.text for one in self if one.severity == "understood"]
        return understood + [", ".join(renamed)] * bool(renamed) + said

    def warn(self, name: str, stacklevel: int) -> None:
        """One Python warning of everything that has a line; a notice where nothing is lost or suspicious."""
        said = Findings()
        said += [one for one in self if one.severity not in ("not needed", "understood")]
        lines = said.lines()
        if lines:
            grave = any(one.severity in ("caution", "left out") for one in said)
            kind = GraphWarning if grave else GraphNotice
            warnings.warn(f"graph {name!r}: {'; '.join(lines)}", kind, stacklevel=stacklevel + 1)

    def table(self) -> str:
        """All findings, the gravest first, as text in columns."""
        ordered = sorted(self, key=lambda one: SEVERITIES.index(one.severity))
        rows = [("finding", "field", "count", "what, where, what to do")]
        rows += [(one.severity, one.field, f"{one.count:,}" if one.count else "", one.text) for one in ordered]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(
            f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows
        )
