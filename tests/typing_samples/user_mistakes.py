"""Mistakes of a user, one to a line, each of which type checkers have to report. It is not run. mypy --strict reports a
comment that ignores nothing, so `make check` fails where it misses a mistake."""

from rmem import AsyncBrain, Brain

brain = Brain("team.db", durability="sometimes")  # type: ignore
brain.remember("text", importance="high")  # type: ignore
brain.remember("text", tier="attic")  # type: ignore
brain.recall("text", mode="fuzzy")  # type: ignore
brain.recall("text", agnt="a")  # type: ignore
brain.update("id", importance="high")  # type: ignore
brain.update("id", colour="red")  # type: ignore
brain.forget(where={"agent": "a"}, subject="b")  # type: ignore
brain.stats()["memory"]  # type: ignore


async def main(face: AsyncBrain) -> None:
    await face.remember("text", importance="high")  # type: ignore
    await face.recall("text", agnt="a")  # type: ignore
    await face.forgets("id")  # type: ignore
    (await face.recall("text")).sort_by_taste()  # type: ignore
