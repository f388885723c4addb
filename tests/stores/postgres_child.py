"""A process that writes to a PostgreSQL store and says what was acknowledged: `postgres_child.py URL NAME COUNT`."""

from __future__ import annotations

import sys

from rmem.errors import StoreError
from rmem.stores.sql.postgres import PostgresRecordStore
from rmem.testing.contract import example


def main() -> None:
    url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with PostgresRecordStore(url, patience=1.0) as store:
        for number in range(count):
            try:
                store.put([example(f"{name} {number}", memory_id=f"{name}-{number}", agent_id="shared")])
            except StoreError:
                return
            print(f"{name}-{number}", flush=True)


if __name__ == "__main__":
    main()
