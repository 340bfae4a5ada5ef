"""hypatia-mem: the memory of a coding agent, kept on the user's own machine."""

__version__ = "0.1.0"
