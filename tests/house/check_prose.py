"""Count what makes the documentation hard to read: `python tests/house/check_prose.py`; part of `make lint`.

Prose is what is left of a page without code blocks, tables and comments. The end of a paragraph or of a list item ends
a sentence. A word has a letter or a digit; in sentences, code is one word. Pages that a program writes are in no sum.
The exit code is 1 where a limit is passed.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import check_links

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS_OF_ALL = 60_000
MOST_PHRASES = 60  # that stand for a noun, in pages and in the package's source
MEAN_WORDS, MOST_WORDS = 14, 35  # of a sentence
MOST_NUMBERS = 25  # outside tables and code in README
MOST_LINES = {"README.md": 140, "docs/LOG.md": 150}
MOST_GUIDE_WORDS = 11_000
MOST_REPORTS = 18  # pages in docs/benchmarks, the index among them

MADE = re.compile(r"<!-- options -->.*?<!-- end -->", re.DOTALL)  # a program writes it
FENCE = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
BLOCK = re.compile(r"^ *(?:[-*] |\d+\. |#)")
END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[\"'(*\[]*[A-Z0-9])")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|vs|et al|cf)\.")
PHRASE = re.compile(r"\b(?:so many|that of|those of)\b", re.IGNORECASE)
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")

# Stems of American spellings. Names (`optimizer=`, `dg.DistributedOptimizer`) stand in code, where nobody looks; help
# texts cannot mark them, so `standardize`, the name of a step, is none of these.
AMERICAN = re.compile(
    r"\b(?:(?:normal|optim|organ|recogn|synchron|initial|serial|quant|minim|maxim|parallel|vector|regular|summar|util"
    r"|material|general|special|random|factor|penal|categor|character|token|stabil)i[z](?:e|ed|es|er|ers|ing|ation|ations)"
    r"|(?:col|behavi|fav|lab|hon|neighb)ors?|neighborhoods?|centered|gray|labeled|modeling|canceled|analyze[ds]?|defense|meters?)\b",
    re.IGNORECASE,
)


def main() -> int:
    problems = []
    readme = (ROOT / "README.md").read_text()
    guide = [path for path in check_links.pages(ROOT) if path.parent == ROOT / "docs" / "guide"]
    extras = sorted((ROOT / "docs" / "extras").glob("*.md"))
    reports = sorted((ROOT / "docs" / "benchmarks").glob("*.md"))
    logs = [ROOT / "CHANGELOG.md", ROOT / "docs" / "LOG.md"]
    for title, pages in (
        ("README", [ROOT / "README.md"]),
        ("guide", guide),
        ("extras", extras),
        ("benchmarks and logs", reports + logs),
        ("internals", sorted((ROOT / "docs" / "internals").glob("*.md"))),
    ):
        lengths = [len(words(sentence)) for page in pages for sentence in sentences(page.read_text())]
        mean = sum(lengths) / max(len(lengths), 1)
        long = [line for page in pages for line in long_sentences(page.read_text(), _name(page))]
        most = f"{max(lengths, default=0)} at most; {len(long)} over {MOST_WORDS}, tables too"
        print(f"{title}: {len(lengths)} sentences, {mean:.1f} words on average, {most}")
        if mean > MEAN_WORDS:
            problems.append(f"{title}: sentences have {mean:.1f} words on average, more than {MEAN_WORDS}")
        problems += long if title != "internals" else []
    problems += _limit("README: numbers outside tables and code", len(numbers(readme)), MOST_NUMBERS)
    for name, most in MOST_LINES.items():
        problems += _limit(f"{name}: lines", len((ROOT / name).read_text().splitlines()), most)
    guide_words = sum(len(words(page.read_text())) for page in guide)
    problems += _limit(f"guide: words on {len(guide)} pages", guide_words, MOST_GUIDE_WORDS)
    problems += _limit("docs/benchmarks: pages", len(reports), MOST_REPORTS)
    everything = [*check_links.pages(ROOT), ROOT / "tests/README.md", ROOT / "examples/README.md"]
    all_words = sum(len(MADE.sub("", page.read_text()).split()) for page in everything)
    problems += _limit(f"all Markdown: words on {len(everything)} pages", all_words, MOST_WORDS_OF_ALL)
    files = [*everything, *(path for folder in check_links.SOURCES for path in (ROOT / folder).rglob("*.py"))]
    phrases = sum(len(PHRASE.findall(re.sub(r"\n[\s#]*", " ", path.read_text()))) for path in files)
    problems += _limit("so many, that of, those of", phrases, MOST_PHRASES)
    spellings = [line for page in sorted(everything) for line in american(page.read_text(), _name(page))]
    print(f"American spellings: {len(spellings)}")
    print("\n".join(problems + spellings))
    return 1 if problems or spellings else 0


def prose(text: str) -> str:
    """The page without code blocks, tables and comments; each line stays where it was."""
    for pattern in (FENCE, COMMENT):
        text = pattern.sub(lambda match: re.sub(r"[^\n]", "", match[0]), text)
    return "\n".join("" if line.lstrip().startswith("|") else line for line in text.split("\n"))


def sentences(text: str) -> Iterator[str]:
    for block in _blocks(prose(text)):
        plain = ABBREVIATION.sub(lambda match: match[0][:-1], LINK.sub(r"\1", CODE.sub("Code", block)))
        yield from (part for part in END.split(plain) if words(part))


def cells(text: str) -> Iterator[str]:
    """Sentences in tables: each of them may be no longer than one of prose, and is in no mean."""
    rows = [line for line in FENCE.sub("", text).split("\n") if line.lstrip().startswith("|")]
    for cell in (cell for row in rows for cell in re.split(r"(?<!\\)\|", row)):
        yield from END.split(LINK.sub(r"\1", CODE.sub("Code", cell)))


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs, list items and headings, each as one line."""
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        heading = line.startswith("#")
        if (not line.strip() or BLOCK.match(line)) and block:
            yield " ".join(block)
            block = []
        if line.strip() and not heading:
            block.append(BLOCK.sub("", line).strip())


def words(sentence: str) -> list[str]:
    return [word for word in sentence.split() if re.search(r"\w", word)]


def long_sentences(text: str, name: str) -> list[str]:
    return [
        f"{name}: a sentence of {len(words(sentence))} words, more than {MOST_WORDS}: {sentence[:60]} …"
        for sentence in [*sentences(text), *cells(text)]
        if len(words(sentence)) > MOST_WORDS
    ]


def numbers(text: str) -> list[str]:
    return NUMBER.findall(LINK.sub(r"\1", CODE.sub("", prose(text))))


def american(text: str, name: str) -> Iterator[str]:
    """One line "file:line: word" for each American spelling outside code and links' targets; tables count."""
    for pattern in (FENCE, CODE, COMMENT):
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in AMERICAN.finditer(LINK.sub(r"\1", text)):
        yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: British spelling elsewhere: {match[0]}"


def _limit(what: str, found: int, most: int) -> list[str]:
    print(f"{what}: {found:,}")
    return [f"{what}: {found:,}, more than {most:,}"] if found > most else []


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
