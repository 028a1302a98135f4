"""What a process imports, and when: each in a process of its own."""

import inspect
import subprocess
import sys

import pytest

from distgnn.system.quick_start import modules_by_name


def lines_of(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_starts_ranks_imports_no_arrays_and_no_kernels():
    """It waits while they train: half a second and 200 MB that nobody needs."""
    program = (
        "import sys; from distgnn.cli.main import make_app; from distgnn.partition import read_manifest; "
        "make_app(['train', 'parts']); import distgnn.cli.ranks, distgnn.cli.elastic, distgnn.train.run.run_folder; "
        "print(*{'numpy', 'scipy', 'numba', 'torch', 'matplotlib', 'mpi4py', 'rich'} & set(sys.modules))"
    )
    assert lines_of(program) == [""]


@pytest.mark.slow
def test_what_torch_needs_to_compile_is_there_when_it_is_asked_for():
    program = (
        "import sys, importlib.util; from distgnn.system.quick_start import import_for_good; import_for_good('torch'); "
        "import torch; print('torch._refs' in sys.modules, 'torch._export' in sys.modules); "
        "torch.nn.Linear(2, 3)(torch.ones(4, 2)).sum().backward(); print('torch._refs' in sys.modules); "
        "importlib.util.find_spec('torch._dynamo'); print('torch._refs' in sys.modules); "
        "print(torch.export.Dim.__name__, torch._meta_registrations.__spec__.loader.__class__.__name__); "
        "print('torch.distributions.normal' in sys.modules, 'numpy.f2py.crackfortran' in sys.modules); "
        "print(torch.distributions.Normal(0, 1).mean.item(), torch.masked.sum(torch.ones(2)).item()); "
        "import scipy.sparse, numpy; print('numpy.f2py.crackfortran' in sys.modules, bool(numpy.f2py.get_include()))"
    )
    late = ["False False", "0.0 2.0", "False True"]
    assert lines_of(program) == ["False False", "False", "True", "Dim SourceFileLoader", *late]


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        "from torch.distributions.normal import Normal; import torch; print(torch.distributions.Normal is Normal)",
        "import pickle; normal = pickle.loads(b'ctorch.distributions.normal\\nNormal\\n.'); "
        "import torch; print(torch.distributions.Normal is normal)",
        "import numpy.f2py.crackfortran as there; import sys; print(sys.modules[there.__name__] is there)",
        "from torch.masked._ops import sum as total; import torch; print(torch.masked.sum is total)",
        "from torch.distributions import *; import torch; print(torch.distributions.Normal is Normal)",
        "import torch.export.graph_signature as there; print(there.__spec__.name == there.__name__)",
    ],
)
def test_a_module_in_a_package_that_was_deferred_can_be_asked_for_first(asked):
    start = "from distgnn.system.quick_start import import_for_good; import_for_good('torch'); "
    again = "import torch.distributions.normal as one; print(one.__spec__.loader.__class__.__name__)"
    assert lines_of(f"{start}{asked}; {again}") == ["True", "SourceFileLoader"]


def test_the_module_of_a_line_is_found_by_its_name_in_the_block_alone(monkeypatch):
    before, frame, files = inspect.getmodule, inspect.currentframe(), []
    monkeypatch.setattr(inspect, "getmodule", lambda *args: files.append(args) or before(*args))
    looking_at_files = inspect.getmodule
    with modules_by_name():
        assert inspect.getmodule(frame, __file__) is sys.modules[__name__]
        assert not files
        assert inspect.getmodule(modules_by_name) is sys.modules["distgnn.system.quick_start"]
    assert inspect.getmodule is looking_at_files
