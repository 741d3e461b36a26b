"""MW25x: data and checkpoints. Sources: validate_args of Megatron-LM core_v0.19.0."""

from __future__ import annotations

from collections.abc import Iterator

from megawrap.megatron.effective import Effective
from megawrap.megatron.rules.registry import OFF, ON, Violation, choices, needs, nvidia, rule

PER_SPLIT = ("train_data_path", "valid_data_path", "test_data_path")
FIM_TOKENS = tuple(f"fim_{part}_token" for part in ("prefix", "middle", "suffix", "pad", "eod"))


@rule("MW250", "one source of data", checked="validate_args")
def one_source(e: Effective) -> Iterator[Violation]:
    said = [dest for dest in ("mock_data", "data_path") if e.values.get(dest)]
    said += [dest for dest in PER_SPLIT if e.values.get(dest)][:1]
    if len(said) > 1:
        yield Violation(f"{' and '.join(said)} are all set: the data comes from one of them", tuple(said))
    for path, file in (("data_path", "data_args_path"), (PER_SPLIT[0], "per_split_data_args_path")):
        if e.values.get(path) is not None and e.values.get(file) is not None:
            yield Violation(f"{path} and {file} say the same thing: set one of them", (path, file))


@rule("MW251", "a split is three shares", checked="nowhere: dies when the data is built")
def split(e: Effective) -> Iterator[Violation]:
    if not e.split or any(e.values.get(dest) for dest in PER_SPLIT):
        return
    parts = str(e.split).replace("/", ",").split(",")
    try:
        shares = [float(part) for part in parts]
    except ValueError:
        shares = []
    if not shares or len(shares) > 3 or min(shares) < 0 or sum(shares) <= 0:
        message = f"split = {e.split!r} is not up to three shares, none negative and not all 0"
        yield Violation(message, ("split",), choices("split", ["990,9,1"]))


@rule("MW252", "fill-in-the-middle needs its rates and tokens", checked="validate_args")
def fill_in_the_middle(e: Effective) -> Iterator[Violation]:
    if not e.fim_data:
        return
    if e.mock_data:
        yield Violation("fim_data does not work with mock_data", ("fim_data", "mock_data"))
    missing = [dest for dest in ("fim_rate", "fim_spm_rate") if not e.values.get(dest)]
    missing += [dest for dest in FIM_TOKENS if e.values.get(dest) is None]
    if missing:
        yield Violation(f"fim_data needs {', '.join(missing)}", tuple(missing))


@rule("MW253", "dataset builder threads", checked="validate_args")
def builder_threads(e: Effective) -> Iterator[Violation]:
    if e.num_dataset_builder_threads is not None and e.num_dataset_builder_threads < 1:
        message = f"num_dataset_builder_threads = {e.num_dataset_builder_threads} is not a number of threads"
        yield Violation(message, ("num_dataset_builder_threads",), choices("num_dataset_builder_threads", [1]))


@rule("MW254", "a tokenizer that reads nothing needs the number of ids", checked="nowhere: dies when it is built")
def vocabulary(e: Effective) -> Iterator[Violation]:
    if e.tokenizer_type == "NullTokenizer" and (e.vocab_size is None or e.vocab_size < 1):
        yield Violation("NullTokenizer needs vocab_size", ("vocab_size", "tokenizer_type"))


@rule("MW255", "the seed is greater than 0", checked="nowhere: dies at initialisation")
def seed(e: Effective) -> Iterator[Violation]:
    if e.seed is not None and e.seed < 1:
        yield Violation(f"seed = {e.seed} is not greater than 0", ("seed",), choices("seed", [1234]))


OLD_NAMES = {"batch_size": "micro_batch_size", "model_parallel_size": "tensor_model_parallel_size",
             "warmup": "lr_warmup_fraction", "checkpoint_activations": "recompute_granularity",
             "encoder_num_layers": "num_layers", "encoder_seq_length": "seq_length"}  # fmt: skip
"""Arguments that Megatron still parses, only to refuse them, and what to use."""


@rule("MW265", "arguments that are gone are not used", checked="validate_args")
def gone(e: Effective) -> Iterator[Violation]:
    for dest, now in OLD_NAMES.items():
        value = e.given.get(dest)
        if value is not None and value is not False:
            yield Violation(f"{dest} is no longer taken: use {now}", (dest,))


needs("MW256", "converting a checkpoint reads one and writes one",
      when={"ckpt_convert_format": ON}, need={"ckpt_convert_save": ON, "load": ON},
      checked="validate_args, initialize_megatron")  # fmt: skip
needs("MW266", "models of the time before Megatron Core can do less",
      when={"use_legacy_models": ON},
      need={"ckpt_format": ("torch",), "context_parallel_size": (1,), "overlap_param_gather": OFF,
            "rotary_interleaved": OFF, "mtp_num_layers": OFF})  # fmt: skip
needs("MW267", "Retro is counted in samples, and not split",
      when={"retro_add_retriever": ON},
      need={"train_samples": ON, "sequence_parallel": OFF, "pipeline_model_parallel_size": (1,)})  # fmt: skip
needs("MW257", "arguments are taken from the checkpoint that is loaded",
      when={"use_checkpoint_args": ON}, need={"load": ON}, checked="nowhere: dies at initialisation")  # fmt: skip
needs("MW258", "main parameters come from a checkpoint without optimizer state",
      when={"load_main_params_from_ckpt": ON}, need={"no_load_optim": ON})  # fmt: skip
needs("MW259", "an upcycled model is saved", when={"moe_use_upcycling": ON}, need={"save": ON})  # fmt: skip
needs("MW261", "local checkpoints need their folder",
      when={"non_persistent_ckpt_type": ("local",)}, need={"non_persistent_local_ckpt_dir": ON})  # fmt: skip
needs("MW262", "replicas are of local checkpoints",
      when={"replication": ON}, need={"replication_jump": ON, "non_persistent_ckpt_type": ("local",)})  # fmt: skip
needs("MW263", "logits are saved in the background, a number of each",
      when={"logits_save_dir": ON}, need={"logits_save_top_k": ON, "async_save": ON},
      spans=(nvidia("0.19"),))  # fmt: skip


@rule("MW264", "kinds of checkpoints between checkpoints", checked="validate_args")
def non_persistent(e: Effective) -> Iterator[Violation]:
    if e.non_persistent_ckpt_type not in (None, "global", "local"):
        message = f"non_persistent_ckpt_type = {e.non_persistent_ckpt_type} is not supported"
        yield Violation(message, ("non_persistent_ckpt_type",), choices("non_persistent_ckpt_type", ["global"]))


@rule("MW260", "the iteration is either overridden or counted anew", checked="validate_args")
def iteration(e: Effective) -> Iterator[Violation]:
    if e.override_ckpt_iteration is not None and e.finetune:
        message = "finetune counts from 0, and override_ckpt_iteration says otherwise"
        yield Violation(message, ("override_ckpt_iteration", "finetune"), choices("finetune", [False]))
