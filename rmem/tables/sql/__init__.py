"""Statements in PostgreSQL's dialect: parsed (`parse`), checked against a list of what is allowed, and bound to the
tables of a workspace (`bind`), for any engine."""
