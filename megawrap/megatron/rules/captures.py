"""MW373, MW374, MW400, MW401, MW405–MW408: the modules that CUDA graphs capture. Sources: TransformerConfig,
validate_args and cuda_graph_config of Megatron-LM core_v0.16.1 to core_v0.19.0."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.estimate.pattern import expert_layers
from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.graphs import INFERENCE, MODULES_ARE_LISTED, WHOLE_ITERATION, Graphs
from megawrap.megatron.rules.recompute import MODULES_KEY, recomputed
from megawrap.megatron.rules.registry import Violation, choices, nvidia, rocm, rule

CAPTURED = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")
PARTS_OF_EXPERTS = frozenset({"expert_fc1", "moe_act", "fused_group_mlp"})
SHARED = "moe_shared_expert_intermediate_size"


def older_words(core: tuple[int, ...]) -> tuple[str, ...]:
    """Words for whole layers and iterations, which newer releases say elsewhere."""
    return ("full", WHOLE_ITERATION) if core < (0, 17) else ("full", WHOLE_ITERATION, INFERENCE)


@rule("MW405", "modules that CUDA graphs capture have names", checked="parse_args", spans=MODULES_ARE_LISTED)
def names(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    known = (*CAPTURED, *older_words(e.core))
    wrong = [word for word in graphs.words if word not in known]
    if wrong:
        message = f"{graphs.dest} has {', '.join(wrong)}; there are: {', '.join(known)}"
        yield Violation(message, (graphs.dest,))


@rule("MW406", "a graph of everything captures no module", checked="validate_args, TransformerConfig",
      spans=MODULES_ARE_LISTED)  # fmt: skip
def everything(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    dests, nearest = (graphs.dest, *graphs.dests), choices(graphs.dest, [None])
    is_whole = WHOLE_ITERATION in graphs.words
    if "full" in graphs.words and len(graphs.words) > 1:
        yield Violation(f"{graphs.dest}: full is everything, and takes no other word", (graphs.dest,), nearest)
    if is_whole and graphs.impl == "transformer_engine":
        yield Violation("full_iteration does not work with Transformer Engine's graphs", dests, nearest)
    if e.core < (0, 18):
        return
    if graphs.impl == WHOLE_ITERATION and graphs.modules and "full" not in graphs.words:
        message = f"a graph of the whole iteration takes no modules, and {graphs.dest} has them"
        yield Violation(message, dests, nearest)
    if INFERENCE in graphs.words:
        if is_whole:
            yield Violation(f"{graphs.dest}: full_iteration or full_iteration_inference", (graphs.dest,), nearest)
        elif graphs.impl in ("transformer_engine", WHOLE_ITERATION):
            yield Violation(f"full_iteration_inference is for local graphs, not {graphs.impl}", dests, nearest)
        elif e.inference_cuda_graph_scope not in (None, "block"):
            message = f"full_iteration_inference, and inference_cuda_graph_scope = {e.inference_cuda_graph_scope}"
            yield Violation(message, (graphs.dest, "inference_cuda_graph_scope"), nearest)
    if e.cuda_graph_scope_deprecated is not None and e.cuda_graph_modules:
        message = "cuda_graph_scope is an older word for cuda_graph_modules: set one"
        yield Violation(message, ("cuda_graph_scope_deprecated", "cuda_graph_modules"),
                        choices("cuda_graph_modules", [None]))  # fmt: skip


@rule("MW373", "what is recomputed in a CUDA graph draws no random number", checked="TransformerConfig",
      spans=MODULES_ARE_LISTED)  # fmt: skip
def random_numbers(e: Effective) -> Iterator[Violation]:
    graphs, again = Graphs.of(e), recomputed(e)
    for dest, is_random, modules in (
        ("attention_dropout", e.attention_dropout != 0, {"core_attn": "attn"}),
        ("hidden_dropout", e.hidden_dropout != 0, {"mlp": "mlp", "moe": "moe"}),
        ("moe_input_jitter_eps", e.moe_input_jitter_eps is not None, {"moe": "moe"}),
    ):
        within = [name for name, module in modules.items() if name in again and graphs.captures(module)]
        if is_random and within:
            message = (
                f"CUDA graphs ({graphs.impl}) that recompute {' and '.join(within)} draw no random numbers, and {dest} "
                f"is {e.values.get(dest)}"
            )
            yield Violation(message, (dest, *graphs.dests, MODULES_KEY),
                            choices(dest, [None if dest == "moe_input_jitter_eps" else 0.0]))  # fmt: skip


@rule("MW374", "CUDA graphs capture modules that the model has, of known shapes", checked="TransformerConfig",
      spans=MODULES_ARE_LISTED)  # fmt: skip
def captured(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    if graphs.impl not in ("local", "transformer_engine"):
        return
    dests, nearest = (graphs.dest, *graphs.dests), choices(graphs.dest, [None])
    for message in _wrong(e, graphs.modules):
        yield Violation(f"{graphs.dest}: {message}", dests, nearest)
    if graphs.impl == "transformer_engine" and "moe_router" in graphs.modules and "moe" in recomputed(e):
        message = f"{graphs.dest}: moe_router does not work with recomputing moe"
        yield Violation(message, (*dests, MODULES_KEY), nearest)


def _wrong(e: Effective, modules: frozenset[str]) -> Iterator[str]:
    if modules >= {"moe", "moe_router"}:
        yield "moe and moe_router exclude each other"
    if "moe_preprocess" in modules and "moe_router" not in modules:
        yield "moe_preprocess needs moe_router"
    if (e.num_experts or 0) <= 1:
        if modules & {"moe", "moe_router"}:
            yield "moe and moe_router are for models with experts"
        return
    if "mlp" in modules and _has_only_experts(e):
        yield "mlp is of dense layers, and every layer has experts"
    if e.moe_expert_capacity_factor is not None and e.moe_pad_expert_input_to_capacity:
        return
    if "moe" in modules:
        yield "moe needs moe_pad_expert_input_to_capacity and moe_expert_capacity_factor"
    is_counted = e.moe_expert_capacity_factor is not None or e.moe_router_padding_for_fp8
    if "moe_preprocess" in modules and e.moe_token_dispatcher_type == "alltoall" and is_counted:
        yield "moe_preprocess asks the host, with a capacity or moe_router_padding_for_fp8, and alltoall"


def _has_only_experts(e: Effective) -> bool:
    try:
        return all(expert_layers(e.moe_layer_freq, e.num_layers or 0))
    except ValueError:
        return False  # MW810 says so


@rule("MW407", "where the exchange of tokens is overlapped, experts are not captured", checked="TransformerConfig",
      spans=MODULES_ARE_LISTED)  # fmt: skip
def overlapped(e: Effective) -> Iterator[Violation]:
    graphs, key = Graphs.of(e), "overlap_moe_expert_parallel_comm"
    if not e.values.get(key) or graphs.impl == "none":
        return
    dests = (key, graphs.dest, *graphs.dests)
    if graphs.impl == "transformer_engine" and graphs.modules & {"moe", "mlp"}:
        yield Violation(f"{key} does not work with CUDA graphs of moe or mlp", dests, choices(key, [False]))
    if graphs.impl != "transformer_engine" and e.core < (0, 18):
        yield Violation(f"{key} works with Transformer Engine's graphs only", dests, choices(key, [False]))


@rule("MW400", "late weight gradients in a CUDA graph are accumulated in place", checked="validate_args",
      spans=(nvidia("0.17"), rocm("0.17")))  # fmt: skip
def late_gradients(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    has_shared = "moe_router" in graphs.words and e.values.get(SHARED) is not None and not e.moe_shared_expert_overlap
    if not (e.delay_wgrad_compute and e.overlap_grad_reduce and ("attn" in graphs.words or has_shared)):
        return
    if not e.gradient_accumulation_fusion:
        message = "delay_wgrad_compute in CUDA graphs needs gradient_accumulation_fusion"
        yield Violation(message, ("gradient_accumulation_fusion", "delay_wgrad_compute", graphs.dest),
                        choices("gradient_accumulation_fusion", [True]))  # fmt: skip
    for dest in ("add_bias_linear", "add_qkv_bias"):
        if "attn" in graphs.words and e.values.get(dest):
            message = f"delay_wgrad_compute in CUDA graphs of attention does not work with {dest}"
            yield Violation(message, (dest, "delay_wgrad_compute", graphs.dest))


@rule("MW401", "activations leave CUDA graphs in some ways", checked="TransformerConfig",
      spans=(nvidia("0.18"), rocm("0.18")))  # fmt: skip
def offloaded(e: Effective) -> Iterator[Violation]:
    graphs, key = Graphs.of(e), "fine_grained_activation_offloading"
    if not e.values.get(key) or graphs.impl == "none":
        return
    off = choices(key, [False])
    if graphs.impl == "local":
        wrong = sorted(set(e.offload_modules or ()) - PARTS_OF_EXPERTS)
        if e.core < (0, 19):
            yield Violation(f"{key} does not work with local graphs", (key, *graphs.dests), off)
        elif wrong or not graphs.modules:
            message = f"{key} with local graphs: parts of experts ({', '.join(sorted(PARTS_OF_EXPERTS))}) of layers in "
            yield Violation(f"{message}which some modules are captured", ("offload_modules", graphs.dest, key), off)
    if "moe" in graphs.modules:
        yield Violation(f"{key} does not work with CUDA graphs of moe", (graphs.dest, key), off)
    if (e.cuda_graph_warmup_steps or 0) < 1:
        message = f"{key} with CUDA graphs needs cuda_graph_warmup_steps above 0"
        yield Violation(message, ("cuda_graph_warmup_steps", key), choices("cuda_graph_warmup_steps", [3]))
    flight = "fine_grained_offloading_max_inflight_offloads"
    if graphs.impl == WHOLE_ITERATION and (e.values.get(flight) is None or e.values[flight] < 0):
        yield Violation(f"{key} in a graph of the whole iteration needs {flight} of 0 or more", (flight, key), off)


@rule("MW408", "shared experts in local graphs and in shards are not recomputed in FP8", checked="TransformerConfig",
      spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip
def shared_experts(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    has_shared = e.values.get(SHARED) is not None and not e.moe_shared_expert_overlap
    is_captured = graphs.captures("moe") or graphs.captures("moe_router")
    if (e.layout.weight_shards > 1 and graphs.impl == "local" and (e.fp8 or e.fp4) and has_shared and is_captured
            and "shared_experts" in recomputed(e)):  # fmt: skip
        message = "local CUDA graphs with weight shards and FP8 or FP4 do not recompute shared_experts"
        yield Violation(message, (MODULES_KEY, *graphs.dests, "tensor_parallel_num_weight_shards"), graphs.off)
