// Page: the journey of one event: committed, relayed, and at each projector, with the times between.

import { Problem, get } from "./api.js";
import { h, say } from "./dom.js";
import { journeyLine } from "./journey-line.js";
import { pageKeys } from "./keys.js";
import { poll } from "./poll.js";
import { alertPlace } from "./problem.js";
import { route } from "./router.js";

const EVERY_MS = 2000;

const ABOUT =
  "Where an event is on its way: when it was committed and by which request, when and where the relay appended it, " +
  "and what each projector did with it.";

export const journeyPage = { title: "Journey", show };

function show(outlet, [eventId]) {
  const alert = alertPlace();
  const form = findForm(eventId);
  outlet.append(
    h("div", { class: "page-head" }, h("h1", {}, "Journey")),
    h("p", { class: "lead" }, ABOUT),
    form.element,
    alert.element,
  );
  const keys = pageKeys([{ key: "/", does: "event id", run: () => form.input.focus() }]);
  if (!eventId) {
    outlet.append(h("p", { class: "empty" }, "Enter the id of an event. Lists of events link here, too."), keys);
    return () => {};
  }
  const loading = h("p", { class: "loading" }, "Loading…");
  const line = journeyLine();
  outlet.append(loading, line.element, keys);

  return poll(
    EVERY_MS,
    async (signal) => {
      try {
        const news = line.put(await get(`/v1/admin/events/${encodeURIComponent(eventId)}/journey`, {}, { signal }));
        if (news) say(news);
      } catch (error) {
        throw error instanceof Problem && error.status === 404 ? notThere(eventId, error) : error;
      } finally {
        loading.hidden = !signal.aborted;
      }
    },
    alert.put,
  );
}

function notThere(eventId, error) {
  return new Problem(404, {
    title: "No event has this id",
    detail: `${eventId} is nowhere on the path. It may never have been committed, or retention has removed it.`,
    request_id: error.requestId,
  });
}

function findForm(eventId) {
  const input = h("input", {
    id: "journey-id",
    type: "search",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "019a3f…",
    value: eventId,
  });
  function submit(event) {
    event.preventDefault();
    location.hash = route("journey", input.value.trim());
  }
  const element = h(
    "form",
    { class: "fields", role: "search", "aria-label": "Find the journey of an event", on: { submit } },
    h("div", { class: "field field-id" }, h("label", { for: "journey-id" }, "Event id"), input),
    h("button", { type: "submit" }, "Show"),
  );
  return { element, input };
}
