"""`rmem eval recall`, `facts`, `locomo` and `team`: quality on public data sets and real repositories, run through the
same calls as any user's program."""
