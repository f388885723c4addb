"""A process that rotates the data keys slowly, to be killed: `python rotation_child.py PATH`.

It prints a line after each batch."""

from __future__ import annotations

import sys
import time


def main() -> None:
    from rmem.upkeep import rotate_keys

    def told(done: int, total: int | None) -> None:
        print(done, total, flush=True)
        time.sleep(0.02)

    print("finished", rotate_keys(sys.argv[1], data=True, on_progress=told)["memories"], flush=True)


if __name__ == "__main__":
    main()
