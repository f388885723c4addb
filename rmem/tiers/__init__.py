"""Short-term, intermediate and long-term memory: which memories move when, and where each tier is stored."""
