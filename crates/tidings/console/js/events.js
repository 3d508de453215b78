// Page: the newest events, live; one event by its id.

import { Problem, get } from "./api.js";
import { h, once, say, setText } from "./dom.js";
import { EventList } from "./event-list.js";
import { eventRow } from "./event-row.js";
import { counted } from "./format.js";
import { pageKeys } from "./keys.js";
import { poll } from "./poll.js";
import { alertPlace } from "./problem.js";
import { route } from "./router.js";

const EVERY_MS = 1000;
const LATEST = 50;
const PAGE = 50;

export const eventsPage = { title: "Events", show };

function show(outlet, [eventId]) {
  const alert = alertPlace();
  const filter = filterForm((wanted) => list.filter(wanted));
  const list = new EventList({ onOpen: () => live.pause("Paused while you read."), onType: filter.addType });
  const live = liveSwitch(list, alert);
  const older = olderButton(list, alert, live);
  outlet.append(
    h("div", { class: "page-head" }, h("h1", {}, "Events"), live.element),
    h("div", { class: "toolbar" }, filter.element, lookupForm(eventId)),
    eventId ? lookedUp(eventId) : "",
    alert.element,
    list.element,
    older,
    pageKeys([
      { key: "/", does: "find an event", run: () => document.getElementById("lookup").focus() },
      { key: "l", does: "live, or pause", run: live.turn },
    ]),
  );
  // Looking at one event, the rest stands still below it.
  if (eventId) live.still();
  else live.resume();
  return live.pause;
}

// --- live and paused

function liveSwitch(list, alert) {
  const text = h("span", { class: "live-text" });
  const button = h("button", { type: "button", id: "live", "aria-keyshortcuts": "l", on: { click: turn } });
  const element = h("div", { class: "live" }, h("i", { "aria-hidden": "true" }), text, button);
  let stop = null;

  async function refresh(signal) {
    const page = await get("/v1/admin/events", { latest: LATEST }, { signal });
    list.addNewest(page.items);
    if (stop) setText(text, `Live, ${counted(list.size, "event")} here`);
  }

  function turn() {
    if (stop) pause("Paused.");
    else resume();
  }

  function resume() {
    if (stop) return;
    element.dataset.live = "yes";
    setText(text, "Live");
    setText(button, "Pause");
    list.trim();
    stop = poll(EVERY_MS, refresh, alert.put);
  }

  function pause(why) {
    stop?.();
    stop = null;
    element.dataset.live = "no";
    setText(button, "Resume");
    if (why) {
      setText(text, why);
      say(why);
    }
  }

  function still() {
    pause("Paused.");
    refresh(undefined).catch(alert.put);
  }
  return { element, turn, resume, pause, still };
}

function olderButton(list, alert, live) {
  const button = h("button", { type: "button", class: "wide", id: "older" }, "Show older events");
  async function load() {
    const before = list.oldest;
    if (before === undefined) return;
    // Live, the list is cut at its foot as events come: not what someone paging back wants.
    live.pause("Paused while you page back.");
    try {
      const page = await get("/v1/admin/events", { before, limit: PAGE });
      list.addOlder(page.items);
      if (page.items.length === 0) setText(button, "The log begins here");
      say(`${counted(page.items.length, "older event")} shown`);
    } catch (error) {
      alert.put(error);
    }
  }
  button.addEventListener("click", () => once(button, load));
  return button;
}

// --- filter and lookup

/** `{ element, addType }`; `apply({ type, key })` is called at each change. */
function filterForm(apply) {
  const type = h("select", { id: "filter-type" }, h("option", { value: "" }, "Every type"));
  const key = h("input", {
    id: "filter-key",
    type: "search",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "any",
  });
  const changed = () => apply({ type: type.value, key: key.value.trim() });
  type.addEventListener("change", changed);
  key.addEventListener("input", changed);
  const element = h(
    "form",
    {
      class: "fields",
      role: "search",
      "aria-label": "Filter events",
      on: { submit: (event) => event.preventDefault() },
    },
    h("div", { class: "field" }, h("label", { for: "filter-type" }, "Type"), type),
    h("div", { class: "field field-short" }, h("label", { for: "filter-key" }, "Key"), key),
  );
  return { element, addType: (name) => type.append(h("option", { value: name }, name)) };
}

function lookupForm(eventId) {
  const input = h("input", {
    id: "lookup",
    type: "search",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "019a3f…",
    value: eventId,
  });
  return h(
    "form",
    {
      class: "fields lookup",
      role: "search",
      "aria-label": "Find an event",
      on: {
        submit(event) {
          event.preventDefault();
          location.hash = route("events", input.value.trim());
        },
      },
    },
    h("div", { class: "field" }, h("label", { for: "lookup" }, "Event id"), input),
    h("button", { type: "submit" }, "Find"),
  );
}

function lookedUp(eventId) {
  const place = h("section", { class: "looked-up", "aria-label": "Event found" });
  const alert = alertPlace();
  place.append(alert.element);
  get(`/v1/admin/events/${encodeURIComponent(eventId)}`).then(
    (item) => place.append(eventRow(item, { open: true })),
    (error) => alert.put(error instanceof Problem && error.status === 404 ? notThere(eventId, error) : error),
  );
  return place;
}

function notThere(eventId, error) {
  return new Problem(404, {
    title: "No event has this id",
    detail: `${eventId} is not in the log. It may never have been committed, or retention has removed it.`,
    request_id: error.requestId,
  });
}
