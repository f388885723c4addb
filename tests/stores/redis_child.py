"""A process that writes to a Redis store: `python redis_child.py PORT NAME COUNT`. It stores COUNT memories of the
shared agent without ids or steps, and prints the ids that it was given."""

import json
import sys

from rmem.stores.redis import RedisRecordStore
from rmem.testing.contract import example


def main(port, name, count):
    ids = []
    with RedisRecordStore(port=port) as store:
        for number in range(count):
            kept = store.put([example(f"{name} {number}", agent_id="shared")])[0]
            assert store.get(kept.memory_id) is not None
            assert kept.memory_id in {found.memory_id for found, _ in store.match(name, k=1000)}
            ids.append((kept.memory_id, kept.step_number))
            if number % 5 == 4:
                store.change(ids[0][0], lambda memory: _counted_up(memory))
    print(json.dumps(ids))


def _counted_up(memory):
    memory.contents = {**memory.contents, "changes": memory.contents.get("changes", 0) + 1}
    return memory


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
