"""`python -m remanence.bench` is `rmem bench`."""

from .command import bench

bench()
