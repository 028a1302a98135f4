"""Makes one pytest report out of what each rank said of a test."""

import pytest
from mpi_job import JobFailure

PHASES = ("setup", "call", "teardown")


class RankFailures:
    """What pytest prints of a test that failed under mpiexec: a headline and one section per failing rank."""

    def __init__(self, headline: str, sections: list[tuple[str, str]]):
        self.sections = [(title, text) for title, text in sections if text]
        self.reprcrash = _Crash(headline)  # the short summary takes its message from here

    def toterminal(self, writer) -> None:
        writer.line(self.reprcrash.message, red=True, bold=True)
        for title, text in self.sections:
            writer.sep("- ", title)
            for line in text.splitlines():
                writer.line(line)

    def __str__(self) -> str:
        return "\n".join([self.reprcrash.message, *(f"--- {title} ---\n{text}" for title, text in self.sections)])


class _Crash:
    def __init__(self, message: str):
        self.message = message


def merge(
    config: pytest.Config, item: pytest.Item, ranks: list[list[dict]], printed: list[str]
) -> list[pytest.TestReport]:
    """Return one report per phase for a test that ended on every rank, from each rank's reports and output."""
    reports = [[_load(config, data) for data in rank] for rank in ranks]
    merged = []
    for phase in PHASES:
        of_phase = {number: report for number, rank in enumerate(reports) for report in rank if report.when == phase}
        if of_phase:
            merged.append(_merge_phase(item, of_phase, printed))
    return merged


def broken(config: pytest.Config, item: pytest.Item, failure: JobFailure, seconds: float) -> pytest.TestReport:
    """Return the report of a test that a hang, an abort or a failing `mpiexec` ended."""
    failed = [(number, _load(config, data)) for number, rank in enumerate(failure.reports) for data in rank]
    sections = _tracebacks({number: report for number, report in failed if report.failed}, len(failure.reports))
    sections += [(f"output of {name}", text) for name, text in failure.output.items()]
    return _failed(item, "call", RankFailures(str(failure), sections), seconds)


def _load(config: pytest.Config, data: dict) -> pytest.TestReport:
    report = config.hook.pytest_report_from_serializable(config=config, data=data)
    if isinstance(report.longrepr, list):  # where and why a test was skipped: a tuple, before it was JSON
        report.longrepr = tuple(report.longrepr)
    return report


def _merge_phase(item: pytest.Item, reports: dict[int, pytest.TestReport], printed: list[str]) -> pytest.TestReport:
    outcomes = {report.outcome for report in reports.values()}
    seconds = max(report.duration for report in reports.values())
    expected = [report for report in reports.values() if hasattr(report, "wasxfail") and report.skipped]
    if "failed" not in outcomes and (len(outcomes) == 1 or expected):
        report = (expected or list(reports.values()))[0]
        report.duration = seconds
        return report
    failing = {number: report for number, report in reports.items() if report.failed}
    if not failing:
        skipping = ", ".join(str(number) for number, report in reports.items() if report.skipped)
        return _failed(item, "call", RankFailures(f"skipped on rank {skipping} only: ranks must agree", []), seconds)
    first = next(iter(failing.values()))
    crash = getattr(first.longrepr, "reprcrash", None)
    num_ranks = len(printed)
    where = f"rank {', '.join(map(str, failing))} of {num_ranks}"
    headline = f"{where}: {crash.message if crash else 'failed'}"
    sections = _tracebacks(failing, num_ranks)
    sections += [(f"output of rank {number} of {num_ranks}", printed[number]) for number in failing]
    return _failed(item, first.when, RankFailures(headline, sections), seconds)


def _tracebacks(failing: dict[int, pytest.TestReport], num_ranks: int) -> list[tuple[str, str]]:
    """Return one section per different traceback, naming the ranks that have it."""
    ranks_of: dict[str, list[int]] = {}
    for number, report in failing.items():
        ranks_of.setdefault(report.longreprtext, []).append(number)
    return [(f"rank {', '.join(map(str, ranks))} of {num_ranks}", text) for text, ranks in ranks_of.items()]


def _failed(item: pytest.Item, when: str, failures: RankFailures, seconds: float) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords=dict.fromkeys(item.keywords, 1),
        outcome="failed",
        longrepr=failures,
        when=when,
        duration=seconds,
    )
