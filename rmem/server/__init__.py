"""The REST server: organisations, workspaces, tables and memories over HTTP. `app` builds it."""
