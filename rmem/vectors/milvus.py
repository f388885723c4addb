"""Vectors in Milvus: a cluster, or one file with milvus-lite.

For a cluster: the agent is the partition key, so that a search for one agent reads its partitions alone; the
consistency level and the index are the address's to choose. The default level is "Strong", so that what one process has
written is found by every other at once; "Bounded" is faster and may be some seconds late for vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..extras import require
from ..forks import new_lock
from .base import (
    NAMES,
    EngineAddress,
    FieldFilter,
    Fields,
    Matrix,
    Vector,
    VectorIndex,
    check_batch,
    check_dimension,
    reaching,
    token,
)

_BATCH = 512  # rows in one request
_LONGEST = 512  # bytes of a field
_MOST = 16_384  # hits that Milvus gives at once
CONSISTENCY = ("Strong", "Bounded", "Session", "Eventually")
INDEXES: dict[str, dict[str, int]] = {
    "HNSW": {"M": 16, "efConstruction": 200},
    "IVF_FLAT": {"nlist": 1024},
    "IVF_SQ8": {"nlist": 1024},
    "DISKANN": {},
    "FLAT": {},
    "AUTOINDEX": {},
}


class MilvusIndex(VectorIndex):
    """`MilvusIndex("milvus://host:19530?collection=notes&partitions=64&consistency=Bounded&index=IVF_FLAT")`, or
    "milvus:///file.db" for milvus-lite. Further options: `database`, `tls=yes`. The key is RMEM_VECTORS_TOKEN."""

    def __init__(self, address: str, collection: str = "rmem") -> None:
        require("milvus", "Milvus")
        options = ["partitions", "consistency", "index", "database", "tls"]
        parsed = EngineAddress(address, collection, options)
        self.name = parsed.shown
        self._collection = parsed.collection
        self._partitions = parsed.whole("partitions", 16)
        self._consistency = parsed.one_of("consistency", CONSISTENCY)
        self._kind = parsed.one_of("index", tuple(INDEXES))
        if not parsed.host and not parsed.path:
            raise ConfigError("milvus:// must name a host or a file: milvus://host:19530 or milvus:///file.db")
        if parsed.host:
            secure = parsed.one_of("tls", ("no", "yes")) == "yes"
            self._uri = f"{'https' if secure else 'http'}://{parsed.host}:{parsed.port or 19530}"
        else:
            self._uri = str(Path(parsed.path).absolute())
        self._database = parsed.options.get("database", "")
        self._lock = new_lock()
        self._connected: Any = None
        self._dimension: int | None = None

    @classmethod
    def at(cls, address: str, collection: str) -> MilvusIndex:
        return cls(address, collection)

    @property
    def _client(self) -> Any:
        """Connects when it is first used: an engine that is down must not keep a store from opening."""
        if self._connected is None:
            from pymilvus import MilvusClient

            self._connected = MilvusClient(uri=self._uri, token=token() or "", db_name=self._database, timeout=10)
        return self._connected

    def _known(self) -> int | None:
        """The dimension of the collection; None if there is none yet."""
        if self._dimension is None and self._client.has_collection(self._collection):
            told = self._client.describe_collection(self._collection)
            fields = {one["name"]: one for one in told["fields"]}
            self._dimension = int(fields["embedding"]["params"]["dim"])
            self._client.load_collection(self._collection)
        return self._dimension

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        with self._lock, reaching(self.name):
            dimension = check_batch(self.name, ids, vectors, fields, self._known())
            if not len(ids):
                return
            if self._known() is None:
                self._create(dimension)
            for start in range(0, len(ids), _BATCH):
                part = slice(start, start + _BATCH)
                rows = {
                    number: {"id": number, "embedding": vector.tolist(), "time": said.time}
                    | {name: _cut(getattr(said, name)) for name in NAMES}
                    for number, vector, said in zip(ids[part], vectors[part], fields[part], strict=True)
                }
                self._client.upsert(self._collection, list(rows.values()))

    def _create(self, dimension: int) -> None:
        from pymilvus import DataType

        client = self._client
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=dimension)
        schema.add_field("time", DataType.DOUBLE)
        for name in NAMES:
            schema.add_field(name, DataType.VARCHAR, max_length=_LONGEST, is_partition_key=name == "agent")
        index = client.prepare_index_params()
        index.add_index("embedding", index_type=self._kind, metric_type="COSINE", params=INDEXES[self._kind])
        client.create_collection(
            self._collection,
            schema=schema,
            index_params=index,
            num_partitions=self._partitions,
            consistency_level=self._consistency,
        )
        self._dimension = dimension

    def delete(self, ids: Sequence[int]) -> None:
        with self._lock, reaching(self.name):
            if self._known() is not None:
                for start in range(0, len(ids), _BATCH):
                    self._client.delete(self._collection, ids=list(ids[start : start + _BATCH]))

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        with self._lock, reaching(self.name):
            if self._known() is None:
                return []
            check_dimension(self.name, vector.size, self._dimension)
            wanted = min(k, _MOST)
            found = self._client.search(
                self._collection,
                data=[vector.tolist()],
                anns_field="embedding",
                limit=wanted,
                filter="" if where is None else _expression(where),
                search_params={"metric_type": "COSINE", "params": self._effort(wanted)},
                output_fields=["id"],
                consistency_level=self._consistency,
            )
            return [(int(hit["id"]), float(hit["distance"])) for hit in found[0]]

    def _effort(self, k: int) -> dict[str, int]:
        """How hard an index looks: more for more hits."""
        if self._kind == "HNSW":
            return {"ef": max(64, k)}
        return {"nprobe": 32} if self._kind.startswith("IVF") else {}

    def clear(self, known: Sequence[int] = ()) -> None:
        with self._lock, reaching(self.name):
            if self._client.has_collection(self._collection):
                self._client.drop_collection(self._collection)
            self._dimension = None

    def count(self) -> int:
        with self._lock, reaching(self.name):
            if self._known() is None:
                return 0
            told = self._client.query(
                self._collection, filter="", output_fields=["count(*)"], consistency_level="Strong"
            )
            return int(told[0]["count(*)"])

    def close(self) -> None:
        with self._lock:
            if self._connected is not None:
                self._connected.close()
                self._connected = None


def _cut(text: str) -> str:
    """The beginning that fits the field. Longer names find too much, which the store sorts out."""
    return text.encode()[:_LONGEST].decode(errors="ignore")


def _expression(where: FieldFilter) -> str:
    parts = [f"{name} in [{', '.join(_quoted(_cut(one)) for one in names)}]" for name, names in where.names.items()]
    parts += [] if where.since is None else [f"time >= {where.since!r}"]
    parts += [] if where.until is None else [f"time <= {where.until!r}"]
    return " and ".join(parts)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
