"""Statements in PostgreSQL's dialect: read (`parse`), checked against a list of what is allowed, bound to the tables
of a workspace with every type known (`bind`), whichever engine runs them later."""
