"""What is read: text or token files, and the tokenizer between them."""

from __future__ import annotations

from dataclasses import dataclass

from megawrap.config.field import arg, option


@dataclass(kw_only=True, slots=True)
class Data:
    """Where the tokens come from."""

    source: str | None = option(choices=("sample", "mock", "jsonl", "prefix", "blend"))
    """sample: the corpus that ships with megawrap; jsonl: your text, tokenized first; prefix and blend: token files
    that exist; mock: random tokens made by Megatron."""
    input: str | None = option()
    """jsonl: the documents, one JSON object a line: a file, a folder, a pattern such as 'part-*.jsonl.gz', or - for
    standard input. Plain text, .gz, .zst or .parquet."""
    output_prefix: str | None = option()
    """jsonl: where the token files go, without _text_document.bin/.idx."""
    json_keys: list[str] = option(["text"])
    """jsonl: keys of the objects that hold text, each made into its own token files."""
    append_eod: bool = option(True)
    """jsonl: an end-of-document token after each document."""
    workers: int = option(2)
    """jsonl: worker processes that tokenize."""
    on_error: str = option("stop", choices=("stop", "skip"))
    """jsonl: what a line does that cannot be used. stop: the run ends and leaves no output; skip: the line goes to
    OUTPUT_PREFIX.rejected.jsonl with the reason."""
    max_errors: int = option(1000)
    """jsonl: lines that may be skipped before the run ends all the same."""
    resume: bool = option(False)
    """jsonl: go on where an earlier run ended, and leave behind what one needs for it."""
    prefix: str | None = option()
    """prefix: a pair of token files, named without .bin/.idx."""
    blend: list[str] = option([])
    """blend: weight, prefix, weight, prefix, ..."""
    split: str | None = arg("--split")
    """Shares of training, validation and test documents, such as 990,9,1."""
    cache_path: str | None = arg("--data-cache-path")
    """Folder for Megatron's index caches, on a file system that all nodes share."""
    dataloader_type: str | None = arg("--dataloader-type")
    """single, cyclic or external."""
    reset_position_ids: bool | None = arg("--reset-position-ids")
    """Positions start again after each end-of-document token."""
    reset_attention_mask: bool | None = arg("--reset-attention-mask")
    """No attention across end-of-document tokens."""
    eod_mask_loss: bool | None = arg("--eod-mask-loss")
    """No loss on end-of-document tokens."""


@dataclass(kw_only=True, slots=True)
class Tokenizer:
    """The tokenizer, by Megatron's names."""

    type: str | None = arg("--tokenizer-type")
    """Llama2Tokenizer, SentencePieceTokenizer, HuggingFaceTokenizer, GPT2BPETokenizer, TikTokenizer,
    NullTokenizer, ..."""
    model: str | None = arg("--tokenizer-model")
    """A .model file, a folder or a hub name, as the type wants it."""
    vocab_file: str | None = arg("--vocab-file")
    """GPT2BPETokenizer and BERT: the vocabulary."""
    merge_file: str | None = arg("--merge-file")
    """GPT2BPETokenizer: the merges."""
    vocab_size: int | None = arg("--vocab-size")
    """NullTokenizer: the number of token ids."""
    special_tokens: list[str] | None = arg("--tokenizer-special-tokens")
    """Further tokens that are never cut; releases before 0.16 take them for TikTokenizer alone."""
    tiktoken_pattern: str | None = arg("--tiktoken-pattern")
    """TikTokenizer: v1 or v2, how text is cut before the merges."""
    tiktoken_num_special_tokens: int | None = arg("--tiktoken-num-special-tokens")
    """TikTokenizer: ids kept for special tokens, in front of all others; Megatron keeps 1000."""
    extra_vocab_size: int | None = arg("--extra-vocab-size")
    """DeepSeekV2Tokenizer, DeepSeekV3Tokenizer: ids behind those of the model that are counted too."""
    include_special_tokens: bool | None = option()
    """HuggingFaceTokenizer, BERT: the BOS, EOS, [CLS] and [SEP] of the model around every text. Left to itself Megatron
    puts them there, but not from 0.15 to 0.16."""
    legacy: bool | None = option()
    """As releases before 0.15 tokenize: Llama2Tokenizer puts BOS before every text, and more (docs/tokenizers.md)."""
