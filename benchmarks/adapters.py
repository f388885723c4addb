"""The same five verbs on each library: fill, add one, search by vector, by words, by both. No library is imported
before its adapter is opened, so that a process that needs one loads one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]  # text, agent, vector (a list of numbers), id
Hits = list[str]  # texts


class NotPossible(Exception):
    """What this library cannot do on one machine without a network, and why."""


class Remanence:
    package = "rmem"

    def __init__(self, folder: Path) -> None:
        from rmem import Brain

        self.brain = Brain(folder / "memories.db", embedder="static")

    def add_many(self, rows: Sequence[Row]) -> None:
        self.brain.remember_many([self._memory(row) for row in rows])

    def add_one(self, row: Row) -> None:
        self.brain.remember(**self._memory(row))

    def _memory(self, row: Row) -> dict[str, Any]:
        return {key: row[key] for key in ("text", "agent", "vector", "id")}

    def vector(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        return self._recall(question, vector, agent, k, "vector")

    def words(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        return self._recall(question, vector, agent, k, "lexical")

    def hybrid(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        return self._recall(question, vector, agent, k, "hybrid")

    def _recall(self, question: str, vector: list[float], agent: str | None, k: int, mode: str) -> Hits:
        where = {"agent": agent} if agent else None
        return [hit.text for hit in self.brain.recall(question, k, where=where, mode=mode, vector=vector)]

    def close(self) -> None:
        self.brain.close()


class LanceDB:
    """Exact vector search (its approximate index needs training) and its own BM25 index."""

    package = "lancedb"

    def __init__(self, folder: Path) -> None:
        import lancedb

        self.database = lancedb.connect(folder)
        names = self.database.list_tables().tables
        self.table = self.database.open_table("memories") if "memories" in names else None

    def add_many(self, rows: Sequence[Row]) -> None:
        if self.table is None:
            self.table = self.database.create_table("memories", list(rows))
        else:
            self.table.add(list(rows))

    def finish(self) -> None:
        from lancedb.index import FTS

        self.table.create_index("text", config=FTS())
        self.table.optimize()

    def add_one(self, row: Row) -> None:
        self.table.add([row])

    def vector(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        return self._answer(self.table.search(vector).distance_type("cosine"), agent, k)

    def words(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        return self._answer(self.table.search(question, query_type="fts"), agent, k)

    def hybrid(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        query = self.table.search(query_type="hybrid").vector(vector).text(question).distance_type("cosine")
        return self._answer(query, agent, k)

    def _answer(self, query: Any, agent: str | None, k: int) -> Hits:
        if agent:
            query = query.where(f"agent = '{agent}'", prefilter=True)
        return [row["text"] for row in query.limit(k).select(["text"]).to_list()]

    def close(self) -> None:
        self.table = None


class Chroma:
    package = "chromadb"

    def __init__(self, folder: Path) -> None:
        import chromadb
        from chromadb.config import Settings

        self.client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self.collection = self.client.get_or_create_collection(
            "memories", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add_many(self, rows: Sequence[Row]) -> None:
        self.collection.add(
            ids=[row["id"] for row in rows],
            documents=[row["text"] for row in rows],
            embeddings=[row["vector"] for row in rows],
            metadatas=[{"agent": row["agent"]} for row in rows],
        )

    def add_one(self, row: Row) -> None:
        self.add_many([row])

    def vector(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        where = {"agent": agent} if agent else None
        found = self.collection.query(query_embeddings=[vector], n_results=k, where=where, include=["documents"])
        return list(found["documents"][0])

    def words(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        raise NotPossible("no ranked keyword search outside its cloud; only substring filters")

    def hybrid(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        raise NotPossible("no ranked keyword search outside its cloud")

    def close(self) -> None:
        self.collection = None


class Mem0:
    """Its default local store (Qdrant in the process), `infer=False` so that no language model is asked, and the
    vectors computed beforehand in the place of its embedder."""

    package = "mem0ai"

    def __init__(self, folder: Path) -> None:
        import logging

        from mem0 import Memory

        logging.disable(logging.WARNING)  # it warns at every start that no keyword index is there
        folder.mkdir(parents=True, exist_ok=True)
        unused = {"api_key": "unused"}
        self.memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "collection_name": "memories",
                        "path": str(folder / "qdrant"),
                        "embedding_model_dims": 256,
                        "on_disk": True,
                    },
                },
                "embedder": {"provider": "openai", "config": unused},
                "llm": {"provider": "openai", "config": unused},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self.known = _Known()
        self.memory.embedding_model = self.known

    def add_many(self, rows: Sequence[Row]) -> None:
        """One call for each agent: a call has one agent and any number of messages."""
        by_agent: dict[str, list[Row]] = {}
        for row in rows:
            by_agent.setdefault(row["agent"], []).append(row)
        for agent, of_agent in by_agent.items():
            self.known.vectors = {row["text"]: row["vector"] for row in of_agent}
            messages = [{"role": "user", "content": row["text"]} for row in of_agent]
            self.memory.add(messages, user_id="everyone", agent_id=agent, infer=False)

    def add_one(self, row: Row) -> None:
        self.add_many([row])

    def vector(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        self.known.vectors = {question: vector}
        filters = {"user_id": "everyone", **({"agent_id": agent} if agent else {})}
        found = self.memory.search(question, filters=filters, top_k=k)
        return [hit["memory"] for hit in found["results"]]

    def words(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        raise NotPossible("no keyword search of its own")

    def hybrid(self, question: str, vector: list[float], agent: str | None, k: int) -> Hits:
        raise NotPossible("its BM25 encoder is downloaded at first use (fastembed, Qdrant/bm25)")

    def close(self) -> None:
        self.memory.close()
        self.memory.vector_store.client.close()  # or no other process may open the folder


class _Known:
    """Stands where mem0 has its embedder."""

    vectors: dict[str, list[float]]
    config = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.vectors[text]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.vectors[text] for text in texts]


PEERS: dict[str, Any] = {"rmem": Remanence, "lancedb": LanceDB, "chromadb": Chroma, "mem0": Mem0}
