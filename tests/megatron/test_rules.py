"""What a person sees of rules: keys, messages, origins, nearest values. Each rule: conformance/test_broken.py."""

from __future__ import annotations

import pytest

from megawrap.errors import errors
from megawrap.guards import guard

# Overrides that break a rule, the rule, and how its message starts.
BROKEN = [
    (["cluster=mi300x", "parallel.tp=3", "model.num_attention_heads=33"], "MW101",
     "a world of 8 ranks cannot hold TP x PP x CP = 3 x 1 x 1 = 3: 8 % 3 = 2"),
    (["cluster=mi300x", "cluster.nodes=3", "parallel=ep8", "parallel.tp=2", "parallel.etp=2", "model.num_experts=8"],
     "MW102", "a world of 24 ranks is not a multiple of ETP x EP x PP = 2 x 8 x 1 = 16; the smallest world of this "
     "layout is 16"),
    (["parallel.tp=5"], "MW103", "32 attention heads cannot be shared by TP = 5 ranks: 32 % 5 = 2"),
    (["model=llama3_8b", "parallel.tp=16", "megatron=core-0.14.0"], "MW104",
     "8 key/value heads with TP = 16: they must be a multiple of TP"),
    (["parallel.pp=5"], "MW105", "32 layers cannot be divided into PP = 5 stages: 32 % 5 = 2"),
    (["parallel.tp=2", "model.ffn_hidden_size=11007"], "MW106",
     "a feed-forward width of 11007 cannot be shared by TP = 2 ranks: 11007 % 2 = 1"),
    (["parallel.ep=2"], "MW107", "EP = 2, but the model has no experts"),
    (["model.num_experts=6", "parallel.ep=4"], "MW107", "6 experts cannot be shared by EP = 4 ranks"),
    (["megatron=rocm-2026-02", "parallel=tp2", "parallel.sp=false"], "MW108", "TP = 2 without sequence parallelism"),
    (["parallel=tp2", "train.seq_length=4095"], "MW109", "4095 tokens on each rank cannot be shared by TP = 2 ranks"),
    (["parallel.sp=true"], "MW110", "sequence parallelism without tensor parallelism"),
    (["model.num_experts=8", "parallel=tp2ep2", "parallel.sp=false"], "MW111", "EP = 2 and TP = 2 without"),
    (["parallel=tp2", "env.CUDA_DEVICE_MAX_CONNECTIONS='8'"], "MW112", "CUDA_DEVICE_MAX_CONNECTIONS = 8 with TP"),
    (["parallel=fsdp2", "env.CUDA_DEVICE_MAX_CONNECTIONS='1'"], "MW114", "CUDA_DEVICE_MAX_CONNECTIONS = 1 with use_"),
    (["optimizer.lr=null", "optimizer.min_lr=null"], "MW201", "lr is not set"),
    (["train.global_batch_size=100"], "MW202",
     "a global batch of 100 sequences is not a multiple of micro batch x DP = 1 x 8 = 8"),
    (["schedule.lr_warmup_iters=1000"], "MW203", "a warm-up of 1000 steps does not end before the decay of 1000 steps"),
    (["optimizer.min_lr=1"], "MW204", "min_lr = 1.0 is above lr = 0.0003"),
    (["train.train_iters=null"], "MW205", "one of train_iters and train_samples decides the length: neither is set"),
    (["train.train_samples=5"], "MW205", "one of train_iters and train_samples decides the length: both are set"),
    (["checkpoint.save_interval=null"], "MW206", "checkpoints are saved, but save_interval is not set"),
    (["parallel.distributed_optimizer=false"], "MW207", "overlap_param_gather without a distributed optimizer"),
    (["parallel.overlap_grad_reduce=false"], "MW207", "overlap_param_gather without overlap_grad_reduce"),
    (["train.eval_interval=null"], "MW208", "eval_interval is not set"),
    (["train.seq_length=8192"], "MW301", "sequences of 8192 tokens, but positions for 4096"),
    (["parallel.cp=2", "train.seq_length=4094"], "MW302", "sequences of 4094 tokens are not a multiple of 2 x CP = 4"),
    (["model.num_attention_heads=30"], "MW303", "a hidden size of 4096 is not a multiple of 30 heads"),
    (["parallel=cp2", "fusion.transformer_impl=local"], "MW304", "context parallelism needs Transformer Engine"),
    (["precision=fp8_delayed", "fusion.transformer_impl=local"], "MW304", "FP8 needs Transformer Engine"),
    (["recompute.granularity=full"], "MW305", "recompute granularity full needs recompute_method"),
    (["recompute=selective", "recompute.method=block"], "MW305", "selective recomputation takes no method"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "id", "message"), BROKEN, ids=[f"{id} {words[-1]}" for words, id, _ in BROKEN])
def test_broken(planned, words, id, message):
    found = [finding for finding in planned("model=llama2_7b", *words).findings if finding.id == id]
    assert found, "the rule is not broken"
    assert found[0].message.startswith(message)
    assert found[0].keys
    assert len(found[0].origin) == len(found[0].keys)
    for nearest in found[0].nearest:
        healed = planned("model=llama2_7b", *words, nearest)
        assert found[0].message not in [finding.message for finding in healed.findings], nearest


@pytest.mark.parametrize("release", ["core-0.16.1", "core-0.19.0", "rocm-2026-02", "main-2026-08"])
@pytest.mark.parametrize("model", ["llama2_7b", "llama2_70b", "llama3_8b", "llama3_70b"])
def test_presets_are_legal(planned, model, release):
    for parallel in ("tp1", "tp2", "tp8", "tp2pp2", "tp8pp4"):
        plan = planned(
            f"model={model}", f"parallel={parallel}", "cluster=mi300x", "cluster.nodes=4", f"megatron={release}"
        )
        assert errors(plan.findings) == [], parallel


def test_findings_put_errors_first(planned):
    plan = planned("model=llama2_7b", "parallel.sp=true", "train.global_batch_size=100")
    assert [finding.severity for finding in plan.findings] == ["error", "warning"]


def test_from_0_16_on_key_value_heads_may_be_copied(planned):
    plan = planned("model=llama3_8b", "parallel.tp=16", "cluster=mi300x", "cluster.nodes=2", "megatron=core-0.16.1")
    assert errors(plan.findings) == []


def test_what_megatron_changes_is_told(planned):
    plan = planned("model=llama2_7b", "parallel=tp8", "cluster=mi300x", "parallel.overlap_param_gather=false")
    changes = {change.dest: (change.before, change.value) for change in plan.effective.changes}
    assert changes["kv_channels"] == (None, 128)
    assert changes["bias_gelu_fusion"] == (True, False)
    assert [finding.id for finding in plan.findings] == ["MW902"]


def test_warnings_can_be_silenced(planned):
    words = ("model=llama2_7b", "parallel=tp8", "cluster=mi300x")
    assert planned(*words, "silence=[MW902]").findings == ()


@pytest.mark.parametrize(
    ("id", "message"),
    [("MW103", "silence: MW103 is an error, and errors cannot be silenced"), ("MW92", "silence: MW92 is no check")],
)
def test_only_warnings_can_be_silenced(planned, id, message):
    plan = planned("model=llama2_7b", "parallel.tp=5", "cluster=cpu", f"silence=[{id}]")
    ids = [finding.id for finding in plan.findings]
    assert "MW103" in ids
    found = next(finding for finding in plan.findings if finding.id == "MW021")
    assert found.message == message
    assert found.origin == (f"override silence=[{id}]",)


def test_sizes_that_are_none_are_all_that_is_told(planned):
    plan = planned("model=llama2_7b", "parallel.tp=0", "model.num_layers=-1", "cluster=cpu", "cluster.nodes=0")
    assert [(finding.id, finding.keys) for finding in plan.findings] == [
        ("MW100", ("parallel.tp",)),
        ("MW100", ("model.num_layers",)),
        ("MW100", ("cluster.nodes", "cluster.gpus_per_node")),
    ]


@pytest.mark.parametrize(("folder", "ids"), [("none", ["MW655"]), ("empty", ["MW655"]), ("full", [])])
def test_a_run_that_resumes_has_a_checkpoint(planned, tmp_path, folder, ids):
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/latest_checkpointed_iteration.txt").write_text("10")
    words = ("model=llama2_7b", "cluster=mi300x", f"checkpoint.load={tmp_path / folder}")
    assert [finding.id for finding in guard(planned(*words)).findings] == ids
    must = guard(planned(*words, "megatron.args.exit_on_missing_checkpoint=true"))
    assert [finding.id for finding in must.findings] == ["MW656"] * len(ids)


@pytest.mark.parametrize(
    ("words", "id", "nearest"),
    [
        # 126 layers: 7, 9 and 6 stages divide them, and 128 ranks hold only powers of 2.
        (["model=llama31_405b", "parallel=tp8pp8", "cluster=mi355x", "cluster.nodes=16"], "MW105",
         ("parallel.pp=2", "parallel.pp=1")),
        # On CPU the world follows the layout.
        (["model=llama2_7b", "parallel.tp=5", "cluster=cpu"], "MW103",
         ("parallel.tp=4", "parallel.tp=2", "parallel.tp=8")),
        (["model=llama3_8b", "model.hidden_size=4097", "cluster=mi300x"], "MW303", ("model.hidden_size=4096",)),
        # 4100 tokens would be more than there are positions for.
        (["model=llama2_7b", "parallel.tp=5", "cluster=cpu"], "MW109", ("train.seq_length=4095",)),
    ],
)  # fmt: skip
def test_nearest_values_break_no_other_rule(planned, words, id, nearest):
    found = next(finding for finding in planned(*words).findings if finding.id == id)
    assert found.nearest == nearest


def test_nearest_values_do_not_look_for_gpus_again(planned, monkeypatch):
    asked = []
    monkeypatch.setattr("megawrap.hardware.machine.detect", lambda: None)
    monkeypatch.setattr("megawrap.hardware.machine.ask_tools", lambda: asked.append(1) or (None, ()))
    plan = planned("model=llama2_7b", "parallel.tp=5", "cluster=auto")
    assert any(finding.nearest for finding in errors(plan.findings))
    assert len(asked) == 1
