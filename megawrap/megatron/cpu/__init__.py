"""A stand-in for torch.cuda, so that Megatron-LM trains on CPU over gloo: ``python -m megawrap.megatron.cpu``.

Only for this process, and for real: tensors live on the CPU, gradients and collectives are true. What needs a GPU
kernel (Transformer Engine, FP8, context parallelism) Megatron itself refuses; what of torch.cuda is not replaced here
fails, because no GPU is visible.
"""

from __future__ import annotations

import os

# NVIDIA's, then AMD's two.
_VISIBLE_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def install() -> None:
    """Put the stand-in in place. Call before anything of Megatron is imported; cannot be undone."""
    # Where there is a real GPU, half of the work on it would be worse than none.
    os.environ.update(dict.fromkeys(_VISIBLE_DEVICES, ""))
    # Dynamo asks the CUDA driver; read when torch._dynamo is imported.
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    from megawrap.megatron.cpu import devices, memory, packages, patches, rng, streams, tensors

    packages.install()
    devices.install()
    streams.install()
    memory.install()
    rng.install()
    tensors.install()
    patches.install()
