"""MW80x: mixtures of experts. Sources: validate_args, TransformerConfig, router and dispatchers of Megatron-LM
core_v0.19.0, and older ones where a rule says so."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.estimate.pattern import expert_layers
from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import (
    OFF,
    ON,
    SET,
    Violation,
    choices,
    divisors,
    needs,
    nvidia,
    rocm,
    rule,
)

WITH_CAPACITY = ("aux_loss", "seq_aux_loss", "global_aux_loss", "none")
UNBIASED_SCORES = ("sigmoid", "sqrtsoftplus")


def balancing(e: Effective) -> list[str]:
    """The ways of balancing, one or several."""
    kinds = e.moe_router_load_balancing_type
    return list(kinds) if isinstance(kinds, list | tuple) else [kinds] if kinds else []


needs("MW800", "the width of an expert is for experts", when={"moe_ffn_hidden_size": ON}, need={"num_experts": ON},
      checked="TransformerConfig", spans=(nvidia("0.13"), rocm("0.15")))  # fmt: skip


@rule("MW801", "a token visits at most all experts", checked="nowhere: dies in the first step")
def visits(e: Effective) -> Iterator[Violation]:
    if e.num_experts and e.moe_router_topk and not 0 < e.moe_router_topk <= e.num_experts:
        message = f"moe_router_topk = {e.moe_router_topk}, and there are {e.num_experts} experts"
        yield Violation(message, ("moe_router_topk", "num_experts"), choices("moe_router_topk", [e.num_experts]))


@rule("MW802", "the softmax comes first when a token visits one expert", checked="TransformerConfig",
      spans=(nvidia("0.11"), rocm("0.10")))  # fmt: skip
def one_visit(e: Effective) -> Iterator[Violation]:
    is_softmax = e.values.get("moe_router_score_function", "softmax") == "softmax"
    # Checked for dense models too, whose topk is 2 unless said otherwise.
    if e.moe_router_topk == 1 and is_softmax and not e.moe_router_pre_softmax and balancing(e) != ["sinkhorn"]:
        message = "moe_router_topk = 1 needs moe_router_pre_softmax: one chosen score has no gradient after a softmax"
        yield Violation(message, ("moe_router_pre_softmax", "moe_router_topk"),
                        choices("moe_router_pre_softmax", [True]))  # fmt: skip


@rule("MW803", "groups of experts are equal, and few are chosen", checked="TransformerConfig")
def groups(e: Effective) -> Iterator[Violation]:
    chosen, count = e.moe_router_group_topk, e.moe_router_num_groups
    if not chosen:
        return
    if e.moe_router_topk_limited_devices:
        message = "moe_router_topk_limited_devices is the older name of moe_router_group_topk: set one"
        yield Violation(message, ("moe_router_topk_limited_devices", "moe_router_group_topk"))
        return
    if not count:
        message = f"moe_router_group_topk = {chosen} needs moe_router_num_groups"
        yield Violation(message, ("moe_router_num_groups", "moe_router_group_topk"))
        return
    if not e.num_experts:
        message = "moe_router_group_topk chooses groups of experts, and the model has none"
        yield Violation(message, ("moe_router_group_topk", "num_experts"))
        return
    if e.num_experts % count:
        yield Violation(f"{e.num_experts} experts cannot be divided into {count} groups",
                        ("moe_router_num_groups", "num_experts"),
                        choices("moe_router_num_groups", divisors(e.num_experts, count)))  # fmt: skip
    if chosen > count:
        yield Violation(f"moe_router_group_topk = {chosen} of {count} groups",
                        ("moe_router_group_topk", "moe_router_num_groups"),
                        choices("moe_router_group_topk", [count]))  # fmt: skip


@rule("MW804", "the bias of an expert goes with scores that do not add up to 1", checked="TransformerConfig")
def expert_bias(e: Effective) -> Iterator[Violation]:
    known = UNBIASED_SCORES if e.fork == "nvidia" and e.core >= (0, 17) else UNBIASED_SCORES[:1]
    if e.moe_router_enable_expert_bias and e.moe_router_score_function not in known:
        message = f"moe_router_enable_expert_bias with moe_router_score_function = {e.moe_router_score_function}"
        yield Violation(message, ("moe_router_score_function", "moe_router_enable_expert_bias"),
                        choices("moe_router_score_function", known))  # fmt: skip


@rule("MW805", "a limited capacity goes with a balancing loss", checked="TransformerConfig")
def capacity(e: Effective) -> Iterator[Violation]:
    factor = e.moe_expert_capacity_factor
    wrong = [kind for kind in balancing(e) if kind not in WITH_CAPACITY]
    if factor is not None and wrong:
        message = f"moe_expert_capacity_factor does not work with moe_router_load_balancing_type = {', '.join(wrong)}"
        yield Violation(message, ("moe_expert_capacity_factor", "moe_router_load_balancing_type"))
    if e.moe_pad_expert_input_to_capacity and (factor is None or factor < 0):
        message = "moe_pad_expert_input_to_capacity needs moe_expert_capacity_factor"
        yield Violation(message, ("moe_expert_capacity_factor", "moe_pad_expert_input_to_capacity"),
                        choices("moe_expert_capacity_factor", [1.0]))  # fmt: skip


@rule("MW806", "a loss for each way of balancing", checked="TransformerConfig")
def losses(e: Effective) -> Iterator[Violation]:
    kinds, weights = e.moe_router_load_balancing_type, e.moe_aux_loss_coeff
    if isinstance(kinds, list | tuple):
        count = len(weights) if isinstance(weights, list | tuple) else 1
        if count != len(kinds):
            message = f"{len(kinds)} ways of balancing, and {count} moe_aux_loss_coeff"
            yield Violation(message, ("moe_aux_loss_coeff", "moe_router_load_balancing_type"))


@rule("MW807", "Sinkhorn balances without a loss", checked="nowhere: dies in the first step")
def sinkhorn(e: Effective) -> Iterator[Violation]:
    if e.num_experts and balancing(e) == ["sinkhorn"] and e.moe_aux_loss_coeff not in (None, 0, 0.0):
        message = f"moe_aux_loss_coeff = {e.moe_aux_loss_coeff} with sinkhorn balancing"
        yield Violation(message, ("moe_aux_loss_coeff", "moe_router_load_balancing_type"),
                        choices("moe_aux_loss_coeff", [0.0]))  # fmt: skip


@rule("MW808", "shared experts have a width", checked="TransformerConfig")
def shared(e: Effective) -> Iterator[Violation]:
    width, dispatcher = e.moe_shared_expert_intermediate_size, e.moe_token_dispatcher_type
    if width is None:
        return
    if width < 1:
        message = f"moe_shared_expert_intermediate_size = {width} is not a width"
        yield Violation(message, ("moe_shared_expert_intermediate_size",))
    elif e.moe_shared_expert_overlap and dispatcher not in ("alltoall", "flex"):
        message = f"moe_shared_expert_overlap does not work with moe_token_dispatcher_type = {dispatcher}"
        yield Violation(message, ("moe_token_dispatcher_type", "moe_shared_expert_overlap"),
                        choices("moe_token_dispatcher_type", ["alltoall"]))  # fmt: skip


@rule("MW809", "experts with biases are not split over ETP", checked="TransformerConfig",
      spans=(nvidia("0.15"), rocm("0.15")))  # fmt: skip
def biases(e: Effective) -> Iterator[Violation]:
    if e.num_experts and e.add_bias_linear and e.layout.expert_tensor > 1:
        message = f"experts with biases and ETP = {e.layout.expert_tensor}"
        yield Violation(message, ("add_bias_linear", "expert_tensor_parallel_size"),
                        choices("add_bias_linear", [False]))  # fmt: skip


@rule("MW810", "experts and dense layers follow a pattern of the layers", checked="nowhere: dies when it is built")
def pattern(e: Effective) -> Iterator[Violation]:
    if not (e.num_experts and e.num_layers):
        return
    try:
        expert_layers(e.moe_layer_freq, e.num_layers)
    except ValueError as problem:
        yield Violation(f"moe_layer_freq = {problem}", ("moe_layer_freq", "num_layers"))


needs("MW823", "a limited capacity was for one dispatcher",
      when={"moe_expert_capacity_factor": SET}, need={"moe_token_dispatcher_type": ("alltoall", "alltoall_seq")},
      checked="TransformerConfig", spans=(nvidia(until="0.12"), rocm(until="0.15")))  # fmt: skip
needs("MW820", "late weight gradients were not for overlapped reduction",
      when={"delay_wgrad_compute": ON}, need={"overlap_grad_reduce": OFF}, spans=(nvidia(until="0.14"),))  # fmt: skip
needs("MW822", "experts had no biases", when={"num_experts": ON}, need={"add_bias_linear": OFF},
      checked="TransformerConfig", spans=(nvidia("0.12", "0.15"),))  # fmt: skip


@rule("MW821", "a dense model is one that says nothing of experts", checked="validate_args",
      spans=(nvidia("0.10", "0.14"), rocm("0.10", "0.15")))  # fmt: skip
def no_experts(e: Effective) -> Iterator[Violation]:
    if e.given.get("num_experts") == 0:
        message = "num_experts = 0: this release takes it for an encoder; leave it unset"
        yield Violation(message, ("num_experts",))


needs("MW816", "latent projections are of experts", when={"moe_latent_size": ON}, need={"num_experts": ON})  # fmt: skip
needs("MW817", "experts were given no layer specification of one's own",
      when={"num_experts": ON}, need={"spec": OFF}, spans=(nvidia("0.9", "0.12"), rocm(until="0.16")))  # fmt: skip
needs("MW835", "grouped products of experts were not for FP8",
      when={"num_experts": ON, "moe_grouped_gemm": ON}, need={"fp8": OFF}, checked="TransformerConfig",
      spans=(nvidia(until="0.10"), rocm(until="0.10")))  # fmt: skip
needs("MW818", "grouped products of experts were for bf16",
      when={"moe_grouped_gemm": ON}, need={"bf16": ON}, spans=(nvidia(until="0.16"), rocm(until="0.16")))  # fmt: skip
