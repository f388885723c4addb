"""A Redis Cluster of real servers on this machine."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rmem.testing.redis import RedisServer, wait_until

_SLOTS = 16_384


class RedisCluster:
    """Three servers that form a Redis Cluster; each holds a third of the slots. `replicas=True` starts three more, each
    the replica of one of them (`nodes[3]` of `nodes[0]`), which replaces it if it is killed."""

    def __init__(self, password: str | None = None, *, replicas: bool = False) -> None:
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]
        self.nodes = [RedisServer(password=password, options=options) for _ in range(6 if replicas else 3)]

    def connection(self, **more: Any) -> dict[str, Any]:
        return self.nodes[0].connection(cluster=True, **more)

    def start(self) -> Self:
        for node in self.nodes:
            node.start()
        clients = [node.client() for node in self.nodes]
        for number, client in enumerate(clients[:3]):
            mine = range(number * _SLOTS // 3, (number + 1) * _SLOTS // 3)
            client.execute_command("CLUSTER ADDSLOTS", *mine)
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            clients[0].execute_command("CLUSTER MEET", "127.0.0.1", node.port)
        self.wait()
        for number, client in enumerate(clients[3:]):
            client.execute_command("CLUSTER REPLICATE", clients[number].execute_command("CLUSTER MYID"))
        for client in clients[3:]:
            wait_until(lambda client=client: self._follows(client), "a replica follows its master")  # type: ignore[misc]
        for client in clients:
            client.close()
        return self

    @staticmethod
    def _follows(client: Any) -> bool:
        info = client.info("replication")
        return bool(info["role"] == "slave" and info["master_link_status"] == "up")

    def wait(self) -> None:
        """Wait until all nodes know all slots."""
        clients = [node.client() for node in self.nodes]

        def whole() -> bool:
            infos = [client.execute_command("CLUSTER INFO") for client in clients]
            return all(
                info["cluster_state"] == "ok"
                and info["cluster_slots_ok"] == str(_SLOTS)
                and info["cluster_known_nodes"] == str(len(self.nodes))
                for info in infos
            )

        wait_until(whole, "the Redis Cluster is whole")
        for client in clients:
            client.close()

    def master_of(self, key: str) -> RedisServer:
        """Return the node that has the slot of a key now."""
        with self._connect() as client:
            port = client.get_node_from_key(key).port
        return next(node for node in self.nodes if node.port == port)

    def move_slot(self, key: str, to: RedisServer) -> None:
        """Move the slot of a key, with all its keys, to another master while it is used, as a reshard does."""
        source = self.master_of(key)
        with source.client() as old, to.client() as new:
            slot = old.execute_command("CLUSTER KEYSLOT", key)
            names = [client.execute_command("CLUSTER MYID").decode() for client in (old, new)]
            new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", names[0])
            old.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", names[1])
            while keys := old.execute_command("CLUSTER GETKEYSINSLOT", slot, 100):
                old.execute_command("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)
            for client in (new, old):
                client.execute_command("CLUSTER SETSLOT", slot, "NODE", names[1])

    def _connect(self) -> Any:
        import redis

        node = next(node for node in self.nodes if node._process is not None)
        return redis.RedisCluster(host="127.0.0.1", port=node.port, password=node.password)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def flush(self) -> None:
        for node in self.nodes:
            node.flush()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
