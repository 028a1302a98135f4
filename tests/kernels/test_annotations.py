"""Every public function of the kernels says what it takes and gives."""

import inspect

from distgnn import kernels


def test_public_functions_are_annotated():
    for name in kernels.__all__:
        if inspect.isfunction(function := getattr(kernels, name)):
            signature = inspect.signature(function)
            missing = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
            assert missing == [] and signature.return_annotation is not signature.empty, name
