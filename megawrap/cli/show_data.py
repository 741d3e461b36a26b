"""Datasets for people, and the bar while they are read."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from megawrap.cli.console import console
from megawrap.cli.show_plan import human

if TYPE_CHECKING:
    from rich.console import Console

    from megawrap.preprocess.tools.draft import Made
    from megawrap.preprocess.tools.histogram import Bin
    from megawrap.preprocess.tools.inspect import Description, Sample
    from megawrap.preprocess.tools.stats import Stats
    from megawrap.preprocess.tools.verify import Verdict

_SECONDS = 0.1
_BAR = 30


@contextlib.contextmanager
def progress(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar on standard error with rate and time left, gone when it is full; for terminals only."""
    terminal = console(stderr=True)
    if quiet or not terminal.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn(compact=True))  # fmt: skip
    with Progress(*columns, console=terminal, transient=True) as shown:
        task = shown.add_task(title, total=total)
        waiting, told = 0, time.monotonic()

        def advance(count: int) -> None:
            nonlocal waiting, told
            waiting += count
            if time.monotonic() - told > _SECONDS:  # the bar takes longer than a block
                shown.advance(task, waiting)
                waiting, told = 0, time.monotonic()

        yield advance


def descriptions(found: Sequence[Description]) -> None:
    """Print what the datasets hold."""
    terminal = console()
    for one in found:
        terminal.print(Text(one.prefix, "bold cyan"), soft_wrap=True)
        terminal.print(_facts(one))
        terminal.print()
        terminal.print(_histogram(one.histogram, one.tokens))
        for sample in one.samples:
            _show_sample(sample, terminal)


def _facts(one: Description) -> Table:
    table = _grid()
    kinds = f"{one.documents:,} documents, {one.sequences:,} sequences, {one.tokens:,} tokens"
    table.add_row("holds", kinds + (", multimodal" if one.multimodal else ""))
    table.add_row("files", f".bin {human(one.bin_bytes)}B of {one.dtype}, .idx {human(one.idx_bytes)}B")
    lengths = [f"shortest {one.shortest:,}"]
    lengths += [f"{'median' if share == 0.5 else f'{share:.0%}'} {length:,}" for share, length in one.quantiles]
    table.add_row("lengths", ", ".join([*lengths, f"longest {one.longest:,}"]) + f"; mean {one.mean:,.1f} tokens")
    if one.empty_documents:
        table.add_row("empty", f"{one.empty_documents:,} documents without a token")
    origin = one.origin
    if origin.tokenizer_type:
        table.add_row("made by", f"{origin.tokenizer_type}, {origin.vocab_size:,} ids" if origin.vocab_size else "")
    return table


def _histogram(bins: Sequence[Bin], tokens: int) -> Table:
    table = _table("tokens", "documents", "", "of all tokens")
    most = max((one.documents for one in bins), default=1)
    for one in bins:
        span = f"{one.shortest:,}" if one.shortest == one.longest else f"{one.shortest:,} - {one.longest:,}"
        bar = Text(_bar(one.documents / most), "cyan")
        table.add_row(span, f"{one.documents:,}", bar, f"{one.tokens / max(1, tokens):.1%}")
    return table


def _bar(share: float) -> str:
    """A bar to an eighth of a character; what is there at all can be seen."""
    eighths = math.ceil(share * _BAR * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _show_sample(sample: Sample, terminal: Console) -> None:
    more = " ..." if sample.tokens > len(sample.ids) else ""
    head = f"\ndocument {sample.document:,}  {sample.tokens:,} tokens"
    head += f" in {sample.sequences:,} sequences" if sample.sequences != 1 else ""
    head += f", the last is {sample.last}" if sample.last is not None else ""
    terminal.print(Text(head, "bold"))
    if sample.text is not None:
        terminal.print(Text(_printable(sample.text) + more))
    if sample.ids:
        terminal.print(Text(" ".join(map(str, sample.ids)) + more, "dim"))


def _printable(text: str) -> str:
    """What a terminal may show: text of others must not move its cursor."""
    return "".join(c if c.isprintable() else "\\n" if c == "\n" else ascii(c)[1:-1] for c in text)


def verdicts(found: Sequence[Verdict]) -> None:
    """Print a line for each dataset that was checked."""
    terminal = console()
    for one in found:
        if one.documents is None:  # there is no more to say than the findings do
            continue
        mark = ("sound", "green") if one.is_sound else ("broken", "red")
        told = f"{one.documents:,} documents, {one.sequences:,} sequences"
        told += f", {one.tokens:,} tokens of {one.dtype}" if one.tokens is not None else ""
        told += f"; ids up to {one.highest_id:,}" if one.highest_id is not None else ""
        told += f" of {one.vocab_size:,}" if one.highest_id is not None and one.vocab_size else ""
        terminal.print(Text.assemble(mark, "  ", (one.prefix, "bold cyan"), f"  {told}"), soft_wrap=True)


def made(found: Sequence[Made]) -> None:
    """Print a line for each dataset that was written."""
    terminal = console()
    table = _table("written", "documents", "sequences", "tokens", "type", justify=("left", *["right"] * 3, "left"))
    for one in found:
        table.add_row(one.prefix, f"{one.documents:,}", f"{one.sequences:,}", f"{one.tokens:,}", one.dtype)
    terminal.print(table)


def stats(found: Stats) -> None:
    """Print a line for each source of a run, and the run."""
    table = _table("dataset", "documents", "tokens", "to train on", "weight", "drawn", "epochs",
                   justify=("left", *["right"] * 6))  # fmt: skip
    for one in found.shares:
        drawn = [f"{human(one.drawn)}" if one.drawn is not None else "", _epochs(one.epochs)]
        numbers = [f"{one.documents:,}", human(one.tokens), human(one.training_tokens)]
        table.add_row(one.prefix, *numbers, f"{one.weight:.4g}", *drawn)
    terminal = console()
    terminal.print(table)
    total = f"{human(sum(one.tokens for one in found.shares))} tokens in all"
    terminal.print(Text(total + (f"; the run takes {human(found.run.tokens)}" if found.run else ""), "dim"))


def _epochs(epochs: float | None) -> str:
    return "" if epochs is None else f"{epochs:.3g}" if epochs < 100 else f"{epochs:,.0f}"


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _table(*names: str, justify: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(names):
        side = justify[number] if justify else ("right" if name else "left")
        table.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    return table
