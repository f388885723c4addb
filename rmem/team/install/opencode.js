// Remanence: passes what happens in OpenCode to the team memory, and what the memory knows to OpenCode.
// Made by `rmem install opencode`; `rmem uninstall opencode` removes it. Changes made here are overwritten.
//
// Each event becomes `rmem hook opencode <event>` with one JSON object on standard input: sessionID, directory,
// worktree and time, and what belongs to the event. Hooks that nobody waits for may overtake each other; the time says
// what came first. Whatever goes wrong stays in here: a hook never disturbs a session.

import { spawn } from "node:child_process"

const RMEM = ["rmem"]
const PATIENCE = 3000 // milliseconds
const OUTPUT = 200_000 // characters of a tool's output
const PRIVATE = /<private>[^]*?(<\/private>|$)/gi // what a user marked so stays here

function run(event, payload, wait) {
  return new Promise((done) => {
    try {
      const child = spawn(RMEM[0], [...RMEM.slice(1), "hook", "opencode", event], {
        stdio: ["pipe", wait ? "pipe" : "ignore", "ignore"],
        detached: !wait,
        windowsHide: true,
      })
      let answer = ""
      const timer = setTimeout(() => done(""), PATIENCE)
      const end = (text) => {
        clearTimeout(timer)
        done(text)
      }
      child.on("error", () => end(""))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
      if (wait) {
        child.stdout.on("data", (part) => (answer += part))
        child.on("close", () => end(answer))
      } else {
        child.unref()
        end("")
      }
    } catch {
      done("")
    }
  })
}

// The answer is JSON with the context in it, or the context itself.
function contextOf(answer) {
  const text = answer.trim()
  if (!text.startsWith("{")) return text
  try {
    const told = JSON.parse(text)
    return told.context ?? told.additionalContext ?? told.hookSpecificOutput?.additionalContext ?? ""
  } catch {
    return ""
  }
}

export const Remanence = async ({ directory, worktree }) => {
  const briefings = new Map() // session → the answer to its start
  const started = new Map() // call → the arguments of a tool that runs
  const active = new Set() // sessions that were prompted here
  const send = (event, payload, wait = false) =>
    run(event, { directory, worktree, time: Date.now(), ...payload }, wait)
  const quietly = (hook) => async (input, output) => {
    try {
      await hook(input, output)
    } catch {
      // never the session's problem
    }
  }
  const begin = (sessionID, source) => {
    if (!briefings.has(sessionID)) briefings.set(sessionID, send("session.created", { sessionID, source }, true))
  }

  return {
    event: quietly(async ({ event }) => {
      const about = event.properties ?? {}
      const sessionID = about.sessionID ?? about.info?.id
      if (event.type === "session.created" && !about.info?.parentID) begin(sessionID, "startup")
      if (event.type === "session.idle") await send("session.idle", { sessionID })
      if (event.type === "session.deleted") {
        briefings.delete(sessionID)
        active.delete(sessionID)
        await send("session.deleted", { sessionID })
      }
    }),

    "chat.message": quietly(async (input, output) => {
      const { sessionID } = input
      const prompt = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      begin(sessionID, "resume")
      active.add(sessionID)
      const briefing = briefings.get(sessionID)
      briefings.set(sessionID, "") // told once
      const payload = { sessionID, messageID: output.message?.id, agent: input.agent, prompt: prompt.join("\n") }
      const answers = await Promise.all([briefing, send("chat.message", payload, true)])
      answers.map(contextOf).forEach((text, at) => {
        if (!text) return
        output.parts.push({
          id: `prt_remanence_${output.message.id}_${at}`,
          sessionID,
          messageID: output.message.id,
          type: "text",
          text,
          synthetic: true,
        })
      })
    }),

    "tool.execute.before": quietly(async (input, output) => {
      started.set(input.callID, output.args)
    }),

    "tool.execute.after": quietly(async (input, output) => {
      const args = input.args ?? started.get(input.callID)
      started.delete(input.callID)
      const payload = {
        sessionID: input.sessionID,
        callID: input.callID,
        tool: input.tool,
        args,
        title: output.title,
        output: String(output.output ?? "").replace(PRIVATE, "").slice(-OUTPUT),
        metadata: { exit: output.metadata?.exit },
      }
      const known = contextOf(await send("tool.execute.after", payload, Boolean(output.metadata?.exit)))
      if (known) output.output = `${output.output}\n\n${known}`
    }),

    "experimental.session.compacting": quietly(async (input) => {
      await send("session.compacting", { sessionID: input.sessionID })
      briefings.delete(input.sessionID) // the next prompt is briefed again
    }),

    dispose: quietly(async () => {
      await Promise.all([...active].map((sessionID) => send("session.deleted", { sessionID, reason: "exit" })))
      active.clear()
    }),
  }
}
