"""Measures of recall quality on public data sets, run through the same calls as any user's program."""
