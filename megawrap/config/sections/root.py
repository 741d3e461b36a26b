"""The whole configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from megawrap.config.sections.compute import Attention, Fusion, Gemm, Precision, Recompute
from megawrap.config.sections.inputs import Data, Tokenizer
from megawrap.config.sections.model import Model
from megawrap.config.sections.parallel import Parallel
from megawrap.config.sections.place import Cluster, Launcher, Megatron, Preflight, Run
from megawrap.config.sections.training import Checkpoint, Monitor, Optimizer, Schedule, Train


@dataclass(kw_only=True, slots=True)
class Config:
    """Everything that one launch needs to know. Each section is filled by the YAML files of the group of its name."""

    model: Model = field(default_factory=Model)
    parallel: Parallel = field(default_factory=Parallel)
    precision: Precision = field(default_factory=Precision)
    attention: Attention = field(default_factory=Attention)
    fusion: Fusion = field(default_factory=Fusion)
    gemm: Gemm = field(default_factory=Gemm)
    recompute: Recompute = field(default_factory=Recompute)
    train: Train = field(default_factory=Train)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    data: Data = field(default_factory=Data)
    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    cluster: Cluster = field(default_factory=Cluster)
    launcher: Launcher = field(default_factory=Launcher)
    megatron: Megatron = field(default_factory=Megatron)
    preflight: Preflight = field(default_factory=Preflight)
    monitor: Monitor = field(default_factory=Monitor)
    run: Run = field(default_factory=Run)
    env: dict[str, str | None] = field(default_factory=dict)
    """Environment variables of every rank; your value always wins over a profile's. null: unset."""
    silence: list[str] = field(default_factory=list)
    """Ids of warnings that you know of and do not want to see, such as MW902. Errors cannot be silenced."""
