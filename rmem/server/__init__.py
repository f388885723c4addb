"""The REST server: organisations, workspaces, tables and memories over HTTP. `app` builds it."""

from ..extras import require

require("server", "the server")
