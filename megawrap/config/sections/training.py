"""How the model is trained: batches, optimizer, schedule, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from megawrap.config.field import arg, option


@dataclass(kw_only=True, slots=True)
class Train:
    """Batches and length of the run."""

    seq_length: int | None = arg("--seq-length")
    """Tokens in a sequence."""
    micro_batch_size: int | None = arg("--micro-batch-size")
    """Sequences in one forward pass of a rank."""
    global_batch_size: int | None = arg("--global-batch-size")
    """Sequences in one optimizer step, over all ranks: a multiple of micro_batch_size x the data-parallel size."""
    train_iters: int | None = arg("--train-iters")
    """Optimizer steps in the run."""
    train_samples: int | None = arg("--train-samples")
    """Sequences in the run, in place of train_iters."""
    eval_iters: int | None = arg("--eval-iters")
    """Batches in one validation; 0 turns it off."""
    eval_interval: int | None = arg("--eval-interval")
    """Steps between validations."""
    log_interval: int | None = arg("--log-interval")
    """Steps between iteration lines."""
    seed: int | None = arg("--seed")
    """Seed of weights, dropout and data order; greater than 0."""
    num_workers: int | None = arg("--num-workers")
    """Data-loading processes of each rank."""
    manual_gc: bool | None = arg("--manual-gc")
    """Collect garbage on all ranks in the same step, so that none waits for another."""


@dataclass(kw_only=True, slots=True)
class Optimizer:
    """The optimizer."""

    name: str | None = arg("--optimizer")
    """adam, sgd, ... as the target release names them."""
    lr: float | None = arg("--lr")
    """Peak learning rate."""
    min_lr: float | None = arg("--min-lr")
    """Learning rate at the end of the decay; at most lr."""
    weight_decay: float | None = arg("--weight-decay")
    """Decoupled weight decay."""
    adam_beta1: float | None = arg("--adam-beta1")
    """Decay of Adam's first moment."""
    adam_beta2: float | None = arg("--adam-beta2")
    """Decay of Adam's second moment."""
    adam_eps: float | None = arg("--adam-eps")
    """Adam's epsilon."""
    clip_grad: float | None = arg("--clip-grad")
    """Largest global gradient norm; 0 turns clipping off."""
    precision_aware: bool | None = arg("--use-precision-aware-optimizer")
    """Optimizer states in lower precision (needs Transformer Engine)."""


@dataclass(kw_only=True, slots=True)
class Schedule:
    """The learning rate over the run."""

    lr_decay_style: str | None = arg("--lr-decay-style")
    """constant, linear, cosine, inverse-square-root or WSD (warm-up, stable, decay)."""
    lr_warmup_iters: int | None = arg("--lr-warmup-iters")
    """Steps of linear warm-up; fewer than the steps of the decay."""
    lr_warmup_fraction: float | None = arg("--lr-warmup-fraction")
    """Warm-up as a share of the decay, in place of lr_warmup_iters."""
    lr_decay_iters: int | None = arg("--lr-decay-iters")
    """Steps until min_lr is reached; the length of the run when not set."""
    lr_wsd_decay_style: str | None = arg("--lr-wsd-decay-style")
    """WSD only: shape of the final decay."""
    lr_wsd_decay_iters: int | None = arg("--lr-wsd-decay-iters")
    """WSD only: steps of the final decay."""


@dataclass(kw_only=True, slots=True)
class Checkpoint:
    """Saving and resuming."""

    save: str | None = arg("--save")
    """Folder that checkpoints are written to; by default inside the run directory. null: no checkpoints."""
    load: str | None = arg("--load")
    """Folder to resume from. Never the run's own folder unless you say so."""
    save_interval: int | None = arg("--save-interval")
    """Steps between checkpoints; the last step is always saved."""
    format: str | None = arg("--ckpt-format")
    """torch_dist can be loaded into another layout; torch cannot."""
    finetune: bool | None = arg("--finetune")
    """Load weights only and start counting from iteration 0."""
    async_save: bool | None = arg("--async-save")
    """Write checkpoints in the background."""


@dataclass(kw_only=True, slots=True)
class Monitor:
    """What is measured while the run goes on."""

    log_throughput: bool | None = arg("--log-throughput")
    """Model TFLOP/s per GPU in every iteration line."""
    tensorboard_dir: str | None = arg("--tensorboard-dir")
    """Folder for TensorBoard's event files."""
    wandb_project: str | None = arg("--wandb-project")
    """Project at Weights & Biases; the key comes from the environment, never from here."""
    wandb_exp_name: str | None = arg("--wandb-exp-name")
    """Name of the run at Weights & Biases."""
    grace_seconds: float = option(15.0)
    """After a stop signal, seconds before ranks that are still there are killed."""
