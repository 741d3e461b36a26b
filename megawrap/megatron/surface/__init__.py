"""The command-line surface of Megatron-LM: which arguments a release has, and what each accepts."""

from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.releases import Release, release, releases
from megawrap.megatron.surface.surface import Option, Surface
from megawrap.megatron.surface.target import Target, resolve

__all__ = ["Argument", "Option", "Release", "Surface", "Target", "release", "releases", "resolve"]
