"""Exact and delayed algorithms beside each other: validation accuracy per epoch, bytes sent, one figure.

python delayed_study.py 30
"""

import sys

from matplotlib.figure import Figure

import distgnn as dg

GRAPH = "communities:nodes=2000"  # cut once: the cut is kept
CASES = {  # cd-5: rows count 5 epochs late; int8: one byte a number; 0c: nothing is exchanged in training steps
    "cd-0": {},
    "cd-5": {"algorithm": "cd-5"},
    "cd-5, int8": {"algorithm": "cd-5", "wire": "int8"},
    "0c": {"copy_updates": "0c"},
}

panel = (figure := Figure(layout="constrained")).subplots()
for name, options in CASES.items():
    result = dg.fit(GRAPH, "sage", ranks=2, epochs=int(sys.argv[1]), hidden_feats=32, lr=0.01, quiet=True, **options)
    seen = [record for record in result.history if "valid_accuracy" in record]
    panel.plot([one["epoch"] + 1 for one in seen], [100 * one["valid_accuracy"] for one in seen], label=name)
    sent = sum(record["sent_bytes"] for record in result.history) / len(result.history)
    print(f"{name:10}  test accuracy {100 * result.test_accuracy:5.2f} %  {sent / 1e6:6.2f} MB sent per epoch")
panel.set(xlabel="epoch", ylabel="validation accuracy (%)")
panel.legend()
figure.savefig("delayed_study.svg")
