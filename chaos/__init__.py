"""The chaos checker: processes and threads work on one store while faults are injected, and a model of what was
acknowledged says what the store must hold. Run it as `python -m chaos`; docs/chaos.md explains it."""
