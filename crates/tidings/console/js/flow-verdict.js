// The one sentence about the whole flow.

import { LATE_MS, sum } from "./flow-history.js";
import { count, counted, duration } from "./format.js";

/**
 * `{ tone: "good" | "warn" | "bad", kind, text, more, parked }`. `kind` changes only when there is
 * news, so that it can be spoken without chattering; `parked` says whether the parked keys are it.
 */
export function verdict(stages) {
  const projectors = stages.filter((stage) => stage.stage === "projector");
  const readers = stages.filter((stage) => stage.stage === "projector" || stage.stage === "relay");
  const inState = (state) => stages.find((stage) => stage.state === state);
  const behind = worst(readers);
  const late = behind?.oldest_age_ms > LATE_MS;
  // The worst first: what needs a person, then what mends itself.
  const [unreachable, stopped, backingOff, unknown] =
    ["unreachable", "stopped", "backing_off", "unregistered"].map(inState);

  if (unreachable) return named("bad", unreachable, "cannot be reached");
  if (stopped) return named("bad", stopped, "has stopped");
  if (sum(projectors, "dead_keys") > 0) return parking(projectors);
  if (backingOff) return named("warn", backingOff, "is backing off");
  if (sum(projectors, "parked_keys") > 0) return parking(projectors);
  if (unknown) return named("warn", unknown, "has a position here, but is not registered");
  if (late) return named("warn", behind, "is behind", waitingOf(behind));
  if (projectors.length === 0) return { tone: "warn", kind: "none", text: "No projector is registered.", more: "" };
  if (behind) return { tone: "good", kind: "good", text: "Projections are keeping up.", more: waitingOf(behind) };
  return { tone: "good", kind: "good", text: "Every projection is up to date.", more: "" };
}

function named(tone, stage, does, more = stage.detail ?? "") {
  return { tone, kind: `${stage.name} ${does}`, text: `${stage.name} ${does}.`, more };
}

function parking(projectors) {
  const dead = sum(projectors, "dead_keys");
  const retrying = sum(projectors, "parked_keys");
  const more = `${counted(dead, "key")} dead, ${count(retrying)} being retried. Other keys go on.`;
  const text = dead > 0 ? "Some keys are dead: their events wait for a decision." : "Some keys are being retried.";
  return { tone: dead > 0 ? "bad" : "warn", kind: text, text, more, parked: true };
}

function waitingOf(stage) {
  return `${counted(stage.lag, "event")} to go; the oldest has waited ${duration(stage.oldest_age_ms)}.`;
}

/** The stage whose oldest event has waited longest; undefined when none is behind. */
export function worst(stages) {
  return stages
    .filter((stage) => stage.lag > 0)
    .reduce((a, b) => ((a?.oldest_age_ms ?? -1) >= (b.oldest_age_ms ?? 0) ? a : b), undefined);
}
