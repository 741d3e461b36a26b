"""An existing training command → configuration, and two of anything compared by effective argument."""

from megawrap.importing.command import Command, Unplaced, Word
from megawrap.importing.importer import Dialect, Imported, import_command
from megawrap.importing.roundtrip import Difference
from megawrap.importing.script import read_script, read_text
from megawrap.importing.shell import starts_text
from megawrap.importing.started import read_command

__all__ = [
    "Command",
    "Dialect",
    "Difference",
    "Imported",
    "Unplaced",
    "Word",
    "import_command",
    "read_command",
    "read_script",
    "read_text",
    "starts_text",
]
