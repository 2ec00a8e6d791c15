"""An OpenAI-compatible streaming proxy over the ``claude`` CLI, on Trio."""

__version__ = "0.1.0"
