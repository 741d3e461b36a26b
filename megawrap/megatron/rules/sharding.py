"""MW15x–MW17x: optimizer, data parallel, sharding, overlap. Sources: validate_args, DistributedDataParallelConfig and
OptimizerConfig of Megatron-LM core_v0.19.0, and older ones where a rule says so."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective, is_emerging
from megawrap.megatron.rules.parallel import EP, PP, TP
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, needs, nvidia, rocm, rule, word

EMERGING = (nvidia("0.16"), rocm("0.16"))
"""Optimizers beside Adam and SGD."""
UNSHARDED_MUON = (nvidia("0.16", "0.18"), rocm("0.16", "0.18"))
LOW_PRECISION_STATES = ("main_grads_dtype", "main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype")


@rule("MW207", "parameters can only be gathered in overlap with a distributed optimizer", checked="validate_args")
def overlap_param_gather(e: Effective) -> Iterator[Violation]:
    if not e.overlap_param_gather:
        return
    is_sharded = e.given.get("use_distributed_optimizer") or e.use_distributed_optimizer or e.use_megatron_fsdp
    if not is_sharded and e.optimizer != "dist_muon":
        message = "overlap_param_gather without a distributed optimizer"
        yield Violation(message, ("overlap_param_gather", "use_distributed_optimizer"),
                        choices("use_distributed_optimizer", [True]))  # fmt: skip
    if not e.overlap_grad_reduce:
        message = "overlap_param_gather without overlap_grad_reduce"
        yield Violation(message, ("overlap_param_gather", "overlap_grad_reduce"),
                        choices("overlap_grad_reduce", [True]))  # fmt: skip


needs("MW150", "parameters are gathered during the optimizer step only with an interleaved pipeline",
      when={"overlap_param_gather_with_optimizer_step": ON},
      need={"use_distributed_optimizer": ON, "overlap_param_gather": ON, "ckpt_format": ("torch",)})  # fmt: skip


@rule("MW151", "parameters are gathered during the optimizer step only with an interleaved pipeline",
      checked="validate_args")  # fmt: skip
def gather_in_step(e: Effective) -> Iterator[Violation]:
    if e.overlap_param_gather_with_optimizer_step and e.layout.virtual < 2:
        message = "overlap_param_gather_with_optimizer_step needs an interleaved pipeline schedule"
        yield Violation(message, ("overlap_param_gather_with_optimizer_step", "num_virtual_stages_per_pipeline_rank"))


needs("MW152", "FSDP2 shards everything itself",
      when={"use_torch_fsdp2": ON},
      need={PP: (1,), EP: (1,), "use_distributed_optimizer": OFF, "gradient_accumulation_fusion": OFF,
            "untie_embeddings_and_output_weights": ON, "fp16": OFF,
            "ckpt_format": ("torch_dist", "torch_dcp")})  # fmt: skip
needs("MW153", "Megatron-FSDP has a checkpoint format of its own",
      when={"use_megatron_fsdp": ON}, need={"ckpt_format": ("fsdp_dtensor",)},
      spans=(nvidia("0.14"), rocm("0.15")))  # fmt: skip
needs("MW154", "checkpoints of Megatron-FSDP are for it alone",
      when={"ckpt_format": ("fsdp_dtensor",)}, need={"use_megatron_fsdp": ON})  # fmt: skip
needs("MW155", "checkpoints of torch_dcp are for FSDP2 without TP and PP",
      when={"ckpt_format": ("torch_dcp",)}, need={"use_torch_fsdp2": ON, TP: (1,), PP: (1,)})  # fmt: skip
needs("MW156", "Megatron-FSDP works with Adam and SGD",
      when={"use_megatron_fsdp": ON},
      need={"optimizer": ("adam", "sgd"), "moe_single_grouped_weight": OFF, "moe_single_grouped_bias": OFF},
      spans=EMERGING)  # fmt: skip
needs("MW157", "weights cannot be compared where each rank has a part",
      when={"use_megatron_fsdp": ON, "data_parallel_sharding_strategy": ("optim_grads_params",)},
      need={"check_weight_hash_across_dp_replicas_interval": OFF})  # fmt: skip
needs("MW158", "models that are not sharded are not made on the meta device",
      when={"use_megatron_fsdp": ON, "init_model_with_meta_device": ON},
      need={"data_parallel_sharding_strategy": ("optim", "optim_grads", "optim_grads_params")},
      spans=EMERGING)  # fmt: skip
needs("MW159", "buffers are registered by hand for Megatron-FSDP over user buffers",
      when={"fsdp_manual_registration": ON}, need={"use_megatron_fsdp": ON, "nccl_ub": ON})  # fmt: skip
needs("MW160", "optimizer states in low precision are for Adam, sharded",
      when={"use_precision_aware_optimizer": ON}, need={"optimizer": ("adam",), "use_distributed_optimizer": ON},
      checked="OptimizerConfig", spans=(nvidia(until="0.20"), rocm()))  # fmt: skip
needs("MW172", "optimizer states in low precision are for Adam",
      when={"use_precision_aware_optimizer": ON}, need={"optimizer": ("adam",)}, checked="OptimizerConfig",
      spans=(nvidia("0.20"),))  # fmt: skip
needs("MW161", "optimizer states are fp32 without the precision-aware optimizer",
      when={"use_precision_aware_optimizer": (False,)}, need=dict.fromkeys(LOW_PRECISION_STATES, ("fp32",)),
      checked="OptimizerConfig")  # fmt: skip
needs("MW162", "main gradients are fp32 where they are accumulated in fp32",
      when={"bf16": ON, "accumulate_allreduce_grads_in_fp32": ON}, need={"main_grads_dtype": ("fp32",)})  # fmt: skip
needs("MW163", "optimizer states go to the CPU with the precision-aware optimizer",
      when={"optimizer_cpu_offload": ON}, need={"use_precision_aware_optimizer": ON})  # fmt: skip
needs("MW164", "optimizer states go to the CPU with delayed FP8 scaling, or bf16 parameters",
      when={"optimizer_cpu_offload": ON, "fp8_param_gather": ON}, need={"fp8_recipe": ("delayed",)})  # fmt: skip
needs("MW165", "without gloo groups, sharded states are saved in a distributed format",
      when={"use_gloo_process_groups": (False,), "use_distributed_optimizer": ON},
      need={"ckpt_format": ("torch_dist", "torch_dcp", "fsdp_dtensor")})  # fmt: skip
needs("MW166", "saving in little memory goes through gloo",
      when={"use_gloo_process_groups": (False,), "use_distributed_optimizer": ON,
            "dist_ckpt_optim_fully_reshardable": ON},
      need={"distrib_optim_fully_reshardable_mem_efficient": OFF})  # fmt: skip
needs("MW168", "the gradient buffer is reused for MXFP8 parameters only",
      when={"reuse_grad_buf_for_mxfp8_param_ag": ON},
      need={"fp8_param_gather": ON, "overlap_param_gather_with_optimizer_step": OFF},
      checked="DistributedDataParallelConfig")  # fmt: skip
needs("MW169", "checkpoints of bare parameters need parameters in place",
      when={"save": ON, "save_params_interval": ON}, need={"overlap_param_gather": OFF})  # fmt: skip


@rule("MW167", "optimizers other than Adam and SGD", checked="validate_args", spans=EMERGING)
def emerging(e: Effective) -> Iterator[Violation]:
    if not is_emerging(e.optimizer):
        return
    for dest in ("use_torch_fsdp2", "use_megatron_fsdp"):
        if e.values.get(dest):
            yield Violation(f"optimizer = {e.optimizer} does not work with {dest}", (dest, "optimizer"))
    if e.ckpt_format not in ("torch", "torch_dist"):
        message = f"optimizer = {e.optimizer} needs ckpt_format = torch or torch_dist, and it is {e.ckpt_format}"
        yield Violation(message, ("ckpt_format", "optimizer"), choices("ckpt_format", ["torch_dist"]))


@rule("MW171", "Muon was not sharded", checked="validate_args", spans=UNSHARDED_MUON)
def muon(e: Effective) -> Iterator[Violation]:
    if "muon" not in str(e.optimizer):
        return
    overlaps = ("overlap_grad_reduce", "overlap_param_gather") if e.optimizer == "muon" else ()
    for dest in ("use_distributed_optimizer", *overlaps):
        if e.values.get(dest):
            message = f"optimizer = {e.optimizer} does not work with {dest} in this release"
            yield Violation(message, (dest, "optimizer"), choices(dest, [False]))


@rule("MW170", "a number of buckets, or their size", checked="DistributedDataParallelConfig, training.get_model")
def buckets(e: Effective) -> Iterator[Violation]:
    if e.use_torch_fsdp2 or e.ddp_num_buckets is None:
        return
    if e.ddp_bucket_size is not None:
        yield Violation("ddp_num_buckets and ddp_bucket_size: set one", ("ddp_num_buckets", "ddp_bucket_size"))
    if e.ddp_num_buckets < 1:
        yield Violation(f"ddp_num_buckets = {e.ddp_num_buckets} is not a number of buckets", ("ddp_num_buckets",))


@rule("MW173", "buffers of users and expandable segments exclude each other", checked="DistributedDataParallelConfig",
      spans=(nvidia("0.14", "0.18"), rocm("0.14", "0.18")))  # fmt: skip
def user_buffers(e: Effective) -> Iterator[Violation]:
    # From 0.18 on only with PyTorch before 2.11.
    settings = (e.environment.get("PYTORCH_CUDA_ALLOC_CONF") or "").split(",")
    if e.nccl_ub and not e.use_torch_fsdp2 and "expandable_segments:True" in settings:
        message = "nccl_ub does not work with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        yield Violation(message, ("nccl_ub",), choices("nccl_ub", [False]))


@rule("MW174", "gradients that are all reduced in fp32 need no list of those that are",
      checked="DistributedDataParallelConfig", spans=(nvidia("0.17"), rocm("0.17")))  # fmt: skip
def accumulated(e: Effective) -> Iterator[Violation]:
    key = "ddp_param_name_patterns_for_fp32_local_accumulation"
    if e.values.get(key) and e.accumulate_allreduce_grads_in_fp32 and not e.use_torch_fsdp2:
        message = f"{key} is for gradients in bf16, and they are in fp32"
        yield Violation(message, (key, "grad_reduce_in_bf16"), choices(key, [None]))


SHARDS = "tensor_parallel_num_weight_shards"


@rule("MW175", "weights in shards have limits of their own", checked="validate_args, initialize_model_parallel",
      spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip
def weight_shards(e: Effective) -> Iterator[Violation]:
    named = [name for name, size in ((SHARDS, e.layout.tensor), (f"expert_{SHARDS}", e.layout.expert_tensor))
             if (e.values.get(name) or 0) > size]  # fmt: skip
    is_mxfp8 = e.fp8_recipe == "mxfp8"  # asked without FP8 too
    wrong = {
        "fp4_param_gather": (bool(e.fp4) and not e.fp4_param_gather, "fp4", True),
        "ddp_average_in_collective": (bool(e.ddp_average_in_collective), "", False),
        "ckpt_format": (e.ckpt_format not in ("torch", "torch_dist"), "", "torch_dist"),
        "distrib_optim_fully_reshardable_mem_efficient": (
            bool(e.dist_ckpt_optim_fully_reshardable and e.distrib_optim_fully_reshardable_mem_efficient),
            "dist_ckpt_optim_fully_reshardable", False),
        "fp8_param_gather": (is_mxfp8 and not e.fp8_param_gather, "fp8_recipe = mxfp8", True),
        "reuse_grad_buf_for_mxfp8_param_ag": (
            is_mxfp8 and not e.reuse_grad_buf_for_mxfp8_param_ag, "fp8_recipe = mxfp8", True),
        "num_distributed_optimizer_instances": ((e.num_distributed_optimizer_instances or 1) > 1, "", 1),
    }  # fmt: skip
    for dest, (is_wrong, beside, legal) in wrong.items():
        if named and is_wrong:
            more = f" and {beside}" if beside else ""
            message = f"{named[0]} = {e.values[named[0]]}{more}: {dest} must be {word(legal)}"
            yield Violation(message, (dest, *named), choices(dest, [legal]))


@rule("MW176", "the world is a multiple of the weight shards of experts x EP x PP", checked="initialize_model_parallel",
      spans=(nvidia("0.19"), rocm("0.19")))  # fmt: skip
def expert_weight_shards(e: Effective) -> Iterator[Violation]:
    key, layout = f"expert_{SHARDS}", e.layout
    shards = e.values.get(key) or 0
    size = shards * layout.expert * layout.pipeline
    if shards > layout.expert_tensor and layout.world_size % size:
        message = f"{layout.world_size} ranks are not a multiple of {key} x EP x PP = {size}"
        yield Violation(message, (key, EP, PP), choices(key, [layout.expert_tensor]))
