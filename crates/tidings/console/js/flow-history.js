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

/** A stage's state in words. */
export function word(state) {
  return state.replaceAll("_", " ");
}

/** The sum of one field over stages. */
export function sum(stages, field) {
  return stages.reduce((total, stage) => total + (stage[field] ?? 0), 0);
}
