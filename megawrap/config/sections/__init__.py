"""The typed sections of a configuration, one dataclass each; ``root`` puts them together."""
