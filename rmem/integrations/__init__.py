"""Adapters of a Brain to agent frameworks, one module each. Import the one you use; it needs the extra of its name:
`pip install "rmem[langgraph]"`."""
