"""`python -m rmem.bench` is `rmem bench`."""

from .command import bench

bench()
