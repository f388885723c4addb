"""The team memory: what one coding agent learns, every agent of the team knows. `memory` is its core."""
