"""The team memory: what one coding agent learns, every agent of the team can recall. `memory` is its core."""
