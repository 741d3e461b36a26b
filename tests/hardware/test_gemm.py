"""The ways to tune matrix products: their variables, their files, and what they do not cover."""

from __future__ import annotations

import pytest

DENSE = ("model=llama2_7b", "cluster=mi300x")
MOE = ("model=mixtral_8x7b", "parallel=ep8", "cluster=mi300x")
TE = "dev_cap,m,n,k,trans_a,trans_b,type_a,type_b,type_d\n{},5120,32768,2880,T,N,bfloat16,bfloat16,bfloat16\n"
OVERRIDE = "Git Version: fa9cdd18\n    transA,transB,gcnArchName,CUs\n    T,N,{}:sramecc+:xnack-,304\n"
TUNABLEOP = (
    "Validator,PT_VERSION,2.7.0\nValidator,GCN_ARCH_NAME,{}:sramecc+:xnack-\n"
    "GemmTunableOp_BFloat16_NN,nn_1024_1024_1024,Default,0.1\n"
)
NAMES = ("TE_HIPBLASLT", "HIPBLASLT_", "PYTORCH_TUNABLEOP")


def gemm(plan):
    return {name: value for name, value in plan.environment.items() if name.startswith(NAMES)}


def ids(plan):
    return [one.id for one in plan.findings if one.id.startswith("MW53")]


def test_default_sets_nothing(planned):
    assert (gemm(planned(*DENSE)), ids(planned(*DENSE))) == ({}, [])


def test_tune(planned):
    plan = planned(*DENSE, "gemm=tune", "gemm.run_count=7")
    assert gemm(plan) == {"TE_HIPBLASLT_TUNING_RUN_COUNT": "7", "TE_HIPBLASLT_TUNING_ALGO_COUNT": "50"}
    assert ids(plan) == []


def test_tune_keeps_a_file_for_each_process(planned, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = planned(*DENSE, "gemm=tune", "gemm.file=found.csv")
    assert plan.environment["TE_HIPBLASLT_ALGO_SAVE"] == f"{tmp_path}/found%i.csv"
    assert (
        planned(*DENSE, "gemm=tune", "gemm.file=a_%i.csv").environment["TE_HIPBLASLT_ALGO_SAVE"]
        == f"{tmp_path}/a_%i.csv"
    )


def test_te_file(planned, tmp_path):
    file = tmp_path / "algo.csv"
    file.write_text(TE.format(904))
    plan = planned(*DENSE, "gemm=te_file", f"gemm.file={file}")
    assert (gemm(plan), ids(plan)) == ({"TE_HIPBLASLT_ALGO_LOAD": str(file)}, [])


def test_override(planned, tmp_path):
    file = tmp_path / "tuned.txt"
    file.write_text(OVERRIDE.format("gfx942"))
    plan = planned(*DENSE, "gemm=override", f"gemm.file={file}")
    assert (gemm(plan), ids(plan)) == ({"HIPBLASLT_TUNING_OVERRIDE_FILE": str(file)}, [])


def test_log_writes_a_file_for_each_process_into_the_run(planned, tmp_path):
    plan = planned(*DENSE, "gemm=log", f"run.dir={tmp_path}/run")
    assert gemm(plan) == {"HIPBLASLT_LOG_MASK": "32", "HIPBLASLT_LOG_FILE": f"{tmp_path}/run/gemm%i.txt"}


LOCAL = (*DENSE, "fusion.transformer_impl=local", "cluster.gpus_per_node=2")


def test_tunableop_reads_a_file_for_each_gpu(planned, tmp_path):
    for number in range(2):
        (tmp_path / f"tuned{number}.csv").write_text(TUNABLEOP.format("gfx942"))
    plan = planned(*LOCAL, "gemm=tunableop", f"gemm.file={tmp_path}/tuned.csv")
    assert ids(plan) == []
    assert gemm(plan) == {
        "PYTORCH_TUNABLEOP_ENABLED": "1",
        "PYTORCH_TUNABLEOP_TUNING": "0",
        "PYTORCH_TUNABLEOP_FILENAME": f"{tmp_path}/tuned%d.csv",
    }


def test_tunableop_misses_the_file_of_one_gpu(planned, tmp_path):
    (tmp_path / "tuned0.csv").write_text(TUNABLEOP.format("gfx942"))
    plan = planned(*LOCAL, "gemm=tunableop", f"gemm.file={tmp_path}/tuned%d.csv")
    assert [(one.id, "tuned1.csv" in one.message) for one in plan.findings if one.severity == "error"] == [
        ("MW532", True)
    ]


def test_tunableop_tune(planned, tmp_path):
    plan = planned(*LOCAL, "gemm=tunableop_tune", f"run.dir={tmp_path}")
    assert gemm(plan)["PYTORCH_TUNABLEOP_TUNING"] == "1"
    assert gemm(plan)["PYTORCH_TUNABLEOP_FILENAME"] == f"{tmp_path}/gemm%d.csv"
    assert ids(plan) == []
    assert ids(planned(*LOCAL, "gemm=tunableop_tune", "cluster.nodes=2")) == ["MW534"]


def test_tunableop_passes_by_transformer_engine(planned, tmp_path):
    assert ids(planned(*DENSE, "gemm=tunableop_tune")) == ["MW531"]


@pytest.mark.parametrize("mode", ["te_file", "override", "tunableop"])
def test_a_file_that_is_not_there_is_refused(planned, tmp_path, mode):
    for words in ((), (f"gemm.file={tmp_path}/none.csv",)):
        errors = [one for one in planned(*DENSE, f"gemm={mode}", *words).findings if one.severity == "error"]
        assert [(one.id, one.keys) for one in errors] == [("MW532", ("gemm.file",))]


def test_a_file_of_another_kind_is_refused_and_its_kind_told(planned, tmp_path):
    file = tmp_path / "tuned.txt"
    file.write_text(OVERRIDE.format("gfx942"))
    error = planned(*DENSE, "gemm=te_file", f"gemm.file={file}").findings[0]
    assert (error.id, error.severity, error.nearest) == ("MW532", "error", ("gemm.mode=override",))
    file.write_text("")
    assert planned(*DENSE, "gemm=override", f"gemm.file={file}").findings[0].id == "MW532"


@pytest.mark.parametrize(
    ("mode", "text"),
    [("te_file", TE.format(905)), ("override", OVERRIDE.format("gfx950")), ("tunableop", TUNABLEOP.format("gfx90a"))],
)
def test_a_file_of_another_gpu_is_said(planned, tmp_path, mode, text):
    (tmp_path / "tuned").write_text(text)
    (tmp_path / "tuned0").write_text(text)
    plan = planned(*DENSE, "cluster.gpus_per_node=1", f"gemm={mode}", f"gemm.file={tmp_path}/tuned")
    assert "MW533" in ids(plan)


def test_a_file_that_nobody_reads_is_refused(planned):
    assert ids(planned(*DENSE, "gemm.file=x")) == ["MW532"]


@pytest.mark.parametrize("cluster", ["h100", "cpu"])
def test_amds_variables_do_nothing_elsewhere(planned, cluster):
    plan = planned("model=llama2_7b", "gemm=tune", f"cluster={cluster}")
    assert (gemm(plan), ids(plan)) == ({}, ["MW530"])


def test_in_run_tuning_is_never_for_grouped_gemm(planned):
    plan = planned(*MOE, "gemm=tune")
    assert (gemm(plan), ids(plan)) == ({}, ["MW531"])
    legacy = planned(*MOE, "gemm=tune", "megatron=rocm-2026-02", "megatron.args.moe_use_legacy_grouped_gemm=true")
    assert gemm(legacy)["TE_HIPBLASLT_TUNING_RUN_COUNT"] == "10"
    apart = planned(*MOE, "gemm=tune", "model.moe_grouped_gemm=false")
    assert (len(gemm(apart)), ids(apart)) == (2, [])


def test_other_ways_do_not_reach_the_experts(planned):
    plan = planned(*MOE, "gemm=log")
    assert gemm(plan)["HIPBLASLT_LOG_MASK"] == "32"
    assert ids(plan) == ["MW531"]
