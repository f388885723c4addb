"""`python -m rmem_bench` is `rmem bench`."""

from .command import bench

bench()
