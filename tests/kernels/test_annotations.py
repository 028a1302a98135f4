"""Every public function of the kernels says what it takes and gives."""

import inspect

import pytest

from distgnn import kernels

FUNCTIONS = [name for name in kernels.__all__ if inspect.isfunction(getattr(kernels, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_are_annotated(name):
    signature = inspect.signature(getattr(kernels, name))
    missing = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
    assert missing == [] and signature.return_annotation is not signature.empty
