"""Vectors in Milvus: a cluster, or one file with milvus-lite.

In a cluster, the agent is the partition key: a search for one agent reads only its partitions. The address chooses the
consistency level and the index. With the default "Strong" every process finds at once what another has written;
"Bounded" is faster and may miss vectors of the last seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..extras import require
from ..forks import new_lock
from .base import (
    NAME_FIELDS,
    EngineAddress,
    FieldFilter,
    Fields,
    Matrix,
    Vector,
    VectorIndex,
    check_batch,
    check_dimension,
    read_token,
    translate_errors,
)

_BATCH = 512  # rows in one request
_MAX_FIELD = 512  # bytes
_MAX_HITS = 16_384  # of one search, a limit of Milvus
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
        self._partitions = parsed.positive_int("partitions", 16)
        self._consistency = parsed.choice("consistency", CONSISTENCY)
        self._kind = parsed.choice("index", tuple(INDEXES))
        if not parsed.host and not parsed.path:
            raise ConfigError("milvus:// must name a host or a file: milvus://host:19530 or milvus:///file.db")
        if parsed.host:
            secure = parsed.choice("tls", ("no", "yes")) == "yes"
            self._uri = f"{'https' if secure else 'http'}://{parsed.host}:{parsed.port or 19530}"
        else:
            self._uri = str(Path(parsed.path).absolute())
        self._database = parsed.options.get("database", "")
        self._lock = new_lock()
        self._connected: Any = None
        self._dimension: int | None = None

    @property
    def _client(self) -> Any:
        """The client, connected at first use: an engine that is down must not keep a store from opening."""
        if self._connected is None:
            from pymilvus import MilvusClient

            self._connected = MilvusClient(uri=self._uri, token=read_token() or "", db_name=self._database, timeout=10)
        return self._connected

    def _get_dimension(self) -> int | None:
        """Return the dimension of the collection; None if there is no collection yet."""
        if self._dimension is None and self._client.has_collection(self._collection):
            description = self._client.describe_collection(self._collection)
            fields = {field["name"]: field for field in description["fields"]}
            self._dimension = int(fields["embedding"]["params"]["dim"])
            self._client.load_collection(self._collection)
        return self._dimension

    def upsert(self, ids: Sequence[int], vectors: Matrix, fields: Sequence[Fields]) -> None:
        with self._lock, translate_errors(self.name):
            dimension = check_batch(self.name, ids, vectors, fields, self._get_dimension())
            if not len(ids):
                return
            if self._get_dimension() is None:
                self._create(dimension)
            for start in range(0, len(ids), _BATCH):
                part = slice(start, start + _BATCH)
                rows = {
                    number: {"id": number, "embedding": vector.tolist(), "time": row_fields.time}
                    | {name: _truncate(getattr(row_fields, name)) for name in NAME_FIELDS}
                    for number, vector, row_fields in zip(ids[part], vectors[part], fields[part], strict=True)
                }
                # not `upsert`: before 2.3.10 it put rows into partitions where a search for the agent does not look
                self._client.delete(self._collection, ids=list(rows))
                self._client.insert(self._collection, list(rows.values()))

    def _create(self, dimension: int) -> None:
        from pymilvus import DataType

        client = self._client
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=dimension)
        schema.add_field("time", DataType.DOUBLE)
        for name in NAME_FIELDS:
            schema.add_field(name, DataType.VARCHAR, max_length=_MAX_FIELD, is_partition_key=name == "agent")
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
        with self._lock, translate_errors(self.name):
            if self._get_dimension() is not None:
                for start in range(0, len(ids), _BATCH):
                    self._client.delete(self._collection, ids=list(ids[start : start + _BATCH]))

    def search(self, vector: Vector, k: int, where: FieldFilter | None = None) -> list[tuple[int, float]]:
        with self._lock, translate_errors(self.name):
            if self._get_dimension() is None:
                return []
            check_dimension(self.name, vector.size, self._dimension)
            wanted = min(k, _MAX_HITS)
            found = self._client.search(
                self._collection,
                data=[vector.tolist()],
                anns_field="embedding",
                limit=wanted,
                filter="" if where is None else _filter_expression(where),
                search_params={"metric_type": "COSINE", "params": self._search_params(wanted)},
                output_fields=["id"],
                consistency_level=self._consistency,
            )
            return [(int(hit["id"]), float(hit["distance"])) for hit in found[0]]

    def _search_params(self, k: int) -> dict[str, int]:
        """Return the search parameters of the index: a wider search for more hits."""
        if self._kind == "HNSW":
            return {"ef": max(64, k)}
        return {"nprobe": 32} if self._kind.startswith("IVF") else {}

    def clear(self, known: Sequence[int] = ()) -> None:
        with self._lock, translate_errors(self.name):
            if self._client.has_collection(self._collection):
                self._client.drop_collection(self._collection)
            self._dimension = None

    def count(self) -> int:
        with self._lock, translate_errors(self.name):
            if self._get_dimension() is None:
                return 0
            counted = self._client.query(
                self._collection, filter="", output_fields=["count(*)"], consistency_level="Strong"
            )
            return int(counted[0]["count(*)"])

    def close(self) -> None:
        with self._lock:
            if self._connected is not None:
                self._connected.close()
                self._connected = None


def _truncate(text: str) -> str:
    """Cut a name to the size of its field. Cut names may match too much; the store filters again."""
    return text.encode()[:_MAX_FIELD].decode(errors="ignore")


def _filter_expression(where: FieldFilter) -> str:
    parts = [
        f"{name} in [{', '.join(_quote(_truncate(value)) for value in names)}]" for name, names in where.names.items()
    ]
    parts += [] if where.since is None else [f"time >= {where.since!r}"]
    parts += [] if where.until is None else [f"time <= {where.until!r}"]
    return " and ".join(parts)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
