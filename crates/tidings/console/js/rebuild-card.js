// One rebuild: what it is doing, how far it is, in each part of the log, and what may be done with it.

import { h } from "./dom.js";
import { count, duration } from "./format.js";
import { WORDS } from "./rebuild-acts.js";
import { actsOf, doing, hasEnded, nameOf } from "./rebuild-words.js";
import { stateMark } from "./state.js";
import { timeElement } from "./time.js";

/** The card; `act(name)` is called by its buttons. */
export function rebuildCard(rebuild, act) {
  return h(
    "li",
    { class: "card", "data-projector": rebuild.projector, "data-rebuild": rebuild.state },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, nameOf(rebuild)),
      stateMark(rebuild.paused && !hasEnded(rebuild) ? "paused" : rebuild.state),
    ),
    h("p", { class: "doing" }, doing(rebuild)),
    bar(rebuild),
    rebuild.report && h("p", { class: "report" }, h("strong", {}, "Report: "), rebuild.report),
    figures(rebuild),
    partsOf(rebuild),
    buttons(rebuild, act),
  );
}

function bar(rebuild) {
  // What was never known, or is gone with what was built.
  if (rebuild.progress === null) return h("p", { class: "progress fine" }, "How far it was is not known.");
  const percent = Math.floor(rebuild.progress * 100);
  const left =
    rebuild.remaining_ms === null || hasEnded(rebuild) ? "" : `, about ${duration(rebuild.remaining_ms)} to go`;
  const text = `${percent} % of what there was when it began${left}`;
  return h(
    "div",
    { class: "progress" },
    h("progress", { max: "100", value: percent, "aria-label": `Progress of ${rebuild.projector}` }, `${percent} %`),
    h("span", { class: "fine" }, text),
  );
}

function figures(rebuild) {
  const pair = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const rows = rebuild.seed_rows === null ? "" : ` of ${count(rebuild.seed_rows)}`;
  const source = { log: "the log", facts: "facts" }[rebuild.source] ?? "not known yet";
  return h(
    "dl",
    { class: "facts" },
    pair("From", source),
    pair("Pace", rebuild.events_per_second ? `${count(rebuild.events_per_second)} per second` : "no limit"),
    rebuild.source === "facts" && pair("Facts copied", `${count(rebuild.seeded)}${rows}`),
    pair("Events", `${count(rebuild.events_done)} done of ${count(rebuild.events_to_do)}`),
    rebuild.forced && pair("Forced", "whatever the check says, and without the events of its dead keys"),
    !rebuild.in_place && pair("Before the switch", rebuild.held ? "it waits for your word" : "it goes on by itself"),
    rebuild.removed > 0 && pair("Old rows removed", count(rebuild.removed)),
    pair("Asked for", timeElement(rebuild.started_at)),
    rebuild.finished_at
      ? pair("Ended", timeElement(rebuild.finished_at))
      : pair("Last step", timeElement(rebuild.updated_at)),
  );
}

function partsOf({ projector, parts }) {
  if (parts.length === 0) return null;
  const heads = ["Part", "From", "Position", "To", "Done"];
  const row = ({ part, start, position, end }) => {
    const share = end > start ? Math.min(Math.max((position - start) / (end - start), 0), 1) : 1;
    const percent = Math.floor(share * 100);
    return h(
      "tr",
      {},
      h("td", {}, h("code", {}, part)),
      [start, position, end].map((number) => h("td", { class: "number" }, count(number))),
      h("td", {}, h("progress", { max: "100", value: percent, "aria-label": `Progress of ${part}` }, `${percent} %`)),
    );
  };
  const cell = (name, i) => h("th", { scope: "col", class: i > 0 && i < 4 && "number" }, name);
  const scroll = { class: "scroll", tabindex: "0", role: "region", "aria-label": `Parts of the log, ${projector}` };
  return h(
    "details",
    { class: "parts" },
    h("summary", {}, `Parts of the log (${parts.length})`),
    h("div", scroll, h("table", {}, h("thead", {}, h("tr", {}, heads.map(cell))), h("tbody", {}, parts.map(row)))),
  );
}

function buttons(rebuild, act) {
  const acts = actsOf(rebuild);
  if (acts.length === 0) return null;
  const button = (name) =>
    h(
      "button",
      {
        type: "button",
        "data-act": name,
        class: name === "switch" && rebuild.state === "ready" && "strong",
        "aria-label": `${WORDS[name]} ${nameOf(rebuild)}`,
        on: { click: () => act(name) },
      },
      WORDS[name],
    );
  return h("div", { class: "acts" }, acts.map(button));
}
