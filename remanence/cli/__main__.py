"""`python -m remanence.cli` is `rmem`."""

from . import main

if __name__ == "__main__":
    main()
