// What an empty store teaches: how memories come into it.

import {field, h, problem, replace, say} from "./dom.js";
import {t} from "./text.js";

const WAYS = [
  [t`From the shell`, "rmem remember \"Staging runs on port 5434\" --type decision"],
  [t`From the history of a repository`, "rmem import git"],
  [t`From coding agents, by themselves`, "rmem install all"],
  [t`From Python`, "from rmem import Brain; Brain().remember(\"Staging runs on port 5434\")"],
];

export function teach(content, workspace) {
  const text = h("textarea", {rows: 3, required: true});
  const told = h("div");
  const form = workspace.mayWrite && h("form", {class: "card", onsubmit: async event => {
    event.preventDefault();
    try {
      const {ids} = await workspace.send("POST", "memories", {text: text.value});
      say(t`Remembered.`);
      location.hash = `#/memory?id=${encodeURIComponent(ids[0])}`;
    } catch (error) {
      replace(told, problem(error));
    }
  }}, h("h2", null, t`Here and now`), field(t`Something worth remembering`, text),
  h("button", {class: "main"}, t`Remember`), told);
  replace(content, h("h1", null, t`Nothing is remembered here yet`),
    h("p", null, t`A memory is a text with a time, a type and whatever else you give it. What is remembered can be asked for at once, by words and by meaning.`),
    form, h("dl", {class: "ways"}, WAYS.map(([how, command]) => [h("dt", null, how),
      h("dd", null, h("code", null, command))])));
}
