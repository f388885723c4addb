"""How Alembic reaches the database: through the connection that the store hands over."""

from __future__ import annotations

from alembic import context

from rmem.stores.sql.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=False)
context.run_migrations()
