"""The training entry that the megatron-core wheel lacks: ``python -m megawrap.megatron.embedded ARGUMENTS``."""
