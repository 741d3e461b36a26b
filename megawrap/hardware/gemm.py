"""How matrix products are tuned: what the chosen mode needs, and what it does not cover. The variables themselves are
rows of ``environment.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from megawrap.config.sections.compute import Gemm
from megawrap.errors import Finding
from megawrap.hardware.checks import finding

READING, WRITING = ("te_file", "override", "tunableop"), ("tune", "log", "tunableop_tune")
_TE_ALONE = ("tune", "te_file")
_TUNABLEOP = ("tunableop", "tunableop_tune")
# First words of a file of each kind: ROCm/TransformerEngine, hipBLASLt and PyTorch write them.
_HEADS = {"te_file": ("dev_cap,",), "override": ("Git Version:",), "tunableop": ("Validator,",)}
# Compute capability as Transformer Engine writes it, without its dot: 905 is gfx950.
_CAPABILITIES = {"gfx90a": "900", "gfx942": "904", "gfx950": "905"}
_MARKS = {"tune": "%i", "log": "%i", "tunableop": "%d", "tunableop_tune": "%d"}


def file_of(gemm: Gemm, run_dir: str | None) -> str | None:
    """The file name that the variables get, absolute, for ranks need not start where the plan was made. Where each
    process writes a file of its own, the mark that the library replaces by a number is put before the ending; a log
    that has no name goes to the run directory."""
    if gemm.mode == "default" or (gemm.file is None and gemm.mode not in ("log", "tunableop_tune")):
        return None
    ending = "csv" if gemm.mode == "tunableop_tune" else "txt"
    name = Path(gemm.file or Path(run_dir or ".") / f"gemm.{ending}").absolute()
    mark = _MARKS.get(gemm.mode, "")
    return str(name if not mark or mark in name.name else name.with_name(f"{name.stem}{mark}{name.suffix}"))


def gemm_findings(gemm: Gemm, facts: Mapping[str, Any], ranks_per_node: int) -> Iterator[Finding]:
    """What is wrong with the ``gemm`` section in a plan with ``facts``."""
    mode = gemm.mode
    if mode == "default":
        if gemm.file is not None:
            yield finding("MW532", f"gemm.file = {gemm.file}, and gemm.mode = default reads none", ("gemm.file",),
                          nearest=("gemm=te_file", "gemm=override", "gemm=tunableop"))  # fmt: skip
        return
    if facts["vendor"] != "amd":
        where = "the CPU" if facts["device"] == "cpu" else facts["gpu_name"] or "a GPU that is not known"
        message = f"gemm.mode = {mode} sets variables of AMD's libraries, and nothing on {where}"
        yield finding("MW530", message, ("gemm.mode",), nearest=("gemm=default",))
        return
    yield from _coverage(mode, facts)
    if mode in READING:
        yield from _reading(gemm, facts, ranks_per_node)
    elif facts["nodes"] > 1:
        yield from _shared(gemm, facts)


def _coverage(mode: str, facts: Mapping[str, Any]) -> Iterator[Finding]:
    keys = ("gemm.mode",)
    if facts["te_grouped_gemm"] and mode in _TE_ALONE:
        message = (
            f"gemm.mode = {mode} does not go with Transformer Engine's grouped GEMM, which the experts use, so its "
            "variables are left out"
        )
        yield finding("MW531", message, (*keys, "model.moe_grouped_gemm"), nearest=("gemm=default", "gemm=override"))
    elif facts["te_grouped_gemm"]:
        message = (
            f"gemm.mode = {mode} leaves the experts as they are: their grouped GEMM is tuned by none of these ways"
        )
        yield finding("MW531", message, (*keys, "model.moe_grouped_gemm"))
    if mode in _TUNABLEOP and facts["impl"] == "transformer_engine":
        message = (
            f"gemm.mode = {mode} tunes PyTorch's own matrix products; those of Transformer Engine, nearly all of a "
            "model's, go to hipBLASLt past it"
        )
        yield finding("MW531", message, (*keys, "fusion.transformer_impl"), nearest=("gemm=tune", "gemm=override"))
    if mode in _TE_ALONE and facts["impl"] == "local":
        message = (
            f"gemm.mode = {mode} tunes Transformer Engine's matrix products, and transformer_impl = local has none"
        )
        yield finding(
            "MW531", message, (*keys, "fusion.transformer_impl"), nearest=("gemm=tunableop_tune", "gemm=override")
        )


def _reading(gemm: Gemm, facts: Mapping[str, Any], ranks_per_node: int) -> Iterator[Finding]:
    key = ("gemm.file",)
    if facts["gemm_file"] is None:
        yield finding("MW532", f"gemm.file is not set, and gemm.mode = {gemm.mode} reads one", key)
        return
    numbers = range(ranks_per_node) if gemm.mode in _TUNABLEOP else range(1)
    files = [Path(facts["gemm_file"].replace("%d", str(number))) for number in numbers]
    missing = [str(file) for file in files if not file.is_file()]
    if missing:
        more = f" (and {len(missing) - 1} more, one a GPU)" if len(missing) > 1 else ""
        yield finding("MW532", f"gemm.file: there is no file {missing[0]}{more}; the library would go on without", key)
        return
    for file in files:
        yield from _content(gemm.mode, file, facts)


def _content(mode: str, file: Path, facts: Mapping[str, Any]) -> Iterator[Finding]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        head = [line.strip() for _, line in zip(range(64), lines, strict=False)]
    if not head or not head[0].startswith(_HEADS[mode]):
        kind = next((one for one, starts in _HEADS.items() if head and head[0].startswith(starts)), None)
        hint = f": it is one of gemm.mode = {kind}" if kind else f": one begins with {_HEADS[mode][0]!r}"
        nearest = (f"gemm.mode={kind}",) if kind else ()
        yield finding("MW532", f"gemm.file: {file} is no file of gemm.mode = {mode}{hint}", ("gemm.file", "gemm.mode"),
                      nearest=nearest)  # fmt: skip
        return
    arch = facts["arch"]
    made_for = _made_for(mode, head)
    if made_for is not None and arch is not None and made_for != arch:
        message = (
            f"gemm.file: {file} was tuned on {made_for}, and {facts['gpu_name']} is {arch}: its rows are passed over"
        )
        yield finding("MW533", message, ("gemm.file",))


def _made_for(mode: str, head: list[str]) -> str | None:
    """The architecture that a file was tuned on, where it says."""
    if mode == "te_file":
        capability = head[1].partition(",")[0] if len(head) > 1 else ""
        return next((arch for arch, number in _CAPABILITIES.items() if number == capability), None)
    if mode == "override":
        return next(
            (word.partition(":")[0] for line in head for word in line.split(",") if word.startswith("gfx")), None
        )
    start = "Validator,GCN_ARCH_NAME,"
    return next((line.removeprefix(start).partition(":")[0] for line in head if line.startswith(start)), None)


def _shared(gemm: Gemm, facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Numbers of GPUs and of processes repeat from node to node, so nodes that share a folder would share a file."""
    if gemm.mode == "tunableop_tune":
        message = (
            f"{facts['nodes']} nodes would write the same files {facts['gemm_file']}: %d is the number of a GPU on its "
            "node. Tune on one node; its results serve all that are alike"
        )
        yield finding("MW534", message, ("gemm.mode", "cluster.nodes"), nearest=("cluster.nodes=1",))
