// One run of reconciliation: what was compared, what differs, and its repair.

import { get } from "./api.js";
import { h, say, setText, showIf } from "./dom.js";
import { count, counted, duration } from "./format.js";
import { pageKeys } from "./keys.js";
import { poll } from "./poll.js";
import { alertPlace } from "./problem.js";
import { repairDialog } from "./reconciliation-acts.js";
import { repairWord, startedBy, verdictOf } from "./reconciliation-words.js";
import { route } from "./router.js";
import { keyedRows } from "./rows.js";
import { stateMark } from "./state.js";
import { timeElement } from "./time.js";

const EVERY_MS = 1000;

/** Shows it, and answers what ends that. */
export function showRun(outlet, id) {
  const alert = alertPlace();
  const loading = h("p", { class: "loading" }, "Loading…");
  const words = h("strong", {});
  const sentence = h("p", { class: "verdict", id: "verdict", hidden: true }, h("i", { "aria-hidden": "true" }), words);
  const summary = h("div", { class: "card-place" });
  const list = h("ol", { class: "cards", "aria-label": "What was compared" });
  const about = keyedRows(summary, { key: () => "run", draw: summaryElement });
  const checks = keyedRows(list, { key: (check) => check.check, draw: checkElement });
  const repairButton = h(
    "button",
    { type: "button", class: "strong", id: "repair", "aria-keyshortcuts": "r", hidden: true, on: { click: repair } },
    "Repair…",
  );
  let run = null;
  let kind = "";

  function put(answer) {
    run = answer;
    loading.hidden = true;
    const { tone, text } = verdictOf(run);
    sentence.hidden = false;
    sentence.dataset.tone = tone;
    setText(words, text);
    const { checks: compared, ...rest } = run;
    about.put([rest]);
    checks.put(compared);
    showIf(repairButton, run.repair?.state === "possible");
    const now = `${run.state} ${run.repair?.state}`;
    if (kind && now !== kind) say(`${text} Repair: ${repairWord(run)}`);
    kind = now;
  }
  function repair() {
    if (!repairButton.hidden) repairDialog({ run, done: put });
  }

  outlet.append(
    h("p", { class: "trail" }, h("a", { href: route("reconciliation") }, "Reconciliation")),
    h("div", { class: "page-head" }, h("h1", {}, "One run"), repairButton),
    alert.element,
    loading,
    sentence,
    summary,
    list,
    pageKeys([{ key: "r", does: "repair", run: repair }]),
  );
  return poll(
    EVERY_MS,
    async (signal) => put(await get(`/v1/admin/reconciliations/${encodeURIComponent(id)}`, {}, { signal })),
    (problem) => {
      alert.put(problem);
      if (problem) loading.hidden = true;
    },
  );
}

function pair(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function summaryElement(run) {
  const { repair } = run;
  const took = run.finished_at && duration(Date.parse(run.finished_at) - Date.parse(run.started_at));
  return h(
    "div",
    { class: "card" },
    h("div", { class: "card-head" }, stateMark(run.state), h("code", {}, run.id)),
    h(
      "dl",
      { class: "facts" },
      pair("Started", timeElement(run.started_at)),
      pair("By", startedBy(run)),
      pair("Compared", run.projector ? h("code", {}, run.projector) : "everything"),
      took && pair("Took", took),
      pair("Differences", h("span", { "data-metric": "differences" }, count(run.differences))),
      pair("Only behind", count(run.lagging)),
      pair("Repair", h("span", { "data-metric": "repair", "data-repair": repair?.state }, repairWord(run))),
      repair?.repaired_at && pair("Repaired", timeElement(repair.repaired_at)),
      repair?.error && pair("Error of the repair", repair.error),
    ),
  );
}

function checkElement(check) {
  const { differences, lagging, shards, shards_differing } = check;
  return h(
    "li",
    { class: "card", "data-check": check.check },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, check.check),
      stateMark(
        differences > 0 ? "differs" : "agrees",
        differences > 0 ? counted(differences, "difference") : "agrees",
      ),
    ),
    h(
      "dl",
      { class: "facts" },
      pair("Shards that differ", `${count(shards_differing)} of ${count(shards)}`),
      pair("Rows compared", count(check.rows)),
      pair("Only behind", count(lagging)),
      Object.entries(check.kinds ?? {}).map(([kind, many]) => pair(kind, count(many))),
    ),
    check.note && h("p", { class: "report" }, check.note),
    examplesOf(check),
  );
}

function examplesOf({ check, examples }) {
  if (!examples?.length) return null;
  const heads = ["Kind", "Subject", "Expected", "Found"].map((head) => h("th", { scope: "col" }, head));
  const row = ({ kind, subject, expected, found }) =>
    h(
      "tr",
      {},
      h("td", {}, kind),
      [subject, expected, found].map((text) => h("td", {}, h("code", {}, shown(text)))),
    );
  const scroll = { class: "scroll", tabindex: "0", role: "region", "aria-label": `Examples, ${check}` };
  return h(
    "details",
    { class: "parts" },
    h("summary", {}, `Examples (${examples.length})`),
    h("div", scroll, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, examples.map(row)))),
  );
}

function shown(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}
