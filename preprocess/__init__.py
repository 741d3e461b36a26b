"""Text to Megatron-LM token files: ``python -m megawrap.preprocess``.

``engine.run`` makes the files, ``manifest.matches`` tells whether they are already there, ``indexed.header.check`` and
``indexed.verify.verify`` whether they are sound, ``indexed.reader.Reader`` reads them, and ``tools`` merges and splits
them. Needs numpy, orjson and the tokenizer's library; of megawrap only ``megawrap.errors``.
"""
