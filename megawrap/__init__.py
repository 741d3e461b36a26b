"""megawrap: one line of configuration into a checked, watched Megatron-LM training run."""

__version__ = "0.1.0"
