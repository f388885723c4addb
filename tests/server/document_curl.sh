# --- Helper: get embeddings
embed() {
curl -s "$EMBEDDINGS_URL/embeddings" \
-H "Authorization: Bearer $OPENROUTER_API_KEY" \
-H "Content-Type: application/json" \
-d "{\"model\": \"google/gemini-embedding-001\", \"input\": $1}"
}
# 1. Create memory table
curl -s -X POST "$API_URL/workspaces/$DEEPLAKE_WORKSPACE/tables/query" \
-H "Content-Type: application/json" \
-H "Authorization: Bearer $DEEPLAKE_API_KEY" \
-H "X-Activeloop-Org-Id: $DEEPLAKE_ORG_ID" \
-d '{
"query": "CREATE TABLE IF NOT EXISTS \"'$DEEPLAKE_WORKSPACE'\".\"debug_memory\" (id BIGSERIAL PRIMARY KEY, task TEXT, outcome TEXT, error_trace TEXT, tools_used TEXT, metadata JSONB, embedding FLOAT4[]) USING deeplake"
}'
# 2. Get embedding for the task description
TASK="Fix OOM crash in data pipeline when processing 50GB parquet files"
TASK_EMB=$(embed "[\"$TASK\"]" | jq -c '.data[0].embedding' | tr '[]' '{}')
# 3. Insert a debugging trace
curl -s -X POST "$API_URL/workspaces/$DEEPLAKE_WORKSPACE/tables/query" \
-H "Content-Type: application/json" \
-H "Authorization: Bearer $DEEPLAKE_API_KEY" \
-H "X-Activeloop-Org-Id: $DEEPLAKE_ORG_ID" \
-d '{
"query": "INSERT INTO \"'$DEEPLAKE_WORKSPACE'\".\"debug_memory\" (task, outcome, error_trace, tools_used, metadata, embedding) VALUES ($1, $2, $3, $4, $5::jsonb, $6::float4[])",
"params": [
"Fix OOM crash in data pipeline when processing 50GB parquet files",
"Root cause: pandas.read_parquet() loads entire file into memory. Fix: switched to pyarrow.dataset with batch_size=10000.",
"MemoryError: Unable to allocate 47.3 GiB",
"pyarrow.dataset, memory_profiler, htop",
"{\"agent\": \"swe-01\", \"error_type\": \"MemoryError\"}",
"'"$TASK_EMB"'"
]
}'
# 4. Hybrid Search: a different agent searches for similar past issues
SEARCH="ETL job killed by OOM when loading large CSV exports"
SEARCH_EMB=$(embed "[\"$SEARCH\"]" | jq -c '.data[0].embedding' | tr '[]' '{}')
curl -s -X POST "$API_URL/workspaces/$DEEPLAKE_WORKSPACE/tables/query" \
-H "Content-Type: application/json" \
-H "Authorization: Bearer $DEEPLAKE_API_KEY" \
-H "X-Activeloop-Org-Id: $DEEPLAKE_ORG_ID" \
-d '{
"query": "SELECT task, outcome, error_trace, tools_used, (embedding, task) <#> deeplake_hybrid_record($1::float4[], $2, 0.5, 0.5) AS score FROM \"'$DEEPLAKE_WORKSPACE'\".\"debug_memory\" ORDER BY score DESC LIMIT 3",
"params": [
"'"$SEARCH_EMB"'",
"ETL job killed by OOM when loading large CSV exports"
]
}'
