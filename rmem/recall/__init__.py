"""Recall: from a question to ranked memories. Nothing here stores anything or knows where rows live."""
