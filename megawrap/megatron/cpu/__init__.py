"""A stand-in for torch.cuda, so that Megatron-LM trains on CPU over gloo: ``python -m megawrap.megatron.cpu``.

Only for this process, and for real: tensors live on the CPU, gradients and collectives are true. What needs a GPU
kernel (Transformer Engine, FP8, context parallelism) Megatron itself refuses.
"""

from __future__ import annotations


def install() -> None:
    """Put the stand-in in place. Call before anything of Megatron is imported; cannot be undone."""
    from megawrap.megatron.cpu import devices, memory, patches, rng, streams, tensors

    devices.install()
    streams.install()
    memory.install()
    rng.install()
    tensors.install()
    patches.install()
