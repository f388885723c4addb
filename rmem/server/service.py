"""Service: the objects that the routes of one server share."""

from __future__ import annotations

from .control import Control
from .datasets import Datasets
from .disk_use import DiskUse
from .idempotency import Answers
from .limits import Buckets
from .metrics import Metrics
from .sessions import DashboardSessions
from .settings import ServerSettings
from .shares import FairShares
from .spaces import Spaces
from .tokens import Caller, Tokens

_READS = 4  # at once: a recall holds the interpreter's lock, so more threads would only hold up each other and /health
_DATABASE_READS = 8  # at once: they mostly wait for the database
_LONG_READS = 2  # at once: an organisation has one, beside its other requests
_WRITES = 48  # at once: writers mostly wait for the disk, and all who wait together share one commit


class Service:
    """What the routes of one server share. `everybody` is who everybody is where no tokens are asked for."""

    def __init__(
        self,
        settings: ServerSettings,
        control: Control,
        tokens: Tokens,
        spaces: Spaces,
        metrics_token: str,
        everybody: Caller | None = None,
    ) -> None:
        self.settings, self.control, self.tokens, self.spaces = settings, control, tokens, spaces
        self.metrics_token, self.everybody = metrics_token, everybody
        self.metrics = Metrics(lambda: len(spaces), spaces.replicas_left_out)
        self.buckets = Buckets(settings.limits)
        self.disk = DiskUse(settings)
        self.datasets = Datasets(settings)
        self.answers = Answers(control, settings.limits.idempotency_bytes)
        self.sessions = DashboardSessions(settings.session_seconds)
        self.read_shares = FairShares(_READS if settings.store is None else _DATABASE_READS)
        self.long_shares = FairShares(_LONG_READS)
        self.write_shares = FairShares(_WRITES)
        self.thread_shares = FairShares(settings.threads)
