"""Field-level encryption: the master key and what it protects (`encryption`), and the data keys of a store with what
they do to fields and terms (`vault`). The store decides which column holds what."""
