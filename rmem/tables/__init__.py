"""Tables: SQL with hybrid search in the file of the memories, or in PostgreSQL.

`workspace` is the one way in: the Client, datasets and the server all talk to a Workspace."""
