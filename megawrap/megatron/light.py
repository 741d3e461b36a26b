"""What lets a Megatron-LM be imported where it could not train, without its training program.

Scripts that the target's own Python runs (surface/probe.py, oracle/worker.py) load this file by its name: it imports
nothing of megawrap, and torch only when called.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import types
from typing import Any

# These look for Triton when they are imported, and must not find the stub.
_TRITON_SEEKERS = ("torch._dynamo", "torch._inductor.utils", "torch._inductor.runtime.triton_compat")


def install(training: str) -> None:
    """Call before anything of Megatron is imported. ``training`` is the folder ``megatron/training``.

    An empty package stands for ``megatron.training``, whose own ``__init__`` imports the whole training program; a stub
    for Triton where there is none; and no compiler is started, as ROCm 2026-02 does when it is imported.
    """
    from torch.utils import cpp_extension

    cpp_extension.load = cpp_extension.load_inline = _no_compiler
    for name in _TRITON_SEEKERS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if importlib.util.find_spec("triton") is None:
        stub("triton", jit=lambda fn=None, **_: fn if fn else (lambda inner: inner))
        stub("triton.language", constexpr=int)
    stub("megatron.training").__path__ = [training]


def stub(name: str, **members: Any) -> Any:
    """A module called ``name`` that has whatever it is asked for; ``members`` are real, the rest is ``unused``."""
    module: Any = types.ModuleType(name)
    module.__dict__.update(members)
    module.__getattr__ = lambda attribute: _member(module, attribute)
    module.__spec__ = importlib.util.spec_from_loader(name, loader=None)
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)
    return module


def unused(*_args: object, **_kwargs: object) -> None:
    """Stands where only the name is needed."""


def _member(module: Any, attribute: str) -> Any:
    if attribute.startswith("__"):
        raise AttributeError(attribute)
    submodule = f"{module.__name__}.{attribute}"
    if hasattr(module, "__path__") and importlib.util.find_spec(submodule):
        return importlib.import_module(submodule)
    return unused


def _no_compiler(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError("nothing is compiled here")
