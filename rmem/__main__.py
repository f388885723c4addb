"""`python -m rmem` is the command `rmem`."""

from .cli import main

main()
