"""Service: the objects that the routes of one server share."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass(slots=True)
class Service:
    """What the routes of one server share."""

    settings: ServerSettings
    control: Control
    tokens: Tokens
    spaces: Spaces
    metrics_token: str
    everybody: Caller | None = None
    """Who everybody is where no tokens are asked for."""
    metrics: Metrics = field(init=False)
    buckets: Buckets = field(init=False)
    disk: DiskUse = field(init=False)
    datasets: Datasets = field(init=False)
    answers: Answers = field(init=False)
    sessions: DashboardSessions = field(init=False)
    read_shares: FairShares = field(init=False)
    long_shares: FairShares = field(init=False)
    write_shares: FairShares = field(init=False)
    thread_shares: FairShares = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = Metrics(lambda: len(self.spaces), self.spaces.replicas_left_out)
        self.buckets = Buckets(self.settings.limits)
        self.disk = DiskUse(self.settings)
        self.datasets = Datasets(self.settings)
        self.answers = Answers(self.control, self.settings.limits.idempotency_bytes)
        self.sessions = DashboardSessions(self.settings.session_seconds)
        self.read_shares = FairShares(_READS if self.settings.store is None else _DATABASE_READS)
        self.long_shares = FairShares(_LONG_READS)
        self.write_shares = FairShares(_WRITES)
        self.thread_shares = FairShares(self.settings.threads)
