// Plays a short session of OpenCode to the plugin whose path is given, and prints the parts of the two messages and
// the output of the tool.
const { Remanence } = await import(process.argv[2])
const hooks = await Remanence({ directory: "/work", worktree: "/work" })
const message = async (id, text, sessionID = "s1") => {
  const output = { message: { id }, parts: [{ type: "text", text }] }
  await hooks["chat.message"]({ sessionID, agent: "build" }, output)
  return output.parts
}
await hooks.event({ event: { type: "session.created", properties: { info: { id: "s1" } } } })
const first = await message("m1", "fix the build")
await hooks["tool.execute.before"]({ tool: "bash", sessionID: "s1", callID: "c1" }, { args: { command: "make" } })
const ran = { title: "make", output: "no rule", metadata: { exit: 2 } }
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s1", callID: "c1" }, ran)
await hooks["experimental.session.compacting"]({ sessionID: "s1" }, { context: [] })
const second = await message("m2", "again")
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s1" } } })
await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "s1" } } } })
await hooks.event({ event: {} })
await message("m3", "fix the tests", "s2")
await hooks.dispose() // the program ends, and s2 with it
console.log(JSON.stringify({ first, second, output: ran.output }))
