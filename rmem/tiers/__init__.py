"""Short-term, intermediate and long-term memory: who moves when, and where each tier lives."""
