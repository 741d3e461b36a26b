"""Tokenizers by Megatron's type names, behind one small protocol.

Adding an engine means one module with a class that satisfies ``Tokenizer``, and one row in ``registry.TOKENIZERS``.
"""

from megawrap.preprocess.tokenizers.protocol import BadText, Encoded, Tokenizer
from megawrap.preprocess.tokenizers.registry import TOKENIZERS, build

__all__ = ["TOKENIZERS", "BadText", "Encoded", "Tokenizer", "build"]
