"""Tables: SQL with hybrid search in the file of the memories, or in PostgreSQL. The Client, datasets and the server all
use `workspace`."""
