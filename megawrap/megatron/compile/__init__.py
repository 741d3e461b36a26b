"""Configuration → Megatron argument list, for a given target."""

from megawrap.megatron.compile.compiler import Compiled, compile_arguments
from megawrap.megatron.compile.encode import Emission

__all__ = ["Compiled", "Emission", "compile_arguments"]
