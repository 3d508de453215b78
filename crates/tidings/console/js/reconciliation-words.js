// What a run of reconciliation found, in words.

import { counted, count } from "./format.js";

/** Who started it. */
export function startedBy({ trigger, actor }) {
  if (trigger === "schedule") return "schedule";
  return actor ?? trigger;
}

/** `{ tone, text }`: the one sentence about a run. */
export function verdictOf({ state, differences, lagging, error }) {
  if (state === "running") return { tone: "", text: "It is being compared." };
  if (state === "failed") return { tone: "bad", text: error ?? "It failed." };
  const behind = lagging > 0 ? ` ${count(lagging)} only behind: on ${lagging === 1 ? "its" : "their"} way.` : "";
  if (differences > 0) return { tone: "bad", text: `${counted(differences, "difference")}.${behind}` };
  return { tone: "good", text: `Everything agrees.${behind}` };
}

/** What became of the repair of a run, or may become. */
export function repairWord({ repair, differences }) {
  switch (repair?.state) {
    case "possible":
      return "possible";
    case "running":
      return "is running";
    case "done":
      return `${counted(repair.events ?? 0, "event")} made`;
    case "failed":
      return "failed";
    default:
      return differences > 0 ? "not by events, or looked at again since" : "none needed";
  }
}
