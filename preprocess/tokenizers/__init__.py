"""Tokenizers by Megatron's type names, behind one small protocol.

    choice = choose(settings, sample)       # once, where a run begins
    print(choice.reason)                    # "gigatoken 0.10.0: the ids of tokenizers 0.23.3 on all 340 texts ..."
    tokenizer = build(choice.recipe)        # in every worker: the same encoder
    tokenizer.encode_batch(texts)

From settings, ``build`` gives the library that Megatron uses, the reference; from a ``fast.Definition`` the quicker
encoder. Only ``choose`` makes one, after it has found that the quicker encoder gives the same ids on ``sample`` (texts
from the beginning, the middle and the end of the input) and on texts that are hard to tokenize. The fingerprint is the
same either way. The quicker encoder drops its cache of words by itself when that has grown beyond ``cache_limit``
bytes; ``cache_bytes`` and ``recycle()`` are there for who wants to do it sooner.

Adding a type means one module with a class that satisfies ``Tokenizer``, and one row in ``registry.TOKENIZERS``; adding
a quicker encoder, one branch in ``fast.define``.
"""

from megawrap.preprocess.tokenizers.guard import Choice, choose
from megawrap.preprocess.tokenizers.protocol import BadText, Encoded, Tokenizer
from megawrap.preprocess.tokenizers.registry import TOKENIZERS, build

__all__ = ["TOKENIZERS", "BadText", "Choice", "Encoded", "Tokenizer", "build", "choose"]
