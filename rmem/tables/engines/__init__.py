"""Where statements run: SQLite (embedded) and PostgreSQL, behind one small contract in `base`."""
