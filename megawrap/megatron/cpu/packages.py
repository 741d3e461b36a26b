"""Packages of GPU kernels, which a training container has: as if they were not installed.

Megatron uses them for the optimizer and the norms wherever it can import them, and on CPU tensors they crash.
"""

from __future__ import annotations

import sys
from typing import Any

GPU_ONLY = ("amp_C", "apex", "flash_attn", "flash_attn_3", "transformer_engine", "transformer_engine_torch")


def install() -> None:
    """Let every import of them fail as for a package that is not there."""
    modules: dict[str, Any] = sys.modules
    modules.update(dict.fromkeys(GPU_ONLY))
