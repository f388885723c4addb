"""The SQL stores: `sqlite` embedded, `postgres` on a server; `records` and `rows` are shared."""
