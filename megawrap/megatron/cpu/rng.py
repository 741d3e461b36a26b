"""Random numbers: the states that Megatron keeps per device are states of the CPU generator."""

from __future__ import annotations

from typing import Any

import torch


def _get_rng_state(device: Any = None) -> torch.Tensor:
    return torch.default_generator.get_state()


def _set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    torch.default_generator.set_state(state)


def _manual_seed(seed: int) -> None:
    # Not torch.manual_seed: that one calls torch.cuda.manual_seed_all, which is this function.
    torch.default_generator.manual_seed(int(seed))


def install() -> None:
    """Replace the generators in torch.cuda, and in torch.cuda.random, where torch itself looks them up."""
    for module in (torch.cuda, torch.cuda.random):
        cuda: Any = module
        cuda.get_rng_state, cuda.set_rng_state = _get_rng_state, _set_rng_state
        cuda.get_rng_state_all = lambda: [_get_rng_state()]
        cuda.set_rng_state_all = lambda states: _set_rng_state(states[0])
        cuda.manual_seed, cuda.manual_seed_all = _manual_seed, lambda seed: _manual_seed(seed)
        cuda.initial_seed = lambda: torch.default_generator.initial_seed()
    torch.cuda.default_generators = (torch.default_generator,)
