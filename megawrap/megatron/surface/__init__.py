"""The command-line surface of Megatron-LM: which arguments a release has, and what each accepts."""

from megawrap.megatron.surface.argument import Argument
from megawrap.megatron.surface.correct import WAYS, Correction
from megawrap.megatron.surface.difference import Change, Difference, difference
from megawrap.megatron.surface.releases import Release, release, releases
from megawrap.megatron.surface.surface import Option, Surface
from megawrap.megatron.surface.target import Target, resolve

__all__ = [
    "WAYS",
    "Argument",
    "Change",
    "Correction",
    "Difference",
    "Option",
    "Release",
    "Surface",
    "Target",
    "difference",
    "release",
    "releases",
    "resolve",
]
