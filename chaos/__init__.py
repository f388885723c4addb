"""The chaos checker: processes and threads work on one store while faults are injected; a model of the acknowledged
operations predicts what the store must hold. Run it as `python -m chaos`; docs/chaos.md explains it."""
