"""Faces that agent frameworks expect, each one module on a Brain. None is imported before it is used, and each needs
the extra of its name: `pip install "rmem[langgraph]"`."""
