// What the pages ask the server: the REST routes that everybody uses. A session has two halves: a cookie that scripts
// cannot read, and this key, which other hosts and ports cannot read.

import {t} from "./text.js";

const KEY = "rmem-key";
const root = new URL("..", location.href.split("#")[0]).pathname; // a reverse proxy may have put a prefix before /ui/

export class Failed extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

let ended = () => {};
export const onEnd = act => { ended = act; };

export async function ask(path, {method = "GET", body, headers = {}, accept} = {}) {
  const sent = {...headers};
  const key = localStorage.getItem(KEY);
  if (key) sent["X-Rmem-Key"] = key;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  if (accept) sent.Accept = accept;
  let answer;
  try {
    answer = await fetch(root + path.replace(/^\//, ""), {
      method, headers: sent, credentials: "same-origin", cache: "no-store", redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Failed(0, t`The server does not answer. Is it still running?`);
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  const problem = new Failed(answer.status, told.error ?? t`The server answered ${answer.status}.`);
  if (answer.status === 401 && !path.startsWith("ui/")) ended(problem);
  throw problem;
}

export const get = async (path, parameters) => (await ask(path + query(parameters))).json();
export const send = async (method, path, body) => (await ask(path, {method, body})).json();

/** The lines of a long answer, as they come. */
async function* lines(path, options) {
  const answer = await ask(path, {...options, accept: "application/x-ndjson"});
  let rest = "";
  try {
    for (const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
      const {value, done} = await reader.read();
      const whole = (rest + (value ?? "")).split("\n");
      rest = whole.pop();
      for (const line of whole) yield JSON.parse(line);
      if (done) return;
    }
  } catch (error) {
    throw error instanceof TypeError ? new Failed(0, t`The server does not answer. Is it still running?`) : error;
  }
}

function query(parameters) {
  const told = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") told.append(name, one);
  }
  const text = told.toString();
  return text && `?${text}`;
}

export async function logIn(how) {
  const told = await send("POST", "ui/session", how);
  localStorage.setItem(KEY, told.key);
}

export async function logOut() {
  await ask("ui/session", {method: "DELETE"}).catch(() => {});
  localStorage.removeItem(KEY);
}

/** The routes of one workspace. */
export class Workspace {
  constructor(name, role) { this.name = name; this.role = role; }
  get mayWrite() { return this.role !== "READ"; }
  get isAdmin() { return this.role === "ADMIN"; }
  path(rest) { return `workspaces/${encodeURIComponent(this.name)}/${rest}`; }
  get(rest, parameters) { return get(this.path(rest), parameters); }
  send(method, rest, body) { return send(method, this.path(rest), body); }
  ask(rest, options) { return ask(this.path(rest), options); }
  lines(rest, options) { return lines(this.path(rest), options); }
  memory(id) { return `memories/${encodeURIComponent(id)}`; }
}
