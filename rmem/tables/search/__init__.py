"""The search operators: their indexes over columns of tables, their scores, and how statements use them."""
