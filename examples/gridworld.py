"""A grid world in which agents with a memory find more food than agents without one.

Berries grow on bushes that never move, and regrow some time after they were eaten. Walkers see only one step far. Two
groups live in the same world, from the same seed, by the same rules: see ripe berries, go there, eat; else wander. One
group has a memory as well: a walker that sees no berries asks where it has seen some, and whether they should be ripe
again. That question is the only difference. The memory is the real one, in a temporary folder.

    python examples/gridworld.py
    python examples/gridworld.py --steps 600 --agents 6 --seed 3 --plot berries.png
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from rmem.agents import AgentMemoryAPI, MemoryConfig, MemorySpace

SIZE = 40  # the world is a square with so many fields on each side
BUSHES = 16
REGROW = 30  # steps until an eaten bush is ripe again
SIGHT = 1  # fields around them that they see
FAR = 30  # how far away berries may be that they go back for
MEAL, FULL = 25, 100  # what a meal adds to the energy, and how much there can be; a step takes 1

Place = tuple[int, int]


class World:
    """Bushes in fixed places, and when each of them is ripe."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        self.ripe_at: dict[Place, int] = {}
        while len(self.ripe_at) < BUSHES:
            self.ripe_at[chance.randrange(SIZE), chance.randrange(SIZE)] = 0

    def in_sight(self, here: Place) -> list[Place]:
        return [bush for bush in self.ripe_at if distance(here, bush) <= SIGHT]

    def is_ripe(self, bush: Place, step: int) -> bool:
        return step >= self.ripe_at[bush]


def distance(a: Place, b: Place) -> int:
    """Steps from one field to another; a step may be diagonal."""
    return max(abs(a[0] - b[0]), abs(a[1] - b[1]))


@dataclass
class Walker:
    """One inhabitant. Without a memory it does everything as well, except remember."""

    name: str
    chance: random.Random
    memory: MemorySpace | None = None
    here: Place = (0, 0)
    goal: Place = (0, 0)
    energy: int = FULL // 2
    meals: int = 0
    starving: int = 0
    wandering: bool = True
    noticed: set[tuple[Place, bool]] = field(default_factory=set)
    path: list[Place] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.here, self.goal = self.anywhere(), self.anywhere()

    def anywhere(self) -> Place:
        return self.chance.randrange(SIZE), self.chance.randrange(SIZE)

    def live(self, world: World, step: int) -> None:
        """Look, decide, move, eat."""
        self.look(world, step)
        ripe = [bush for bush in world.in_sight(self.here) if world.is_ripe(bush, step)]
        arrived = self.here == self.goal or self.goal in world.in_sight(self.here)  # where no ripe bush is
        if ripe:
            self.goal = min(ripe, key=lambda bush: distance(self.here, bush))
        elif arrived or self.wandering:
            known = self.remembered(step)
            self.wandering = known is None
            self.goal = known or (self.anywhere() if arrived else self.goal)
        self.here = tuple(at + (to > at) - (to < at) for at, to in zip(self.here, self.goal, strict=True))  # type: ignore[assignment]
        self.energy = max(0, self.energy - 1)
        if self.here in world.ripe_at and world.is_ripe(self.here, step):
            world.ripe_at[self.here] = step + REGROW
            self.energy, self.meals = min(FULL, self.energy + MEAL), self.meals + 1
            self.note(step, self.here, "ate ripe berries")
        self.starving += self.energy == 0
        self.path.append(self.here)
        if self.memory is not None:
            self.memory.store("state", {"position": list(self.here), "energy": self.energy}, step, priority=0.2)

    # What memory adds

    def look(self, world: World, step: int) -> None:
        """Note each bush that comes into sight, and each that has changed."""
        seen = {(bush, world.is_ripe(bush, step)) for bush in world.in_sight(self.here)}
        for bush, ripe in seen - self.noticed:
            self.note(step, bush, "saw ripe berries" if ripe else "saw a bare bush")
        self.noticed = seen

    def note(self, step: int, bush: Place, what: str) -> None:
        if self.memory is not None:
            self.memory.store("action", {"action_type": what, "position": list(bush)}, step, priority=0.8)

    def remembered(self, step: int) -> Place | None:
        """The nearest bush that should be ripe by what was last seen there; None without a memory of one."""
        if self.memory is None:
            return None
        last: dict[Place, tuple[int, str]] = {}
        for entry in self.memory.retrieve_by_location(self.here, radius=FAR, memory_type="action"):  # nearest first
            known = entry["contents"]
            bush: Place = tuple(known["position"])
            last[bush] = max(last.get(bush, (-1, "")), (entry["step_number"], known["action_type"]))
        for bush, (when, what) in last.items():
            if what == "saw ripe berries" or step + distance(self.here, bush) >= when + REGROW:
                return bush
        return None


@dataclass
class Group:
    """How a group fared: its walkers, and the meals of each group member so far, step by step."""

    walkers: list[Walker]
    meals: list[float]
    energy: list[float]


def run(agents: int, steps: int, seed: int, api: AgentMemoryAPI | None, tick: Callable[[], None]) -> Group:
    """A group lives for some steps; with a memory if an API is given."""
    world = World(seed)
    group = Group([], [], [])
    for number in range(agents):
        name = f"walker-{number + 1}"
        memory = api.get_memory_space(name) if api is not None else None
        group.walkers.append(Walker(name, random.Random(f"{seed} {number}"), memory))
    for step in range(steps):
        for walker in group.walkers:
            walker.live(world, step)
        group.meals.append(sum(walker.meals for walker in group.walkers) / agents)
        group.energy.append(sum(walker.energy for walker in group.walkers) / agents)
        tick()
    return group


# Showing


def table(without: Group, remembering: Group, steps: int) -> Table:
    """Meals in all and of each, steps for a meal, the mean energy, and steps at energy 0."""
    shown = Table(title=f"{len(without.walkers)} walkers, {steps} steps", title_justify="left")
    for heading in ("", "meals", "of each", "steps a meal", "energy", "starving"):
        shown.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, group in (("without memory", without), ("with memory", remembering)):
        meals = sum(walker.meals for walker in group.walkers)
        each = " ".join(str(walker.meals) for walker in group.walkers)
        walked = steps * len(group.walkers)
        shown.add_row(
            name,
            str(meals),
            each,
            f"{walked / meals:.1f}" if meals else "–",
            f"{sum(group.energy) / steps:.0f}",
            str(sum(walker.starving for walker in group.walkers)),
        )
    return shown


def recollections(api: AgentMemoryAPI, walker: Walker) -> list[str]:
    """What one of them remembers, in its own words."""
    space = api.get_memory_space(walker.name)
    held = api.get_memory_statistics(walker.name)
    tiers = ", ".join(f"{number} in {tier}" for tier, number in held["tier_distribution"].items())
    lines = [f"{walker.name} remembers {held['total_memories']} things ({tiers})."]
    for entry in space.search_by_content("ate ripe berries", k=1, memory_type="action"):
        lines.append(f"It {_told(entry['contents']['action_type'], entry)}.")
    for entry in api.retrieve_similar_states(walker.name, {"energy": 0}, k=1):
        lines.append(f"It was hungriest, at energy {entry['contents']['energy']}, {_told('', entry).strip()}.")
    return lines


def _told(what: str, entry: dict[str, object]) -> str:
    contents = entry["contents"]
    assert isinstance(contents, dict)
    return f"{what} at {contents['position']} in step {entry['step_number']}"


def plot(without: Group, remembering: Group, bushes: list[Place], path: Path) -> None:
    """The meals of both groups over time, and where each group has walked."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    groups = (("without memory", without, "tab:gray"), ("with memory", remembering, "tab:green"))
    figure, (over_time, *maps) = pyplot.subplots(1, 3, figsize=(15, 5))
    for name, group, colour in groups:
        over_time.plot(group.meals, label=name, color=colour)
    over_time.set(title="meals of a walker", xlabel="step")
    over_time.legend()
    for side, (name, group, colour) in zip(maps, groups, strict=True):
        for walker in group.walkers:
            side.plot(*zip(*walker.path, strict=True), color=colour, alpha=0.4, linewidth=1)
        side.scatter(*zip(*bushes, strict=True), color="tab:red", zorder=3, label="bushes")
        side.set(title=f"paths {name}", xlim=(-1, SIZE), ylim=(-1, SIZE), aspect="equal")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=300, help="how long they live (default: 300)")
    options.add_argument("--agents", type=int, default=4, help="walkers in each group (default: 4)")
    options.add_argument("--seed", type=int, default=7, help="another seed is another world (default: 7)")
    options.add_argument("--plot", type=Path, default=Path("gridworld.png"), help="where to put the picture (PNG)")
    given = options.parse_args(arguments)
    if given.steps < 1 or given.agents < 1:
        options.error("--steps and --agents must be at least 1")
    if given.plot.suffix.lower() != ".png" or not given.plot.parent.is_dir():
        options.error(f"--plot must be a file .png in a folder that exists, got {given.plot}")
    out = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    with (
        tempfile.TemporaryDirectory(prefix="rmem-gridworld-") as folder,
        Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bars,
    ):
        task = bars.add_task("walking", total=2 * given.steps)
        lived = (given.agents, given.steps, given.seed)
        config = MemoryConfig(stm_config={"memory_limit": 200}, ltm_config={"path": Path(folder) / "memories.db"})
        without = run(*lived, None, lambda: bars.advance(task))
        with AgentMemoryAPI(config) as api:
            remembering = run(*lived, api, lambda: bars.advance(task))
            lines = recollections(api, remembering.walkers[0])
    out.print(table(without, remembering, given.steps))
    for line in lines:
        out.print(line, markup=False)
    try:
        plot(without, remembering, list(World(given.seed).ripe_at), given.plot)
    except ImportError:
        out.print("No picture was drawn: that needs matplotlib (pip install matplotlib).")
    else:
        out.print(f"The picture is in {given.plot}.", markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
