"""The processes that measure parts: one that had to compile kernels is started again."""

from distgnn.extras.replay import measure

STUB = """
import json, os, sys
sys.stdin.readline()
out = sys.argv[3]
if not os.path.exists(out):
    open(out, "w").write("{}")
    print("compiled", flush=True)
    raise SystemExit
print("ready", flush=True)
sys.stdin.readline()
open(out, "w").write(json.dumps({"cores": sorted(os.sched_getaffinity(0))}))
print("done", flush=True)
"""


def test_a_part_that_compiled_is_measured_by_a_process_that_loads(monkeypatch, tmp_path):
    (tmp_path / "stub_worker.py").write_text(STUB)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(measure, "MODULE", "stub_worker")
    worker = measure._Worker("parts", 0, {}, None, tmp_path, 1)
    worker.pin(0)
    try:
        found = measure._run([worker])
    finally:
        worker.end()
    assert len(found[0]["cores"]) == 1
