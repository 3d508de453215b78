// Page: the audit. What operators did, when, and why.

import { get } from "./api.js";
import { h } from "./dom.js";
import { keyText } from "./format.js";
import { jsonBlock } from "./json.js";
import { pageKeys } from "./keys.js";
import { listing } from "./listing.js";
import { route } from "./router.js";
import { timeElement } from "./time.js";

const EVERY_MS = 5000;
const PAGE = 25;

// Actions in words; one that is not listed shows its own name.
const WORDS = {
  "parking.redrive": "Redrive",
  "parking.discard": "Discard of an event",
  "rebuild.start": "Rebuild started",
  "rebuild.pause": "Rebuild paused",
  "rebuild.resume": "Rebuild resumed",
  "rebuild.switch": "Readers given a rebuild",
  "rebuild.cancel": "Rebuild cancelled",
  "reconcile.repair": "Repair asked for",
  "reconcile.repaired": "Repair made",
};

export const auditPage = { title: "Audit", show };

function show(outlet) {
  const list = listing({
    label: "What operators did, newest first",
    noun: "record",
    heads: ["When", "Who", "What", "To what", "Why", "Details"],
    key: (item) => item.id,
    draw: row,
    ask: (page, signal) => get("/v1/admin/audit", page, { signal }),
    everyMs: EVERY_MS,
    limit: PAGE,
    empty: [
      h("strong", {}, "No operator has done anything yet."),
      h("p", {}, "Redrives, discards and rebuilds are kept here."),
    ],
  });
  outlet.append(
    h("div", { class: "page-head" }, h("h1", {}, "Audit")),
    h(
      "p",
      { class: "lead" },
      "Each action leaves its record in the transaction that does it, by whichever way it was asked for.",
    ),
    list.element,
    pageKeys(list.keys),
  );
  list.start();
  return list.stop;
}

function row(item) {
  const { projector, key, event_id } = item;
  const isKeyed = key !== null && key !== undefined;
  return h(
    "tr",
    { "data-action": item.action },
    h("td", {}, timeElement(item.at)),
    h("td", {}, h("code", {}, item.actor)),
    h("td", {}, WORDS[item.action] ?? item.action),
    h(
      "td",
      { class: "targets" },
      projector && h("span", {}, h("code", {}, projector)),
      isKeyed &&
        h(
          "span",
          {},
          "key ",
          projector ? h("a", { href: route("parked", projector, key) }, keyText(key)) : h("code", {}, keyText(key)),
        ),
      event_id && h("a", { href: route("events", event_id) }, "event"),
    ),
    h("td", { class: "error-text" }, item.reason ?? ""),
    h("td", {}, details(item)),
  );
}

function details(item) {
  const element = h("details", {}, h("summary", { "data-row": true }, "Show"));
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) element.append(jsonBlock(item.details, "Details"));
  });
  return element;
}
