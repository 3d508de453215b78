// How far a projector is in each partition, folded up. Where the log is one part, the stage tells it already.

import { h, setText } from "./dom.js";
import { count } from "./format.js";
import { keyedRows } from "./rows.js";

/** `{ element, put(parts) }` of one projector. */
export function flowParts(projector) {
  const summary = h("summary", {});
  const heads = ["Partition", "Position", "Lag"];
  const cell = (name, i) => h("th", { scope: "col", class: i > 0 && "number" }, name);
  const body = h("tbody", {});
  const scroll = { class: "scroll", tabindex: "0", role: "region", "aria-label": `Partitions, ${projector}` };
  const table = h("table", {}, h("thead", {}, h("tr", {}, heads.map(cell))), body);
  const element = h("details", { class: "parts", hidden: true }, summary, h("div", scroll, table));
  const rows = keyedRows(body, { key: nameOf, draw });
  return {
    element,
    put(parts) {
      element.hidden = parts.length < 2;
      setText(summary, `Partitions (${parts.length})`);
      rows.put(parts);
    },
  };
}

function nameOf({ topic, partition }) {
  return `${topic}/${partition}`;
}

function draw(part) {
  const number = (name) => h("td", { class: "number", "data-metric": name }, count(part[name]));
  return h(
    "tr",
    { "data-part": nameOf(part) },
    h("td", {}, h("code", {}, nameOf(part))),
    number("position"),
    number("lag"),
  );
}
