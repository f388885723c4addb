"""What a user of the public `deeplake` package does, against the server whose address and token are given."""

from __future__ import annotations

import json
import sys

from deeplake import Client
from deeplake.managed.client import vector_literal
from deeplake.managed.errors import AuthError, ManagedServiceError, TableError


def main(url: str, token: str) -> None:
    client = Client(token=token, workspace_id="default", api_url=url)
    told: dict[str, object] = {"org": client.org_id}
    schema = {"id": "INT64", "body": "TEXT", "vec": "EMBEDDING(3)", "data": "JSON"}
    told["created"] = client.create_table("docs", schema, index={"body": "bm25", "vec": "clustered"})["created"]
    told["again"] = client.create_table("docs", schema, index={"body": "bm25"})["created"]
    try:
        client.create_table("docs", schema, if_not_exists=False)
    except TableError as error:
        told["exists"] = str(error)
    client.create_index("docs", "id", index_type="inverted_index")
    try:
        client.create_index("docs", "body", index_type="exact_text")
    except TableError as error:
        told["conflict"] = str(error)
    for number, (body, vector) in enumerate(
        [
            ("switch to pyarrow", [1.0, 0.0, 0.0]),
            ("rename a file", [0.0, 1.0, 0.0]),
            ("read in batches", [0.6, 0.8, 0.0]),
        ]
    ):
        client.query(
            "INSERT INTO docs (id, body, vec, data) VALUES ($1, $2, $3::float4[], $4::jsonb)",
            (number, body, "{" + ",".join(map(str, vector)) + "}", json.dumps({"n": number})),
        )
    client.query("SELECT deeplake_sync_table('docs')")
    told["tables"] = client.list_tables()
    told["rows"] = client.query("SELECT id, body FROM docs WHERE id >= $1 ORDER BY id", (1,))
    told["json"] = client.query("SELECT data->>'n' AS n FROM docs ORDER BY id", timeout=30)
    query = f"SELECT id, vec <#> {vector_literal([1.0, 0.0, 0.0])} AS score FROM docs ORDER BY score DESC LIMIT 2"
    told["nearest"] = [row["id"] for row in client.query(query)]
    told["words"] = [
        row["id"]
        for row in client.query("SELECT id, body <#> $1 AS score FROM docs ORDER BY score DESC LIMIT 1", ("pyarrow",))
    ]
    built = client.table("docs").select("id", "body").where("id > $1", 0).order_by("id DESC").limit(1).offset(1)
    told["built"] = built()
    told["indexes"] = sorted(
        row["indexname"] for row in client.query("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'docs'")
    )
    client.drop_index("docs", "body")
    client.create_index("docs", "body", index_type="exact_text")
    client.drop_table("docs")
    client.drop_table("docs")
    told["left"] = client.list_tables()
    try:
        client.query("SELECT * FROM docs")
    except TableError as error:
        told["missing"] = str(error)
    try:
        Client(token=token, workspace_id="default", api_url=url, org_id="another").list_tables()
    except AuthError as error:
        told["other org"] = str(error)
    told |= datasets(client)
    print(json.dumps(told))


def datasets(client: Client) -> dict[str, object]:
    """What goes through the files of a dataset: the document's ingest, and tables that are opened."""
    task = "Fix OOM crash in data pipeline when processing 50GB parquet files"
    row = {
        "task": [task],
        "outcome": ["switched to pyarrow.dataset"],
        "metadata": [json.dumps({"agent": "swe-01"})],
        "embedding": [[0.25, 0.5, 1.0]],
    }
    told: dict[str, object] = {"ingested": client.ingest("debug_memory", row, index=["embedding", "task"])}
    told["appended"] = client.ingest("debug_memory", {**row, "task": ["another"], "embedding": [[1.0, 0.0, 0.5]]})
    told["ingested rows"] = client.query("SELECT task, metadata, embedding FROM debug_memory ORDER BY task")
    told["hybrid"] = client.query(
        """SELECT task, (embedding, task)::deeplake_hybrid_record <#>
                  deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5) AS score
           FROM debug_memory ORDER BY score DESC LIMIT 1""",
        ("{0.25,0.5,1.0}", "OOM crash"),
    )[0]["task"]
    told["described"] = client.describe_table("debug_memory")
    opened = client.open_table("debug_memory", read_only=True)
    told["opened"] = [opened[place]["task"] for place in range(len(opened))]
    told["vector"] = [float(number) for number in opened[0]["embedding"]]
    client.create_table("strict", {"n": "INT64", "data": "JSON"})
    try:
        client.ingest("strict", {"n": [1], "data": ["{no JSON"]})
    except ManagedServiceError as error:
        told["refused by the table"] = str(error)
    told["strict"] = client.query("SELECT count(*) AS n FROM strict")
    told["tables at the end"] = client.list_tables()
    return told


if __name__ == "__main__":
    main(*sys.argv[1:])
