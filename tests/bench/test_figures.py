"""docs/benchmarks.md and docs/chaos.md say what the kept reports say; whoever adds a report runs figures.py."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import figures

    yield figures
    for name in ("figures", "peers", "work", "adapters"):
        sys.modules.pop(name, None)


def test_the_pages_show_the_figures_that_are_kept(figures, monkeypatch, tmp_path):
    pages = {name: getattr(figures, name).read_text("utf-8") for name in ("PAGE", "CHAOS_PAGE")}
    for name, page in pages.items():
        monkeypatch.setattr(figures, name, tmp_path / name)
        (tmp_path / name).write_text(page, "utf-8")
    figures.main()
    for name, page in pages.items():
        assert (tmp_path / name).read_text("utf-8") == page, "run: python benchmarks/figures.py"


def test_only_what_stands_between_the_markers_is_replaced(figures):
    page = "before\n<!-- times -->\nold\n<!-- /times -->\nafter\n"
    assert figures.put(page, "times", "new") == "before\n<!-- times -->\nnew\n<!-- /times -->\nafter\n"


def test_a_page_without_its_markers_is_refused(figures):
    with pytest.raises(SystemExit, match="no markers for times"):
        figures.put("nothing here", "times", "new")


def test_peers_that_cannot_do_a_thing_say_why(figures):
    timing = {"wall_ms": {"p50": 1.0, "p95": 2.0}, "cpu_ms": {"p50": 1.0, "p95": 2.0}}
    report = {
        "size": 1000,
        "date": "2026-01-02T03:04:05+00:00",
        "peers": {
            "able": {"version": "1", "hybrid": timing, "bytes": 5_000_000},
            "unable": {"version": "2", "hybrid": {"not_possible": "no such index"}},
            "broken": {"failed": "it did not install"},
        },
    }
    page = figures.compared(report)
    assert "| hybrid (ms) | 1 / 2 | – | – |" in page
    assert "- unable, hybrid: not possible offline: no such index." in page
    assert "broken failed" in page
