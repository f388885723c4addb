"""The benchmark behind `rmem bench`: speed, space and exactness, each against a plain baseline in the same run."""
