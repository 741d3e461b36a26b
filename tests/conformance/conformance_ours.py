"""What we say of Megatron's arguments, without the sections that people set."""

from __future__ import annotations

from conformance_cases import Arguments, Case

from megawrap.config.origins import Origins
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError, Finding, errors
from megawrap.hardware.table import Gpu
from megawrap.megatron.compile import Compiled, compile_arguments
from megawrap.megatron.effective import Effective
from megawrap.megatron.rules import check
from megawrap.megatron.surface import Target
from megawrap.plan import core_of


def ours(one: Case, target: Target) -> tuple[list[Finding], list[str], dict[str, object]]:
    """What we find wrong, the words for Megatron, and the values that it is to work with."""
    try:
        compiled = compiled_from(one.arguments, target)
    except ConfigError as refused:
        words = [word for key, value in one.arguments.items() for word in (f"--{key.replace('_', '-')}", str(value))]
        return list(refused.findings), words, {}
    effective = effective_of(one, compiled, target)
    return errors(check(effective, compiled, lambda: Origins({}))), compiled.argv(), dict(effective.values)


def compiled_from(arguments: Arguments, target: Target) -> Compiled:
    """Megatron's arguments by name, compiled.

    Raises:
        ConfigError: when the target does not have one, or not such a value.
    """
    config, given = Config(), dict(arguments)
    sizes = {"tp": "tensor_model", "pp": "pipeline_model", "cp": "context", "ep": "expert_model"}
    for name, dest in sizes.items():
        setattr(config.parallel, name, given.pop(f"{dest}_parallel_size", 1))
    config.precision.dtype = "fp32"  # bf16 and fp16 are among the arguments
    config.megatron.args = given
    return compile_arguments(config, target, lambda: Origins({}))


def effective_of(one: Case, compiled: Compiled, target: Target, gpu: Gpu | None = None) -> Effective:
    """What Megatron will work with."""
    defaults, fork = target.surface.defaults(), target.release.fork
    return Effective.of(defaults, compiled.values(), one.world_size, fork, core_of(target), one.environment, gpu)
