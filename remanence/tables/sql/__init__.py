"""Reading SQL: one statement in PostgreSQL's words, checked on its tree against what is allowed."""
