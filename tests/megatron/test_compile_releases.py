"""What each release makes of one value of a section: its own argument, another word, nothing, or a finding that names
the release which has it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from megawrap.config.compose import compose
from megawrap.config.origins import Origins
from megawrap.config.sections.place import Megatron
from megawrap.config.sections.root import Config
from megawrap.errors import ConfigError, Finding
from megawrap.megatron.compile import Compiled, compile_arguments
from megawrap.megatron.compile.encode import Setting
from megawrap.megatron.compile.otherwise import otherwise
from megawrap.megatron.oracle import Oracle
from megawrap.megatron.surface import Argument, Surface, releases, resolve
from megawrap.megatron.surface.parser import parse

TABLE: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
CHECKOUTS = [Path(one) for one in os.environ.get("MEGAWRAP_CHECKOUTS", "").split(os.pathsep) if one]
NAMES = tuple(one.id for one in releases())


def expanded(names: str) -> list[str]:
    """``core-0.9.0..core-0.11.0, rocm-2024-10`` as single releases."""
    found = []
    for part in names.split(", "):
        first, _, last = part.partition("..")
        fork = [one.id for one in releases() if one.id.split("-")[0] == first.split("-")[0]]
        found += fork[fork.index(first) : fork.index(last or first) + 1]
    return found


def expected(row: dict[str, Any], name: str) -> list[str] | str:
    return next((made for names, made in row.get("but", {}).items() if name in expanded(names)), row["gives"])


def config(settings: dict[str, Any], name: str) -> Config:
    made = Config(megatron=Megatron(source="release", release=name))
    made.precision.dtype = "fp32"  # bf16 would be one more word
    for key, value in settings.items():
        section, _, field = key.partition(".")
        assert hasattr(getattr(made, section), field), key
        setattr(getattr(made, section), field, value)
    return made


def compiled(settings: dict[str, Any], name: str) -> Compiled | tuple[Finding, ...]:
    made = config(settings, name)
    try:
        return compile_arguments(made, resolve(made.megatron), lambda: Origins({}))
    except ConfigError as refused:
        return refused.findings


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: " ".join(f"{key}={value}" for key, value in row["set"].items()))
def test_what_a_release_makes_of_it(row, name):
    found, wanted = compiled(row["set"], name), expected(row, name)
    if isinstance(wanted, list):
        assert isinstance(found, Compiled), found
        assert found.argv() == wanted
        parsed = parse(resolve(Megatron(source="release", release=name)).surface, found.argv())
        assert {dest: parsed[dest] for dest in found.values()} == found.values()
    else:
        assert not isinstance(found, Compiled), found.argv()
        assert any(wanted in finding.message for finding in found), found
        assert all(finding.keys[0] in row["set"] for finding in found)


def test_the_table_names_releases_once_and_reaches_every_kind_of_outcome():
    for row in TABLE:
        named = [name for names in row.get("but", {}) for name in expanded(names)]
        assert len(named) == len(set(named)), row
    outcomes = {type(expected(row, name)) for row in TABLE for name in NAMES}
    assert (outcomes, len(NAMES)) == ({list, str}, 15)


@pytest.mark.parametrize(
    ("settings", "name", "nearest"),
    [
        ({"precision.fp8_recipe": "mxfp8"}, "core-0.11.0",
         ("precision.fp8_recipe=delayed", "precision.fp8_recipe=null")),
        ({"fusion.cross_entropy_impl": "te"}, "core-0.10.0",
         ("fusion.cross_entropy_impl=native", "fusion.cross_entropy_impl=null")),
        ({"recompute.granularity": "selective", "recompute.modules": ["mlp"]}, "rocm-2025-08",
         ("recompute.modules=[core_attn]", "recompute.modules=[core_attn,moe]", "recompute.modules=null")),
        ({"parallel.cp_comm_type": ["a2a"]}, "core-0.9.0",
         ("parallel.cp_comm_type=[p2p]", "parallel.cp_comm_type=null")),
        ({"parallel.moe_flex_backend": "hybridep"}, "core-0.14.0",
         ("parallel.moe_flex_backend=deepep", "parallel.moe_flex_backend=null")),
        # Without the switch for DeepEP there is no value at all.
        ({"parallel.moe_flex_backend": "hybridep"}, "core-0.10.0", ("parallel.moe_flex_backend=null",)),
        ({"parallel.tp": 4, "parallel.etp": 1}, "core-0.9.0", ("parallel.etp=4", "parallel.etp=null")),
        ({"tokenizer.type": "DeepSeekV3Tokenizer"}, "core-0.19.0", ("TikTokenizer",)),
        ({"model.moe_token_dispatcher_type": "alltoall_seq"}, "core-0.19.0", ("alltoall",)),
    ],
)  # fmt: skip
def test_what_can_be_had_instead(settings, name, nearest):
    (finding,) = compiled(settings, name)
    assert finding.nearest[: len(nearest)] == nearest


def test_what_the_user_names_by_megatrons_own_name_is_taken_by_the_letter():
    made = config({}, "core-0.9.0")
    made.megatron.args = {"fp8_recipe": "delayed", "use_torch_fsdp2": False}
    with pytest.raises(ConfigError) as caught:
        compile_arguments(made, resolve(made.megatron), lambda: Origins({}))
    assert [finding.id for finding in caught.value.findings] == ["MW010", "MW010"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("torch", {}),
        ("torch_dist", {"--use-dist-ckpt": True, "--dist-ckpt-format": "torch_dist"}),
        ("torch_dcp", None),
    ],
)
def test_before_the_checkpoint_format_had_an_argument(value, words):
    """No bundled release is that old; a source tree may be."""
    old = Surface([Argument(("--use-dist-ckpt",), "use_dist_ckpt", "store_true", default=False),
                   Argument(("--dist-ckpt-format",), "dist_ckpt_format", "store", "str")])  # fmt: skip
    said, possible = otherwise(Setting("--ckpt-format", value, "checkpoint.format"), Config(), old)
    assert (said and {one.name: one.value for one in said}) == (words or said)
    assert (said is None) == (words is None)
    assert possible == (() if words is not None else ("torch", "torch_dist", "zarr"))


LEGAL = ("cluster=mi300x", "cluster.nodes=8")
MEGATRON_TAKES = [
    ("model=llama2_7b", "parallel=tp2", "attention=flash"),
    ("model=llama2_7b", "attention=fused", "fusion.cross_entropy=true", "fusion.cross_entropy_impl=native"),
    ("model=llama3_70b", "parallel=tp8pp4", "attention=unfused", "recompute=full"),
    ("model=llama31_8b", "parallel=tp2", "model.rope_fusion=false"),
    ("model=llama32_1b", "checkpoint.format=torch", "fusion.rope=true"),
    ("model=llama2_7b", "parallel=fsdp2", "checkpoint.format=torch_dcp"),
    ("model=llama2_7b", "parallel=tp2cp2", "parallel.cp_comm_type=[a2a]"),
    ("model=llama2_7b", "parallel.cp=4", "parallel.cp_comm_type=[a2a+p2p]", "parallel.hierarchical_cp_sizes=[2,2]"),
    ("model=llama2_7b", "precision=fp8_delayed", "precision.fp8_param_gather=true"),
    ("model=llama2_7b", "precision=fp8_tensorwise"),
    ("model=llama2_7b", "precision=fp8_blockwise"),
    ("model=llama2_7b", "precision=fp8_mxfp8"),
    ("model=llama2_7b", "recompute=selective", "recompute.modules=[core_attn,layernorm,mlp]"),
    ("model=mixtral_8x7b", "parallel=ep8", "model.moe_token_dispatcher_type=alltoall", "model.moe_grouped_gemm=true"),
    ("model=mixtral_8x7b", "parallel=ep8", "recompute=selective", "recompute.modules=[core_attn,moe]"),
    ("model=mixtral_8x7b", "parallel=tp2ep4", "precision=fp8_tensorwise", "precision.moe_router_padding=true"),
    ("model=deepseek_v2_lite", "parallel=ep8"),
    ("model=deepseek_v3", "parallel=ep8", "model.moe_shared_expert_overlap=true"),
    ("model=mistral_7b", "parallel=tp2"),
    ("model=qwen3_8b", "parallel=tp4", "tokenizer=qwen3"),
    ("model=llama2_7b", "tokenizer=sentencepiece", "tokenizer.model=none.model"),
    ("model=llama2_7b", "tokenizer.type=TikTokenizer", "tokenizer.tiktoken_pattern=v2",
     "tokenizer.special_tokens=['<a>']", "tokenizer.vocab_size=null"),
]  # fmt: skip


@pytest.fixture(scope="module", params=[None, *CHECKOUTS], ids=lambda tree: tree.name if tree else "installed")
def judged(request):
    """The Megatron that is asked, and the words that make it the target."""
    tree = request.param
    target = ("megatron=checkout", f"megatron.path={tree}") if tree else ("megatron=installed",)
    with Oracle(tree) as oracle:
        yield oracle, target


@pytest.mark.train
@pytest.mark.parametrize("words", MEGATRON_TAKES, ids=" ".join)
def test_megatron_itself_takes_what_was_compiled(judged, words):
    oracle, target = judged
    found = compose([*LEGAL, *words, *target])
    try:
        result = compile_arguments(found.config, resolve(found.config.megatron), lambda: found.origins)
    except ConfigError as refused:
        assert target[0] == "megatron=checkout", refused
        pytest.skip(f"not to be had: {refused}")
    environment = {"CUDA_DEVICE_MAX_CONNECTIONS": None if "parallel=fsdp2" in words else "1"}
    verdict = oracle.ask(result.argv(), 64, environment)
    assert verdict.is_accepted, f"{verdict.where} {verdict.message} {verdict.line}"
