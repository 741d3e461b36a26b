"""The command line: verbs that parse words, call one function and render its result."""

from megawrap.cli.app import main

__all__ = ["main"]
