"""A process that answers: would this Megatron-LM accept these arguments? One JSON object a line, in and out.

Run as a script by the Python that has the target (``worker.py [SOURCE_TREE]``), so it imports nothing of megawrap. It
asks Megatron itself, in the order of a launch: its parser, ``validate_args``, the micro-batch calculator, the parallel
groups over PyTorch's fake process group, the model, data-parallel and optimizer configs, and the learning-rate
scheduler. No GPU is needed: where Megatron asks one for its compute capability it hears 9, as MI300X and H100 report,
and where it asks for Transformer Engine it hears of a recent one.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import importlib.util
import inspect
import io
import json
import os
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TRANSFORMER_ENGINE = "2.14.0"
_SIZES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size",
          "context_parallel_size", "expert_model_parallel_size", "expert_tensor_parallel_size",
          "num_distributed_optimizer_instances")  # fmt: skip
_GTP_SIZES = {"gtp_remat_size": "gtp_weight_remat_size", "expert_gtp_remat_size": "expert_gtp_weight_remat_size"}
# Python put this file's folder first, whose modules are not meant to be imported by their bare names.
sys.path[0] = str(Path(__file__).absolute().parents[1])
light: Any = importlib.import_module("light")
del sys.path[0]


def serve(source_tree: str | None) -> None:
    """Answer requests ``{"argv", "environment", "world_size", "want"}`` until stdin ends. An answer is ``{"stage": null
    or where it was rejected, "message", "values": {dest: value of every dest in want}}``."""
    answers, requests = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(0))
    os.dup2(2, 1)  # Megatron prints on stdout
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # and opens, then closes, the file 0 where an argument is a path or 0
    warnings.simplefilter("ignore")
    if source_tree:
        sys.path.insert(0, source_tree)
    light.install(_training_folder(source_tree))
    target = Target()
    answers.write(json.dumps({"ready": True, "file": target.arguments.__file__}) + "\n")
    answers.flush()
    for line in requests:
        answers.write(json.dumps(target.judge(json.loads(line)), default=str) + "\n")
        answers.flush()


class Target:
    """The Megatron-LM of this process."""

    def __init__(self) -> None:
        import megatron.training.arguments as arguments

        self.arguments: Any = arguments
        self.patch: Any = getattr(arguments, "get_patch_args", None)
        if hasattr(arguments, "add_megatron_arguments"):
            self._keep_parser()
        _pretend()

    def _keep_parser(self) -> None:
        """Build the parser once: that takes fifty times as long as all the rest of a case."""
        parser: argparse.ArgumentParser = self.arguments.add_megatron_arguments(
            argparse.ArgumentParser(allow_abbrev=False)
        )
        parser = self.patch(parser) if self.patch else parser
        lists = {action: action.default for action in parser._actions if isinstance(action.default, list)}

        def kept(_new: argparse.ArgumentParser) -> argparse.ArgumentParser:
            for action, default in lists.items():  # validate_args appends to some of them
                action.default = list(default)
            return parser

        for action, default in lists.items():
            lists[action] = list(default)
        self.arguments.add_megatron_arguments, self.patch = kept, None

    def judge(self, case: dict[str, Any]) -> dict[str, Any]:
        """The verdict on one configuration."""
        with _surroundings(case):
            return self._judge(case["world_size"], case.get("want", ()))

    def _judge(self, world_size: int, want: tuple[str, ...]) -> dict[str, Any]:
        stage, args = "parse_args", None
        try:
            args = self._parse()
            stage = "validate_args"
            self.arguments.validate_args(args, {})
            with _world(world_size):
                for stage, run in self._stages(args):  # noqa: B007 - told when it fails
                    run()
        except BaseException as problem:
            if isinstance(problem, KeyboardInterrupt):
                raise
            where = traceback.extract_tb(problem.__traceback__)[-1]
            place = f"{'/'.join(where.filename.split('/')[-3:])}:{where.lineno}"
            message = f"{type(problem).__name__}: {problem}".removesuffix(": ")[:2000]
            return {"stage": stage, "message": message, "where": place, "line": where.line, "values": {}}
        return {"stage": None, "message": "", "values": {dest: _plain(getattr(args, dest, None)) for dest in want}}

    def _parse(self) -> Any:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                return self.arguments.parse_args(extra_args_provider=self.patch)
            except SystemExit:
                raise ValueError(said.getvalue().strip().rpartition("error: ")[2]) from None

    def _stages(self, args: Any) -> list[tuple[str, Callable[[], object]]]:
        return [
            ("num_microbatches_calculator", lambda: _micro_batches(args)),
            ("initialize_model_parallel", lambda: _groups(args)),
            ("TransformerConfig", lambda: _core_config(self.arguments)(args)),
            ("DistributedDataParallelConfig", lambda: _ddp_config(args)),
            ("OptimizerConfig", lambda: _optimizer_config(args)),
            ("OptimizerParamScheduler", lambda: _scheduler(args)),
        ]


@contextlib.contextmanager
def _surroundings(case: dict[str, Any]) -> Iterator[None]:
    """The words, the environment and the silence that one case wants; what it changes is put back."""
    environment, words = dict(os.environ), sys.argv
    for name, value in case.get("environment", {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    os.environ.update(RANK="0", WORLD_SIZE=str(case["world_size"]), LOCAL_RANK="0")
    sys.argv = ["pretrain_gpt.py", *case["argv"]]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.argv = words
        os.environ.clear()
        os.environ.update(environment)


def _training_folder(source_tree: str | None) -> str:
    if source_tree:
        return f"{source_tree}/megatron/training"
    found = importlib.util.find_spec("megatron.core")
    if found is None or found.origin is None:
        sys.exit("there is no megatron.core here")
    return str(Path(found.origin).parents[1] / "training")


def _pretend() -> None:
    """What a GPU node would answer."""
    import torch
    from megatron.core import utils
    from megatron.core.transformer.moe import moe_utils
    from packaging.version import Version

    cuda: Any = torch.cuda
    cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=4, multi_processor_count=304)
    cuda.get_device_capability = lambda *_: (9, 4)
    te: Any = utils
    te._te_version = Version(TRANSFORMER_ENGINE)
    te.get_te_version = lambda: Version(TRANSFORMER_ENGINE)
    rope: Any = _rope()
    for name in ("HAVE_APPLY_ROPE_FUSION", "fused_apply_rotary_pos_emb", "fused_apply_rotary_pos_emb_thd"):
        setattr(rope, name, getattr(rope, name, None) or light.unused)
    for name in (
        "permute",
        "permute_with_probs",
        "sort_chunks_by_index",
        "sort_chunks_by_index_with_probs",
        "unpermute",
    ):
        setattr(moe_utils, f"fused_{name}", getattr(moe_utils, f"fused_{name}", None) or light.unused)
    if "transformer_engine" not in sys.modules:
        for name in ("transformer_engine", "transformer_engine.pytorch", "transformer_engine.pytorch.optimizers"):
            light.stub(name).__path__ = []
        sys.modules["transformer_engine.pytorch.optimizers"].FusedAdam = _Adam  # type: ignore[attr-defined]


def _rope() -> Any:
    """The module with the rotary embedding's fused kernels; 0.9 has them beside the embedding itself."""
    folder = "megatron.core.models.common.embeddings"
    is_own = importlib.util.find_spec(f"{folder}.rope_utils") is not None
    return importlib.import_module(f"{folder}.{'rope_utils' if is_own else 'rotary_pos_embedding'}")


class _Adam:
    """The signature that Megatron looks for in Transformer Engine's Adam."""

    def __init__(
        self, master_weight_dtype: Any, exp_avg_dtype: Any, exp_avg_sq_dtype: Any, use_decoupled_grad: Any
    ) -> None: ...


def _core_config(arguments: Any) -> Callable[[Any], object]:
    if hasattr(arguments, "core_transformer_config_from_args"):
        found: Callable[[Any], object] = arguments.core_transformer_config_from_args
        return found
    from megatron.training import argument_utils

    later: Callable[[Any], object] = argument_utils.core_transformer_config_from_args
    return later


def _fields(config: Any, args: Any) -> dict[str, Any]:
    return {field.name: getattr(args, field.name) for field in dataclasses.fields(config) if hasattr(args, field.name)}


def _ddp_config(args: Any) -> None:
    """As training.get_model makes it."""
    from megatron.core.distributed import DistributedDataParallelConfig

    if getattr(args, "use_torch_fsdp2", False):
        return
    given = _fields(DistributedDataParallelConfig, args)
    named = {field.name for field in dataclasses.fields(DistributedDataParallelConfig)}
    renamed = {"grad_reduce_in_fp32": "accumulate_allreduce_grads_in_fp32", "num_buckets": "ddp_num_buckets",
               "bucket_size": "ddp_bucket_size", "average_in_collective": "ddp_average_in_collective",
               "param_name_patterns_for_fp32_local_accumulation":
               "ddp_param_name_patterns_for_fp32_local_accumulation"}  # fmt: skip
    given.update({new: getattr(args, old) for new, old in renamed.items() if new in named and hasattr(args, old)})
    DistributedDataParallelConfig(**given)


def _optimizer_config(args: Any) -> None:
    from megatron.core.optimizer import OptimizerConfig

    OptimizerConfig(**_fields(OptimizerConfig, args))


def _micro_batches(args: Any) -> None:
    from megatron.core import num_microbatches_calculator as calculator

    calculator.destroy_num_microbatches_calculator()
    start = calculator.init_num_microbatches_calculator
    sizes = ("rampup_batch_size", "global_batch_size", "micro_batch_size", "data_parallel_size",
             "decrease_batch_size_if_needed", "step_batch_size_schedule", "seq_length")  # fmt: skip
    named = set(inspect.signature(start).parameters)
    start(rank=1, **{name: getattr(args, name, None) for name in sizes if name in named})


def _scheduler(args: Any) -> None:
    """As training.get_optimizer_param_scheduler makes it."""
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    if getattr(args, "skip_train", False):
        return
    if args.train_iters:
        steps, unit = args.train_iters, args.global_batch_size
        decay, warmup, wsd = args.lr_decay_iters, args.lr_warmup_iters, args.lr_wsd_decay_iters
    elif args.train_samples:
        steps, unit = args.train_samples, 1
        decay, warmup, wsd = args.lr_decay_samples, args.lr_warmup_samples, args.lr_wsd_decay_samples
    else:
        raise ValueError("either train-iters or train-samples should be provided.")
    decay = (steps if decay is None else decay) * unit
    fraction = args.lr_warmup_fraction
    OptimizerParamScheduler(
        types.SimpleNamespace(param_groups=[]),
        init_lr=args.lr_warmup_init,
        max_lr=args.lr,
        min_lr=args.min_lr,
        lr_warmup_steps=warmup * unit if fraction is None else fraction * decay,
        lr_decay_steps=decay,
        lr_decay_style=args.lr_decay_style,
        start_wd=args.start_weight_decay,
        end_wd=args.end_weight_decay,
        wd_incr_steps=steps * unit,
        wd_incr_style=args.weight_decay_incr_style,
        use_checkpoint_opt_param_scheduler=args.use_checkpoint_opt_param_scheduler,
        override_opt_param_scheduler=args.override_opt_param_scheduler,
        wsd_decay_steps=None if wsd is None else wsd * unit,
        lr_wsd_decay_style=args.lr_wsd_decay_style,
    )


@contextlib.contextmanager
def _world(size: int) -> Iterator[None]:
    """``size`` ranks of which this is the first, as far as PyTorch knows."""
    import torch.distributed as dist
    from megatron.core import parallel_state
    from torch.testing._internal.distributed.fake_pg import FakeStore

    module: Any = dist
    real, hook = dist.new_group, sys.excepthook
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)
    module.new_group = lambda *args, **named: real(*args, **{**named, "backend": None})  # gloo ones too
    try:
        yield
    finally:
        module.new_group, sys.excepthook = real, hook
        parallel_state.destroy_model_parallel()
        dist.destroy_process_group()


def _groups(args: Any) -> None:
    from megatron.core import parallel_state

    named = set(inspect.signature(parallel_state.initialize_model_parallel).parameters)
    sizes = {name: getattr(args, name) for name in _SIZES if name in named and hasattr(args, name)}
    sizes |= {name: getattr(args, dest) for name, dest in _GTP_SIZES.items() if name in named and hasattr(args, dest)}
    if "order" in named and getattr(args, "use_tp_pp_dp_mapping", False):
        sizes["order"] = "tp-cp-ep-pp-dp"
    parallel_state.initialize_model_parallel(**sizes)


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else getattr(value, "name", str(value))


if __name__ == "__main__":
    serve(sys.argv[1] if len(sys.argv) > 1 else None)
