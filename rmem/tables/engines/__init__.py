"""The engines that run statements: SQLite (embedded) and PostgreSQL, behind one small contract in `base`."""
