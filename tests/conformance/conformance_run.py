"""Our verdict and Megatron's on the same configurations: ``python tests/conformance/conformance_run.py --cases 20000``.

A report on stdout; exit code 1 when a configuration passes here and Megatron rejects it, or when more than 1 % are
rejected here and accepted there.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from conformance_cases import Case, cases
from conformance_ours import ours
from conformance_singles import singles

from megawrap.config.sections.root import Config
from megawrap.errors import Finding
from megawrap.megatron.oracle import Oracle, Verdict
from megawrap.megatron.rules.registry import RULES
from megawrap.megatron.surface import Target, resolve

MOST_OVER = 0.01
STAGES = frozenset({"parse_args", "validate_args", "num_microbatches_calculator", "initialize_model_parallel",
                    "TransformerConfig", "DistributedDataParallelConfig", "OptimizerConfig",
                    "OptimizerParamScheduler"})  # fmt: skip
"""Where the oracle asks Megatron."""
SETTLED = ("sequence_parallel", "expert_tensor_parallel_size", "global_batch_size", "num_experts", "ffn_hidden_size",
           "kv_channels", "moe_ffn_hidden_size", "accumulate_allreduce_grads_in_fp32", "apply_rope_fusion",
           "bias_gelu_fusion", "add_qkv_bias", "attention_softmax_in_fp32", "overlap_p2p_comm", "fp8_param_gather",
           "use_distributed_optimizer", "position_embedding_type", "recompute_granularity", "dataloader_type",
           "check_for_nan_in_loss_and_grad", "async_save", "no_load_optim", "eval_global_batch_size")  # fmt: skip
"""Arguments whose final values are compared too."""


@dataclasses.dataclass(frozen=True)
class Judged:
    """A case, what we found, what Megatron said, and which final values differ."""

    case: Case
    argv: tuple[str, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict
    unsettled: tuple[str, ...] = ()

    @property
    def is_missed(self) -> bool:
        """We pass it, and Megatron does not."""
        return not self.findings and not self.verdict.is_accepted

    @property
    def is_over(self) -> bool:
        """We reject it, and Megatron does not."""
        return bool(self.findings) and self.verdict.is_accepted

    @property
    def is_baseless(self) -> bool:
        """So, and no rule says that it dies elsewhere than where Megatron was asked."""
        places = {place for one in self.findings for place in _places(one.id)}
        return self.is_over and places <= STAGES


def target_of(tree: str | None) -> Target:
    """The target of a source tree, or the installed megatron-core."""
    config = Config().megatron
    config.source, config.path = ("checkout", tree) if tree else ("installed", None)
    return resolve(config)


def judge(one: Case, target: Target, oracle: Oracle) -> Judged:
    """Both verdicts on a case."""
    findings, argv, values = ours(one, target)
    verdict = oracle.ask(argv, one.world_size, one.environment, SETTLED)
    unsettled = ()
    if not findings and verdict.is_accepted:
        unsettled = tuple(
            f"{dest}: {values[dest]!r}, Megatron {verdict.values[dest]!r}"
            for dest in SETTLED
            if dest in values and verdict.values[dest] != getattr(values[dest], "name", values[dest])
        )
    return Judged(one, tuple(argv), tuple(findings), verdict, unsettled)


def run(target: Target, oracle: Oracle, drawn: Iterable[Case]) -> list[Judged]:
    """Judge each case."""
    return [judge(one, target, oracle) for one in drawn]


def draw(target: Target, seed: int, count: int) -> Iterator[Case]:
    """Cases of a seed with the arguments that the target has."""
    return cases(seed, count, has=lambda dest: target.surface.option(dest) is not None)


def report(judged: Sequence[Judged], *, shown: int = 60) -> str:
    """What agreed, what did not, and which rules took part."""
    missed = [one for one in judged if one.is_missed]
    over = [one for one in judged if one.is_over]
    unsettled = [one for one in judged if one.unsettled]
    accepted = sum(one.verdict.is_accepted for one in judged)
    stages = collections.Counter(one.verdict.stage or "accepted" for one in judged)
    rules = collections.Counter(id for one in judged for id in {finding.id for finding in one.findings})
    too_strict = collections.Counter(finding.id for one in over for finding in one.findings)
    lines = [
        f"{len(judged)} configurations; Megatron accepts {accepted}: {dict(stages.most_common())}",
        f"passed here, rejected there: {len(missed)}",
        *[f"  {count} x {said}" for said, count in collections.Counter(_said(one) for one in missed).most_common()],
        *[_line(one) for one in missed[:shown]],
        f"rejected here, accepted there: {len(over)} ({len(over) / max(1, len(judged)):.2%})",
        *[f"  {id} {count}: {RULES[id].checked}" if id in RULES else f"  {id} {count}"
          for id, count in too_strict.most_common()],
        *[_line(one) for one in over[:shown]],
        f"of these without a reason: {sum(one.is_baseless for one in judged)}",
        *[_line(one) for one in judged if one.is_baseless][:shown],
        f"other final values: {len(unsettled)}",
        *[f"  #{one.case.number} {', '.join(one.unsettled)}" for one in unsettled[:shown]],
        f"rules seen: {len(rules)} of {sum(rule.severity == 'error' for rule in RULES.values())}: "
        + " ".join(f"{id}:{count}" for id, count in sorted(rules.items())),
    ]  # fmt: skip
    return "\n".join(lines)


def is_good(judged: Sequence[Judged], most_over: float = MOST_OVER) -> bool:
    """Nothing missed or rejected without a reason, nothing settled otherwise, at most a share of ``most_over`` too
    strict."""
    is_wrong = any(one.is_missed or one.is_baseless or one.unsettled for one in judged)
    return not is_wrong and sum(one.is_over for one in judged) <= most_over * len(judged)


def _places(id: str) -> list[str]:
    return RULES[id].checked.partition(":")[0].split(", ") if id in RULES else ["parse_args"]


def _said(one: Judged) -> str:
    return f"{one.verdict.stage}: {one.verdict.message or one.verdict.line}"[:200]


def _line(one: Judged) -> str:
    ids = " ".join(f"{finding.id} ({finding.message})" for finding in one.findings)
    said = f"{one.verdict.stage} {one.verdict.where}: {one.verdict.message or one.verdict.line}"
    return f"  #{one.case.number} {list(one.case.mutations)} world {one.case.world_size}: {ids or said[:300]}"


def main(words: Sequence[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--singles", action="store_true", help="every argument, changed alone: no bound on strictness")
    parser.add_argument("--only", type=int, help="one case of them, in full")
    parser.add_argument("--tree", help="a Megatron-LM source tree; otherwise the installed megatron-core")
    options = parser.parse_args(words)
    target = target_of(options.tree)
    with Oracle(Path(options.tree) if options.tree else None) as oracle:
        start = time.monotonic()
        drawn = singles(target.surface) if options.singles else draw(target, options.seed, options.cases)
        judged = run(target, oracle, (one for one in drawn if options.only in (None, one.number)))
        seconds = time.monotonic() - start
    print(f"{target.name}, seed {options.seed}, {seconds:.0f} s")
    print(report(judged))
    if options.only is not None:
        print(" ".join(judged[0].argv), judged[0].case.environment, judged[0].verdict, sep="\n")
    return 0 if is_good(judged, 1 if options.singles else MOST_OVER) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
