"""MW366–MW372, MW375–MW379, MW402–MW404: CUDA graphs, and what works with none, or with some kinds of them. Sources:
validate_args, TransformerConfig and cuda_graph_config of Megatron-LM core_v0.11.0 to core_v0.19.0 and ROCm 2026-02."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.recompute import MODULES_KEY, is_offloading, recomputed
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, needs, nvidia, rocm, rule

SWITCHES = ("enable_cuda_graph", "external_cuda_graph")
MODULES_ARE_LISTED = (nvidia("0.16"), rocm("0.16"))
"""Releases that take a list of the modules to capture."""
ROUTING = frozenset({"moe_router", "moe_preprocess"})
WHOLE_ITERATION, INFERENCE = "full_iteration", "full_iteration_inference"


@dataclasses.dataclass(frozen=True)
class Graphs:
    """Which graphs are captured. ``impl`` is "none", "local", "transformer_engine" or (from 0.18 on) "full_iteration",
    and ``dests`` say so; ``modules`` names what is captured of each layer, everything where it is empty; ``dest`` is
    the argument that says so, and ``words`` are its words."""

    impl: str
    dests: tuple[str, ...]
    modules: frozenset[str]
    dest: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, e: Effective) -> Graphs:
        """As the release reads its arguments."""
        named = [name for name in SWITCHES if e.values.get(name)]
        dests = ["cuda_graph_impl", *named] if "cuda_graph_impl" in e.values else named
        by_switch = {"enable_cuda_graph": "local", "external_cuda_graph": "transformer_engine"}
        impl = e.cuda_graph_impl or (by_switch[named[0]] if named else "none")
        dest = next((name for name in ("cuda_graph_scope_deprecated", "cuda_graph_modules") if e.values.get(name)),
                    "cuda_graph_modules" if "cuda_graph_modules" in e.values else "cuda_graph_scope")  # fmt: skip
        said = e.values.get(dest) or ()
        words = tuple(map(str, said)) if isinstance(said, list | tuple) else (str(said),)
        modules = frozenset(words) - {"full"}
        if e.core >= (0, 18):
            impl = WHOLE_ITERATION if WHOLE_ITERATION in words and impl in ("none", "local") else impl
            modules -= {WHOLE_ITERATION, INFERENCE}
        if impl == "local" and modules & ROUTING:
            modules |= ROUTING  # local graphs take the router with what prepares its tokens
        return cls(impl, tuple(dests), modules, dest, words)

    @property
    def is_whole(self) -> bool:
        """Whether the iteration is captured, and not its layers."""
        return self.impl == WHOLE_ITERATION or (self.impl != "none" and WHOLE_ITERATION in self.modules)

    def captures(self, module: str) -> bool:
        """Whether a module is within a graph."""
        return self.impl != "none" and (self.is_whole or not self.modules or module in self.modules)

    @property
    def off(self) -> tuple[tuple[str, str | bool], ...]:
        """Values that turn graphs off."""
        switch = self.dests[-1] if self.dests else "cuda_graph_impl"
        return ((switch, "none" if switch == "cuda_graph_impl" else False),)


needs("MW371", "CUDA graphs draw random numbers through Transformer Engine",
      when={"external_cuda_graph": ON}, need={"te_rng_tracker": ON}, spans=(nvidia("0.13", "0.14"),))  # fmt: skip


@rule("MW366", "CUDA graphs capture layers that are not recomputed whole", checked="validate_args, TransformerConfig",
      spans=(nvidia("0.14"), rocm("0.15")))  # fmt: skip
def recomputed_whole(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    # Releases before 0.14 refuse every recomputation (MW372), 0.14 and 0.15 whole layers with any graph.
    is_layered = e.core < (0, 16) or not (graphs.is_whole and graphs.modules <= {WHOLE_ITERATION})
    if e.recompute_granularity == "full" and graphs.impl != "none" and is_layered:
        message = f"CUDA graphs ({graphs.impl}) do not capture layers that are recomputed whole"
        yield Violation(message, (*graphs.dests, "recompute_granularity"),
                        (*graphs.off, ("recompute_granularity", "selective")))  # fmt: skip


@rule("MW372", "CUDA graphs went with little recomputation", checked="TransformerConfig",
      spans=(nvidia("0.11", "0.16"), rocm("0.11", "0.16")))  # fmt: skip
def recomputed_at_all(e: Effective) -> Iterator[Violation]:
    graphs, again = Graphs.of(e), recomputed(e)
    if not again or graphs.impl == "none" or (e.core < (0, 15) and not e.enable_cuda_graph):
        return
    dests, nearest = (*graphs.dests, "recompute_granularity"), (*graphs.off, ("recompute_granularity", None))
    if graphs.impl == "local" or e.recompute_granularity == "full" or graphs.words != ("attn",):
        message = "this release recomputes with Transformer Engine's graphs of attention (cuda_graph_scope = attn) only"
        yield Violation(message, dests, nearest)
    for name in sorted(again & {"core_attn", "mla_up_proj"}):
        yield Violation(f"graphs of attention do not work with recomputing {name}", (MODULES_KEY, *dests), nearest)


@rule("MW375", "CUDA graphs and layers offloaded to the CPU exclude each other", checked="TransformerConfig",
      spans=(nvidia("0.11"), rocm("0.11")))  # fmt: skip
def offloaded(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    is_refused = e.enable_cuda_graph if e.core < (0, 15) else graphs.impl not in ("none", WHOLE_ITERATION)
    if is_offloading(e) and is_refused:
        dest = "cpu_offloading_num_layers" if e.core >= (0, 16) else "cpu_offloading"
        yield Violation("CUDA graphs do not work with layers offloaded to the CPU", (*graphs.dests, dest), graphs.off)


@rule("MW376", "one way of asking for CUDA graphs", checked="validate_args", spans=(nvidia("0.14"), rocm("0.15")))
def one_way(e: Effective) -> Iterator[Violation]:
    named = [name for name in SWITCHES if e.values.get(name)]
    if len(named) > 1:
        yield Violation(f"{' and '.join(named)}: set one", tuple(named), choices(named[0], [False]))
    given = e.given.get("cuda_graph_impl", "none")
    if named and given != "none":
        message = f"{named[0]} is an older word for cuda_graph_impl, which is {given}: set one"
        yield Violation(message, (*named, "cuda_graph_impl"), choices("cuda_graph_impl", ["none"]))


needs("MW377", "hybrid context parallelism asks for cuda_graph_impl, not its older name",
      when={"hybrid_context_parallel": ON}, need={"enable_cuda_graph": OFF}, spans=MODULES_ARE_LISTED)  # fmt: skip


@rule("MW367", "a graph of the whole iteration cannot look for NaN", checked="validate_args",
      spans=(nvidia("0.14"), rocm("0.15")))  # fmt: skip
def not_a_number(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    if not graphs.is_whole or graphs.impl == "transformer_engine":
        return
    if (0, 15) <= e.core < (0, 17) and e.inference_dynamic_batching:
        if e.fp8:
            yield Violation("graphs of the whole iteration of inference do not work with fp8", (graphs.dest, "fp8"))
    elif e.check_for_nan_in_loss_and_grad:
        message = "a graph of the whole iteration does not work with check_for_nan_in_loss_and_grad"
        yield Violation(message, ("check_for_nan_in_loss_and_grad", *graphs.dests),
                        choices("check_for_nan_in_loss_and_grad", [False]))  # fmt: skip


@rule("MW370", "CUDA graphs of inference go with those of training", checked="validate_args")
def inference_graphs(e: Effective) -> Iterator[Violation]:
    scope, graphs = e.inference_cuda_graph_scope, Graphs.of(e)
    legal = ("layer", "block") if graphs.impl == "local" else ("none",)
    if scope is not None and scope not in legal:
        message = f"inference_cuda_graph_scope = {scope} with cuda_graph_impl = {graphs.impl}"
        yield Violation(message, ("inference_cuda_graph_scope", *graphs.dests),
                        choices("inference_cuda_graph_scope", legal))  # fmt: skip


@rule("MW378", "graphs of a whole iteration of inference have one FP8 recipe", checked="validate_args",
      spans=(nvidia("0.17"), rocm("0.17")))  # fmt: skip
def inference_in_fp8(e: Effective) -> Iterator[Violation]:
    graphs = Graphs.of(e)
    is_whole = graphs.impl == "local" and (INFERENCE in graphs.words or e.inference_cuda_graph_scope == "block")
    if is_whole and e.fp8 and (e.transformer_impl != "inference_optimized" or e.fp8_recipe != "mxfp8"):
        message = "graphs of a whole iteration of inference in FP8 need inference_optimized layers and fp8_recipe mxfp8"
        yield Violation(message, ("fp8", "transformer_impl", "fp8_recipe", graphs.dest))


@rule("MW379", "local CUDA graphs are for at least one size of batch", checked="validate_args",
      spans=(nvidia("0.17"), rocm("0.17")))  # fmt: skip
def inference_sizes(e: Effective) -> Iterator[Violation]:
    key, graphs = "inference_dynamic_batching_num_cuda_graphs", Graphs.of(e)
    count = e.values.get(key)
    if graphs.impl == "local" and count is not None and count < 1 and count != -1:
        yield Violation(f"{key} = {count} with local graphs: it is a number above 0, or -1",
                        (key, *graphs.dests), choices(key, [-1]))  # fmt: skip


@rule("MW402", "batches of inference are cut without CUDA graphs", checked="validate_args",
      spans=(nvidia("0.13"), rocm("0.15")))  # fmt: skip
def cut_batches(e: Effective) -> Iterator[Violation]:
    key, graphs = "inference_batch_times_seqlen_threshold", Graphs.of(e)
    is_captured = graphs.impl != "none" if e.core >= (0, 15) else e.enable_cuda_graph
    threshold = e.given.get(key)
    if threshold is not None and threshold > -1 and is_captured:
        message = f"{key} = {threshold} does not work with CUDA graphs"
        yield Violation(message, (key, *graphs.dests), choices(key, [-1]))


@rule("MW368", "CUDA graphs and expandable segments exclude each other", checked="validate_args",
      spans=(nvidia("0.14"), rocm("0.15")))  # fmt: skip
def segments(e: Effective) -> Iterator[Violation]:
    # 0.15 refused every kind; before and later only Transformer Engine's, and from 0.16 on not with
    # NCCL_GRAPH_REGISTER=0.
    graphs = Graphs.of(e)
    refused = ("local", "transformer_engine") if (0, 15) <= e.core < (0, 16) else ("transformer_engine",)
    is_safe = e.core >= (0, 16) and e.environment.get("NCCL_GRAPH_REGISTER") == "0"
    allocator = e.environment.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    if graphs.impl in refused and not is_safe and "expandable_segments:True" in allocator:
        message = "CUDA graphs do not work with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        yield Violation(message, graphs.dests, graphs.off)


@rule("MW369", "experts are padded for local CUDA graphs", checked="validate_args",
      spans=(nvidia("0.16", "0.18"), rocm("0.16", "0.18")))  # fmt: skip
def padded_experts(e: Effective) -> Iterator[Violation]:
    key, graphs = "moe_pad_experts_for_cuda_graph_inference", Graphs.of(e)
    is_exempt = e.core >= (0, 17) and e.transformer_impl == "inference_optimized"
    if graphs.impl == "local" and e.layout.expert > 1 and not e.values.get(key) and not is_exempt:
        message = f"cuda_graph_impl = local with EP = {e.layout.expert} needs {key}"
        yield Violation(message, (key, *graphs.dests), choices(key, [True]))
