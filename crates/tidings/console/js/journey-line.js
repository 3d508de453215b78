// The line of a journey: a stop for each stage, and on the way between two of them the time it took.

import { h } from "./dom.js";
import { absolute, count, counted, duration, keyText } from "./format.js";
import { route } from "./router.js";
import { keyedRows } from "./rows.js";
import { stateMark } from "./state.js";
import { timeElement } from "./time.js";

/** `{ element, put(journey) }`; `put` answers what has changed in kind since the last time, as a sentence, or "". */
export function journeyLine() {
  const head = h("div", { class: "journey-head", hidden: true });
  const list = h("ol", { class: "journey", "aria-label": "The journey, in order" });
  const heads = keyedRows(head, { key: () => "head", draw: headElement });
  const stops = keyedRows(list, { key: (stop) => stop.id, draw: stopElement });
  let known = new Map();
  return {
    element: h("section", { "aria-label": "Journey" }, head, list),
    put(journey) {
      const { event_id, event_type, key, aggregate_type, aggregate_id, version } = journey;
      heads.put([{ event_id, event_type, key, aggregate_type, aggregate_id, version }]);
      head.hidden = false;
      const now = stopsOf(journey);
      stops.put(now);
      const changed = now.filter(({ id, state }) => known.has(id) && known.get(id) !== state);
      known = new Map(now.map(({ id, state }) => [id, state]));
      return changed.map(({ name, state }) => `${name}: ${state}`).join(". ");
    },
  };
}

/** The stops in order, each with all it takes to draw it. */
function stopsOf({ key, committed, relayed, projectors }) {
  const from = relayed?.after_ms ?? null;
  const stops = [{ id: "committed", kind: "committed", name: "Committed", state: "committed", ...committed }];
  if (relayed) stops.push({ id: "relayed", kind: "relayed", name: "Relay", tookMs: relayed.after_ms, ...relayed });
  for (const each of projectors) {
    const { projector, generation, replay, after_ms } = each;
    // Its time is only as fine as its resolution: it may seem to come before the relay's.
    const tookMs = after_ms === null || after_ms === undefined ? null : Math.max(after_ms - (from ?? 0), 0);
    const since = from === null ? "after the commit" : "after the relay";
    const id = `${projector}@${replay ? "replay" : generation}`;
    stops.push({ id, kind: "projector", name: projector, key, since, ...each, tookMs });
  }
  return stops;
}

function headElement(journey) {
  return h(
    "div",
    { class: "card" },
    h("div", { class: "card-head" }, h("h2", {}, journey.event_type), h("code", {}, journey.event_id)),
    facts([
      ["Key", h("code", {}, keyText(journey.key))],
      ["Aggregate", `${journey.aggregate_type} ${journey.aggregate_id}`],
      ["Version", count(journey.version)],
      ["Event", h("a", { href: route("events", journey.event_id) }, "its content")],
    ]),
  );
}

function stopElement(stop) {
  const about = { committed: committedFacts, relayed: relayedFacts, projector: projectorFacts }[stop.kind](stop);
  const took = tookText(stop);
  return h(
    "li",
    { class: "stop", "data-stop": stop.id, "data-kind": stop.kind, "data-state": stop.state },
    took && h("p", { class: "took" }, took),
    h("i", { class: "dot", "aria-hidden": "true" }),
    h(
      "div",
      { class: "stop-body" },
      h(
        "div",
        { class: "card-head" },
        h("h3", {}, stop.name),
        stop.kind !== "committed" && stateMark(stop.state),
        stop.at && h("span", { class: "fine" }, `${absolute(Date.parse(stop.at))}, `, timeElement(stop.at)),
      ),
      facts(about),
    ),
  );
}

/** The time since what came before it. */
function tookText({ tookMs, resolution_ms, since = "after the commit" }) {
  if (tookMs === null || tookMs === undefined) return "";
  const about = resolution_ms > 0 ? `, or up to ${duration(resolution_ms)} less` : "";
  return `${duration(tookMs)} ${since}${about}`;
}

function committedFacts({ request_id, trace_id }) {
  return [
    ["Request", request_id && h("code", {}, request_id)],
    ["Trace", trace_id && h("code", {}, trace_id)],
  ];
}

function relayedFacts({ topic, partition, offset }) {
  const isSomewhere = topic !== null && topic !== undefined;
  return [
    ["To", isSomewhere && h("code", {}, partition === null ? topic : `${topic}/${partition}`)],
    ["Offset", offset !== null && offset !== undefined && count(offset)],
  ];
}

function projectorFacts(stop) {
  // One that waits has an error only where it waits behind another one of its key, in the parking lot.
  const isBehind = stop.state === "waiting" && stop.error;
  const lot = isBehind || ["retrying", "dead"].includes(stop.state);
  const which = stop.replay ? "replayed in place" : stop.live ? "the live one" : "being built";
  // As the parking lot knows it.
  const name = stop.live ? stop.projector : `${stop.projector}@${stop.replay ? "replay" : stop.generation}`;
  return [
    ["Generation", stop.generation !== null && `${stop.generation}, ${which}`],
    ["Attempts that failed", stop.attempts > 0 && count(stop.attempts)],
    ["Next attempt", stop.next_attempt_at && timeElement(stop.next_attempt_at)],
    ["Before it", stop.events_before > 0 && counted(stop.events_before, "event")],
    [isBehind ? "Error of the one before it" : "Error", stop.error && h("span", { class: "error-text" }, stop.error)],
    ["Parking lot", lot && h("a", { href: route("parked", name, stop.key) }, `key ${keyText(stop.key)}`)],
  ];
}

function facts(pairs) {
  const rows = pairs
    .filter(([, value]) => value)
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  return rows.length > 0 && h("dl", { class: "facts" }, rows);
}
