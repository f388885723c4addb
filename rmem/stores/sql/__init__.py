"""The SQL stores. `schema` is the one description of the tables; `sqlite` runs it embedded."""
