// Page: the journey of one event: committed, relayed, and at each projector, with the times between.

import { Problem, get } from "./api.js";
import { h, say } from "./dom.js";
import { journeyLine } from "./journey-line.js";
import { pageKeys } from "./keys.js";
import { DONE, poll } from "./poll.js";
import { alertPlace } from "./problem.js";
import { route } from "./router.js";

const EVERY_MS = 2000;

const ABOUT =
  "Where an event is on its way: when it was committed and by which request, when and where the relay appended it, " +
  "and what each projector did with it.";

export const journeyPage = { title: "Journey", show };

function show(outlet, [eventId]) {
  const alert = alertPlace();
  const form = findForm(eventId, () => begin());
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

  async function look(signal) {
    try {
      const journey = await get(`/v1/admin/events/${encodeURIComponent(eventId)}/journey`, {}, { signal });
      const news = line.put(journey);
      if (news) say(news);
      return hasEnded(journey) ? DONE : undefined;
    } catch (error) {
      throw error instanceof Problem ? told(eventId, error) : error;
    } finally {
      loading.hidden = !signal.aborted;
    }
  }
  let stop = () => {};
  function begin() {
    stop();
    stop = poll(EVERY_MS, look, alert.put);
  }
  begin();
  return () => stop();
}

// A question may have Kafka looked through, so it is not put again where the answer stays the same.
function hasEnded({ relayed, projectors }) {
  const isAtItsEnd = ({ state }) => ["applied", "discarded", "skipped"].includes(state);
  return relayed.state === "relayed" && projectors.every(isAtItsEnd);
}

function told(eventId, error) {
  if (error.kind.endsWith("/search-gave-up")) return Object.assign(error, { isLast: true });
  if (error.status !== 404) return error;
  const detail = `${eventId} is nowhere on the path. It may never have been committed, or retention has removed it.`;
  const document = { title: "No event has this id", detail, request_id: error.requestId };
  return Object.assign(new Problem(404, document), { isLast: true });
}

/** `again()`: the id that is shown already is asked for once more. */
function findForm(eventId, again) {
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
    const address = route("journey", input.value.trim());
    if (address === location.hash) again();
    else location.hash = address;
  }
  const element = h(
    "form",
    { class: "fields", role: "search", "aria-label": "Find the journey of an event", on: { submit } },
    h("div", { class: "field field-id" }, h("label", { for: "journey-id" }, "Event id"), input),
    h("button", { type: "submit" }, "Show"),
  );
  return { element, input };
}
