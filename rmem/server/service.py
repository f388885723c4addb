"""What the routes of one server share."""

from __future__ import annotations

from dataclasses import dataclass, field

from .control import Control
from .datasets import Datasets
from .idempotency import Answers
from .limits import Buckets, DiskUse
from .metrics import Metrics
from .own_recalls import OwnRecalls
from .recallers import Recallers
from .settings import ServerSettings
from .shares import FairShares
from .spaces import Spaces
from .tokens import Caller, Tokens

_RECALLS = 8  # at once for each process that recalls: as many as another organisation's recall may wait for


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
    recallers: Recallers = field(init=False)
    own_recalls: OwnRecalls = field(init=False)
    recall_shares: FairShares = field(init=False)
    thread_shares: FairShares = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = Metrics(lambda: len(self.spaces))
        self.buckets = Buckets(self.settings.limits)
        self.disk = DiskUse(self.settings)
        self.datasets = Datasets(self.settings)
        self.answers = Answers(self.control, self.settings.limits.idempotency_bytes)
        self.recallers = Recallers(self.settings)
        self.own_recalls = OwnRecalls()
        self.recall_shares = FairShares(_RECALLS * max(1, self.settings.recallers))
        self.thread_shares = FairShares(self.settings.threads)
