"""Mistakes of a user, one to a line, each of which type checkers have to report. It is not run."""

from rmem import AsyncBrain, Brain

brain = Brain("team.db", durability="sometimes")
brain.remember("text", importance="high")
brain.remember("text", tier="attic")
brain.recall("text", mode="fuzzy")
brain.recall("text", agnt="a")
brain.update("id", importance="high")
brain.update("id", colour="red")
brain.forget(where={"agent": "a"}, subject="b")
brain.stats()["memory"]


async def main(face: AsyncBrain) -> None:
    await face.remember("text", importance="high")
    await face.recall("text", agnt="a")
    await face.forgets("id")
    (await face.recall("text")).sort_by_taste()
