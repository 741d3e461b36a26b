"""How a section's value is said to a target that lacks the argument which its field names.

An older release often does one of the values in any case, or has another word for it. Each function here answers for
one argument: value → the arguments that say it there, none where the target knows nothing else. A value that is not in
the answer cannot be had on that target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from megawrap.config.sections.root import Config
from megawrap.megatron.compile.encode import Setting
from megawrap.megatron.surface import Surface, releases

Ways = Mapping[Any, Mapping[str, Any]]


def otherwise(setting: Setting, config: Config, surface: Surface) -> tuple[list[Setting] | None, tuple[str, ...]]:
    """The settings that say the same without the argument ``setting.name``, ``None`` when nothing does, and the values
    that can be said instead."""
    answer = _WAYS.get(setting.name)
    ways = answer(setting.value, config) if answer else {}
    ways = {value: words for value, words in ways.items() if all(surface.option(flag) for flag in words)}
    value = _key(setting.value)
    if value in ways:
        return [Setting(flag, said, setting.key) for flag, said in ways[value].items()], ()
    if setting.value is False and _is_off_everywhere(setting.name):
        return [], ()
    return None, tuple(_shown(one) for one in ways)


def _is_off_everywhere(flag: str) -> bool:
    """Whether the switch is off by default in every release that has it: what it does is then not done without it."""
    having = [option for one in releases() if (option := one.surface.option(flag)) is not None]
    return bool(having) and all(option.store is None and option.default is False for option in having)


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _shown(value: Any) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _renamed(flag: str) -> Callable[[Any, Config], Ways]:
    return lambda value, _: {_key(value): {flag: value}}


def _attention_backend(_value: str, _config: Config) -> Ways:
    """Transformer Engine chooses among what the variables NVTE_FLASH_ATTN and NVTE_FUSED_ATTN allow: those are in the
    environment's profiles."""
    return {"auto": {}, "flash": {"--use-flash-attn": True}, "fused": {}, "unfused": {}}


def _recompute_modules(value: list[str], config: Config) -> Ways:
    """Selective recomputation is that of the attention core; that of the experts is a switch of its own."""
    if config.recompute.granularity != "selective":
        return {_key(value): {}}  # releases that have the argument do not look at it either
    return {("core_attn",): {}, ("core_attn", "moe"): {"--moe-layer-recompute": True}}


def _rope_type(_value: str, config: Config) -> Ways:
    return {"yarn" if config.model.multi_latent_attention else "rope": {}}


def _special_tokens(value: list[str], config: Config) -> Ways:
    """Only TikToken had them."""
    return _renamed("--tiktoken-special-tokens")(value, config) if config.tokenizer.type == "TikTokenizer" else {}


def _checkpoint_format(value: str, _config: Config) -> Ways:
    """Releases before 0.9."""
    distributed = {"--use-dist-ckpt": True, "--dist-ckpt-format": value}
    return {"torch": {}, "torch_dist": distributed, "zarr": distributed}


_WAYS: dict[str, Callable[[Any, Config], Ways]] = {
    "--attention-backend": _attention_backend,
    "--ckpt-format": _checkpoint_format,
    "--cp-comm-type": lambda *_: {("p2p",): {}},
    "--cross-entropy-fusion-impl": lambda *_: {"native": {}},
    # Experts were cut as the rest of the model is.
    "--expert-tensor-parallel-size": lambda _, config: {config.parallel.tp: {}},
    "--fp8-recipe": lambda *_: {"delayed": {}},
    "--keep-fp8-transpose-cache": _renamed("--keep-fp8-transpose-cache-when-using-custom-fsdp"),
    "--moe-ffn-hidden-size": lambda _, config: {config.model.ffn_hidden_size: {}},
    "--moe-flex-dispatcher-backend": lambda *_: {"deepep": {"--moe-enable-deepep": True}},
    "--moe-layer-freq": lambda *_: {"1": {}},
    "--moe-router-padding-for-quantization": _renamed("--moe-router-padding-for-fp8"),
    "--moe-router-score-function": lambda *_: {"softmax": {}},
    # 0.10, MLATransformerConfig
    "--mscale": lambda *_: {0.707: {}},
    "--mscale-all-dim": lambda *_: {0.707: {}},
    "--recompute-modules": _recompute_modules,
    # 0.10, RotaryEmbedding._apply_scaling
    "--rope-scaling-factor": lambda *_: {8.0: {}},
    "--rope-type": _rope_type,
    "--tokenizer-special-tokens": _special_tokens,
    "--use-megatron-fsdp": _renamed("--use-custom-fsdp"),
}
