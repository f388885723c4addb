"""The import path of the Agent Memory API document; everything lives in `rmem.agents`."""
