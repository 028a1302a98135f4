"""Words of the command line that had another meaning before: renamed, moved, or a script now."""

RENAMED = {"smooth": "late_row_average", "smooth_labels": "correct_and_smooth"}
SCRIPTS = {  # what was a command or an option -> the script that measures it
    "bench-kernels": "tests/bench/kernels/bench_kernels.py",
    "--against-dgl": "tests/bench/epoch/against_dgl.py",
    "--contestants": "tests/bench/epoch/against_dgl.py",
    "--time-to-accuracy": "tests/bench/steps/race.py",
    "--contestant": "tests/bench/steps/race.py",
    "--past-target": "tests/bench/steps/race.py",
}
MOVED = {("info", "--prices"): "plan", ("partition", "--prices"): "plan"}  # to another command


def new_name(option: str | None, command: str = "") -> str | None:
    """A line that names what a word of the command line is now, an option or a script; None: it was never another."""
    if option in SCRIPTS:
        return f"{option} is a script of the repository now: python {SCRIPTS[option]}"
    if (command, str(option)) in MOVED:
        return f"{command} has no {option} now: distgnn {MOVED[command, str(option)]} has"
    for old, new in RENAMED.items():
        for prefix in ("--", "--no-"):
            if option == _on_command_line(old, prefix):
                return f"{option} is called {_on_command_line(new, prefix)} now"
    return None


def _on_command_line(name: str, prefix: str) -> str:
    return prefix + name.replace("_", "-")
