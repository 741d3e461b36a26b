"""How a plan starts: each launcher turns a step into a command, words and environment."""

from megawrap.launchers.command import Command
from megawrap.launchers.torchrun import commands, one_process

__all__ = ["Command", "commands", "one_process"]
