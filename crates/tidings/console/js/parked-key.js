// One parked key: why it is parked, and what waits behind it, in the order in which it will be applied.

import { get } from "./api.js";
import { discardDialog, discarded } from "./discard.js";
import { h, setText, showIf } from "./dom.js";
import { eventRow } from "./event-row.js";
import { count, counted, keyText } from "./format.js";
import { pageKeys } from "./keys.js";
import { listing } from "./listing.js";
import { redriveDialog, redriven } from "./redrive.js";
import { route } from "./router.js";
import { stateMark } from "./state.js";
import { timeElement } from "./time.js";

const EVERY_MS = 2000;
const PAGE = 20;

/** Shows it, and answers what ends that. */
export function showKey(outlet, projector, key) {
  const name = keyText(key);
  const notice = h("div", { class: "notice-place" });
  const waiting = h("span", { class: "fine" });
  const redriveButton = h(
    "button",
    { type: "button", class: "strong", id: "redrive", "aria-keyshortcuts": "r", on: { click: redrive }, hidden: true },
    "Redrive this key…",
  );
  // The events at the heads of the parts: the ones that failed.
  let heads = new Set();
  // Where the first event of each part stands: what is not readable has no id to be told by.
  let firsts = new Set();

  const which = { projector, key };
  // What came without a key waits under the empty one.
  const keeps = ["key"];
  const parts = listing({
    label: `How key ${name} is parked`,
    noun: "part",
    key: (item) => item.part,
    draw: partElement,
    ask: (_, signal) => get("/v1/admin/parked", which, { signal, keeps }),
    everyMs: EVERY_MS,
    empty: [h("strong", {}, "This key is not parked."), h("p", {}, "Its events were applied, or discarded.")],
    onItems(items) {
      heads = new Set(items.map((item) => `${item.part} ${item.event_id}`));
      showIf(redriveButton, items.length > 0);
      setText(
        waiting,
        `${counted(
          items.reduce((sum, item) => sum + item.waiting, 0),
          "event",
        )} in all`,
      );
      events.element.hidden = items.length === 0;
    },
  });
  const events = listing({
    label: "What waits, in the order in which it is applied",
    noun: "event",
    key: placeOf,
    draw: (item) => waitingElement(item, projector, () => discard(item)),
    ask: (page, signal) => get("/v1/admin/parked/events", { ...which, ...page }, { signal, keeps }),
    everyMs: EVERY_MS,
    limit: PAGE,
    empty: "Nothing waits.",
    onItems(items, pages) {
      if (pages.number > 1) return;
      const isFirst = (item, at) => items.findIndex(({ part }) => part === item.part) === at;
      firsts = new Set(items.filter(isFirst).map(placeOf));
    },
  });

  function again() {
    parts.again();
    events.first();
  }
  function redrive() {
    if (redriveButton.hidden) return;
    redriveDialog({
      filter: which,
      done(plan) {
        notice.replaceChildren(redriven(plan));
        again();
      },
    });
  }
  function discard(item) {
    discardDialog({
      ...which,
      item,
      isHead: heads.has(`${item.part} ${item.event_id}`) && (item.event_id !== null || firsts.has(placeOf(item))),
      done(answer) {
        notice.replaceChildren(discarded(answer));
        again();
      },
    });
  }

  document.title = `Key ${name} of ${projector} · Tidings`;
  outlet.append(
    h("p", { class: "trail" }, h("a", { href: route("parked") }, "Parked keys")),
    h("div", { class: "page-head" }, h("h1", {}, `Key ${name} of ${projector}`), redriveButton),
    notice,
    parts.element,
    h("div", { class: "section-head" }, h("h2", {}, "What waits"), waiting),
    events.element,
    pageKeys([{ key: "r", does: "redrive this key", run: redrive }, ...events.keys]),
  );
  parts.start();
  events.start();
  return () => {
    parts.stop();
    events.stop();
  };
}

function placeOf({ part, offset }) {
  return `${part} ${offset}`;
}

function partElement(item) {
  const pair = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return h(
    "li",
    { class: "card" },
    h("div", { class: "card-head" }, stateMark(item.state), h("span", { class: "fine" }, item.part)),
    h(
      "dl",
      { class: "facts" },
      pair("Attempts that failed", count(item.attempts)),
      pair("Next attempt", item.next_attempt_at ? timeElement(item.next_attempt_at) : "none: it waits for you"),
      pair("Events that wait", count(item.waiting)),
      pair("Parked", timeElement(item.parked_at)),
      item.died_at && pair("Died", timeElement(item.died_at)),
      pair("Event that failed", item.event_type || "not readable"),
    ),
    h("h2", {}, "The last error, with its causes"),
    // Focusable, because a long one scrolls and a keyboard has to be able to.
    h("pre", { class: "error-chain", tabindex: "0", role: "region", "aria-label": "Error" }, item.error),
  );
}

function waitingElement(item, projector, discard) {
  const button = h(
    "button",
    {
      type: "button",
      class: "small",
      "data-act": "discard",
      "aria-label": `Discard… the event at offset ${item.offset}`,
      on: { click: discard },
    },
    "Discard…",
  );
  const event = item.readable ? item.event : { ...item.event, type: "not readable", time: item.occurred_at };
  return h("li", {}, eventRow({ offset: item.offset, event }, { actions: [button], raw: item.event }));
}
