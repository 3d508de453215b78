// Two minutes of answers of /v1/admin/flow, and what follows from them: rates and series. Knows
// nothing of the page, so the picture can be redrawn from it at any time.

/** How far back the sparklines go. */
export const WINDOW_MS = 120_000;

// Two answers further apart than this say nothing about a rate *now* (a hidden tab, an outage).
const GAP_MS = 10_000;

/** An event that has waited this long is worth a warning; below it, it is simply on its way. */
export const LATE_MS = 5000;

/** Keeps samples per stage over page changes. */
export class FlowHistory {
  #series = new Map();

  /** Takes an answer; returns its stages, each with `rate` (per second or null) and `series`. */
  take(answer) {
    const at = Date.parse(answer.at);
    return answer.stages.map((stage) => {
      const series = this.#of(`${stage.stage}/${stage.name}`, at);
      const rate = rateSince(series.at(-1), at, stage.total);
      series.push({ at, total: stage.total, lag: stage.lag, rate });
      return { ...stage, rate, series };
    });
  }

  #of(id, at) {
    const kept = (this.#series.get(id) ?? []).filter((sample) => at - sample.at <= WINDOW_MS && sample.at < at);
    this.#series.set(id, kept);
    return kept;
  }
}

// A total that falls is a server that was restarted: no rate, rather than a negative one.
function rateSince(last, at, total) {
  if (!last || total < last.total || at - last.at > GAP_MS) return null;
  return ((total - last.total) * 1000) / (at - last.at);
}

/**
 * The one sentence about the whole flow: `{ tone: "good" | "warn" | "bad", kind, text }`. `kind`
 * changes only when there is news, so that it can be spoken without chattering.
 */
export function verdict(stages) {
  const projectors = stages.filter((stage) => stage.stage === "projector");
  const dead = sum(projectors, "dead_keys");
  const parked = sum(projectors, "parked_keys");
  const behind = worst(projectors);
  const stopped = stages.find((stage) => stage.state === "stopped" || stage.state === "unregistered");
  const backing = stages.find((stage) => stage.state === "backing_off");

  if (stopped)
    return {
      tone: "bad",
      kind: `stopped ${stopped.name}`,
      text: `${stopped.name} is ${word(stopped.state)}.`,
      detail: stopped.detail,
    };
  if (backing)
    return {
      tone: "warn",
      kind: `backing ${backing.name}`,
      text: `${backing.name} is backing off.`,
      detail: backing.detail,
    };
  if (dead > 0)
    return { tone: "bad", kind: "dead", dead, parked, text: "Some keys are dead: their events wait for a decision." };
  if (parked > 0)
    return {
      tone: "warn",
      kind: "parked",
      dead,
      parked,
      text: "Some keys are parked: their events are being retried.",
    };
  if (behind && behind.oldest_age_ms > LATE_MS)
    return { tone: "warn", kind: `behind ${behind.name}`, behind, text: `${behind.name} is behind.` };
  if (projectors.length === 0) return { tone: "warn", kind: "none", text: "No projector is registered." };
  return { tone: "good", kind: "good", text: "Every projection is up to date." };
}

/** A stage's state in words. */
export function word(state) {
  return state.replaceAll("_", " ");
}

/** The projector whose oldest event has waited longest; undefined when none is behind. */
export function worst(projectors) {
  return projectors
    .filter((stage) => stage.lag > 0)
    .reduce((a, b) => ((a?.oldest_age_ms ?? -1) >= (b.oldest_age_ms ?? 0) ? a : b), undefined);
}

/** The sum of one field over stages. */
export function sum(stages, field) {
  return stages.reduce((total, stage) => total + (stage[field] ?? 0), 0);
}
