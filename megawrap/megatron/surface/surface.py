"""All arguments of one Megatron, and how a value is expressed with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from megawrap.errors import nearest
from megawrap.megatron.surface.argument import Argument


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """How the target expresses one thing: by an argument with a value, or by switches for on and off."""

    name: str
    store: Argument | None = None
    on: Argument | None = None
    off: Argument | None = None

    @property
    def default(self) -> object:
        """The value in force when nothing is said."""
        if self.store is not None:
            return self.store.default
        if self.on is not None:
            return bool(self.on.default) == (self.on.action != "store_false")
        assert self.off is not None
        # "--no-x" is a store_false of x (default True), or a store_true of no_x (default False): x is on either way.
        return bool(self.off.default) == (self.off.action == "store_false")


class Surface:
    """The arguments of one Megatron."""

    def __init__(self, arguments: Iterable[Argument]) -> None:
        self.arguments = tuple(arguments)
        self._by_flag = {_plain(flag): one for one in self.arguments for flag in one.flags}
        self._by_dest: dict[str, list[Argument]] = {}
        for one in self.arguments:
            self._by_dest.setdefault(one.dest, []).append(one)
        self._options: dict[str, Option | None] = {}

    def __len__(self) -> int:
        return len(self.arguments)

    def __contains__(self, flag: str) -> bool:
        return _plain(flag) in self._by_flag

    def defaults(self) -> dict[str, object]:
        """``dest`` → the value that the parser fills in."""
        return {dest: rows[0].default for dest, rows in self._by_dest.items()}

    def option(self, name: str) -> Option | None:
        """What ``name`` means here: a flag (``--bf16``), the positive of a negative flag (``--bias-linear`` for
        ``--disable-bias-linear``), or the name of a parsed value (``add_bias_linear``)."""
        if name not in self._options:
            self._options[name] = self._find(name)
        return self._options[name]

    def _find(self, name: str) -> Option | None:
        plain = _plain(name)
        exact = self._by_flag.get(plain)
        off = self._by_flag.get(f"no-{plain}") or self._by_flag.get(f"disable-{plain}")
        if exact is not None and exact.action == "boolean_optional":
            return Option(name, on=exact, off=exact)
        if exact is not None:
            return Option(name, store=exact) if exact.takes_value else Option(name, on=exact, off=off)
        if off is not None and not off.takes_value:
            return Option(name, off=off)
        return self._by_dest_name(name)

    def suggest(self, name: str) -> tuple[str, ...]:
        """Flags with a name like ``name``."""
        known = {plain: one.flag for plain, one in self._by_flag.items()}
        return tuple(dict.fromkeys(known[close] for close in nearest(_plain(name), known)))

    def _by_dest_name(self, name: str) -> Option | None:
        rows = self._by_dest.get(name.lstrip("-").replace("-", "_"), [])
        if not rows:
            return None
        store = next((one for one in rows if one.takes_value), None)
        on = next((one for one in rows if one.action == "store_true"), None)
        off = next((one for one in rows if one.action == "store_false"), None)
        both = next((one for one in rows if one.action == "boolean_optional"), None)
        if both is not None:
            return Option(name, on=both, off=both)
        return Option(name, store=store) if store else Option(name, on=on, off=off)


def _plain(flag: str) -> str:
    return flag.lstrip("-").replace("_", "-")
