"""Tests of smolagents for a tool, on ours. This file is copied beside its tests, whose class it uses."""

from __future__ import annotations

from rmem import Brain
from rmem.integrations.smolagents import memory_tools

from .test_tools import ToolTesterMixin


class TestRemember(ToolTesterMixin):
    def setup_method(self) -> None:
        self.tool = memory_tools(Brain(":memory:"))[0]


class TestRecall(ToolTesterMixin):
    def setup_method(self) -> None:
        self.tool = memory_tools(Brain(":memory:"))[1]
