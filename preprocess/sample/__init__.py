"""The corpus and tokenizer that ship with megawrap, and how they were made."""
