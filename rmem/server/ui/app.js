// Logging in, and which page is shown. Every page has an address: #/search?q=…, #/memory?id=…, …

import {Workspace, get, logIn, logOut, onEnd} from "./api.js";
import {field, h, problem, replace, say, waiting} from "./dom.js";
import * as agents from "./agents.js";
import * as coding from "./coding.js";
import * as graph from "./graph.js";
import * as health from "./health.js";
import * as memory from "./memory.js";
import * as search from "./search.js";
import * as tables from "./tables.js";
import * as timeline from "./timeline.js";
import {t} from "./text.js";

const PAGES = {search, timeline, agents, coding, graph, tables, health, memory};
const IN_BAR = ["search", "timeline", "agents", "coding", "graph", "tables", "health"];
const main = document.getElementById("main");
const bar = document.getElementById("bar");
let workspaces = [], chosen = null, showing = 0;

function place() {
  const [name, parameters] = location.hash.replace(/^#\/?/, "").split("?");
  return {name: name in PAGES ? name : "search", parameters: new URLSearchParams(parameters ?? "")};
}

/** The address of a page; what is empty is left out. */
function address(name, parameters = {}) {
  const told = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) if (value || value === 0) told.set(key, value);
  if (chosen && workspaces.length > 1) told.set("workspace", chosen.name);
  const text = told.toString();
  return `#/${name}${text && `?${text}`}`;
}

async function show() {
  const {name, parameters} = place();
  const wanted = parameters.get("workspace");
  chosen = wanted ? workspaces.find(one => one.name === wanted) : chosen ?? workspaces[0];
  const page = PAGES[name], mine = (showing += 1);
  let here = location.hash;
  const note = told => { // change the address of this page without showing it anew, unless a link was followed meanwhile
    if (mine !== showing || location.hash !== here) return;
    history.replaceState(null, "", address(name, told));
    here = location.hash;
  };
  drawBar(name);
  document.title = t`${page.title} – Remanence`;
  const content = h("div", {class: "page"}, waiting(t`Loading…`));
  replace(main, content);
  if (!chosen) {
    tellOfNone(content, wanted);
    return;
  }
  try {
    await page.show({content, parameters, workspace: chosen, address, note,
      isCurrent: () => mine === showing});
  } catch (error) {
    if (error.status !== 401 && mine === showing) replace(content, problem(error), h("button", {onclick: () => show()}, t`Try again`));
  }
}

function tellOfNone(content, wanted) {
  replace(content, h("h1", null, t`No workspace`), h("p", null, wanted ? t`Your token does not open the workspace ${wanted}. ` :
    t`Your token opens no workspace. `, t`Ask an administrator for a role: rmem member add NAME read.`));
}

function drawBar(current) {
  bar.hidden = false;
  replace(document.getElementById("nav"), IN_BAR.map(name =>
    h("a", {href: address(name), "aria-current": name === current && "page"}, PAGES[name].title)));
  const several = workspaces.length > 1 && h("select", {"aria-label": t`Workspace`, onchange: event => {
    chosen = workspaces.find(one => one.name === event.target.value);
    location.hash = address(place().name);
    show();
  }}, !chosen && h("option", {value: ""}, t`choose…`), workspaces.map(one => h("option", {selected: one === chosen}, one.name)));
  replace(document.getElementById("who"), several,
    h("button", {class: "quiet", onclick: async () => { await logOut(); askForToken(); }}, t`Log out`));
}

function askForToken(error) {
  bar.hidden = true;
  showing += 1;
  document.title = t`Log in – Remanence`;
  const token = h("input", {type: "password", autocomplete: "off", required: true, spellcheck: "false"});
  const told = h("div");
  const form = h("form", {class: "login", onsubmit: async event => {
    event.preventDefault();
    try {
      await logIn({token: token.value.trim()});
      token.value = "";
      await begin();
    } catch (problemOfLogin) {
      replace(told, problem(problemOfLogin));
      token.select();
    }
  }}, h("h1", null, t`Log in`),
  field(t`Token`, token, t`What rmem token create NAME printed. It is exchanged for a session that ends when idle.`),
  h("button", {class: "main"}, t`Log in`), told,
  h("p", {class: "note"}, t`For your own store, rmem ui in a terminal opens this page without a token.`));
  replace(main, form);
  if (error) replace(told, problem(error));
  token.focus();
}

async function begin() {
  replace(main, waiting(t`Loading…`));
  try {
    const answer = await get("workspaces", {limit: 1000});
    workspaces = answer.workspaces.map(one => new Workspace(one.name, one.role));
  } catch (error) {
    if (error.status !== 401) replace(main, problem(error));
    return;
  }
  await show();
}

async function start() {
  const code = /^#login=([\w-]+)$/.exec(location.hash);
  if (code) {
    history.replaceState(null, "", "#/search"); // out of the history before anything else
    try {
      await logIn({code: code[1]});
    } catch (error) {
      askForToken(error);
      return;
    }
  }
  await begin();
}

onEnd(error => askForToken(localStorage.getItem("rmem-key") ? error : undefined));
document.querySelector(".skip").addEventListener("click", event => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", () => { if (workspaces.length) show().then(() => main.focus()); });
addEventListener("keydown", event => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    const box = document.querySelector("input[type=search]");
    if (box) box.focus(); else location.hash = address("search");
  }
});
addEventListener("unhandledrejection", event => say(event.reason?.message ?? t`Something went wrong.`));
start();
