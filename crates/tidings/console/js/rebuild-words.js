// What a rebuild is doing, in words, and what may be done with it.

const STATES = {
  wished: "Asked for: a process that runs the projector begins within a second.",
  seeding: "Facts are copied, a chunk at a time.",
  applying: "Events are applied, until nothing is left.",
  checking: "What was built is compared with facts.",
  ready: "It is right, and waits for the switch.",
  failed: "It is not given to readers.",
  removing: "Readers have the new generation; the old one is removed in small steps.",
  cancelling: "It was given up; what was built is removed.",
  done: "Readers have it.",
  cancelled: "It was given up.",
};

const PAUSABLE = ["wished", "seeding", "applying", "checking", "ready", "failed"];
const SWITCHABLE = ["applying", "checking", "ready", "failed"];
const ENDED = ["done", "cancelled"];

/** One sentence on what happens meanwhile. */
export function doing({ state, paused, in_place }) {
  if (paused && !ENDED.includes(state)) return "It is held up, and goes on when you resume it.";
  if (in_place && state === "done") return "The events were applied once more.";
  return STATES[state] ?? "";
}

/** Whether nothing more is to come. */
export function hasEnded({ state }) {
  return ENDED.includes(state);
}

/** What it is called: the generation that is built, or the live one. */
export function nameOf({ projector, generation, in_place }) {
  return in_place ? `${projector}, in place` : `${projector}, generation ${generation}`;
}

/** The names of the actions that its state allows. The server decides; this only spares refusals. */
export function actsOf(rebuild) {
  if (hasEnded(rebuild)) return [];
  const { state, paused, in_place } = rebuild;
  return [
    PAUSABLE.includes(state) && !paused && state !== "failed" && "pause",
    (paused || state === "failed") && "resume",
    SWITCHABLE.includes(state) && !in_place && "switch",
    !["removing", "cancelling"].includes(state) && "cancel",
  ].filter(Boolean);
}
