"""The SQL stores: `sqlite` in a file, `postgres` on a server; `records` and `rows` are shared."""
