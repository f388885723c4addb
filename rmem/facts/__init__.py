"""Facts in memories: what a fact is (`model`), and how facts are read from a memory without a model (`extract`).
Stores call this for every memory that they keep; questions about facts are answered in `rmem.graph`."""
