// Asks again and again, politely: never two requests at once, nothing while the tab is hidden,
// nothing while the server is away (connection.js knocks for everybody).

import { Problem, Unreachable } from "./api.js";
import { connection, isLost } from "./connection.js";

/** What a task answers when there is nothing more to ask; a problem says so by `isLast`. */
export const DONE = Symbol("done");

// After a problem answer (busy, internal) the server gets a rest.
const REST_MS = 3000;

/**
 * Runs `task(signal)` every `everyMs` until the returned function is called, or the task answers `DONE`.
 * `onProblem(problem or null)` hears of problem answers, and of their end.
 */
export function poll(everyMs, task, onProblem) {
  const leaving = new AbortController();
  let timer = 0;
  let running = false;

  async function turn() {
    clearTimeout(timer);
    if (running || leaving.signal.aborted || document.hidden || isLost()) return;
    running = true;
    const startedAt = performance.now();
    let gapMs = everyMs;
    try {
      const answer = await task(leaving.signal);
      onProblem(null);
      if (answer === DONE) leaving.abort();
    } catch (error) {
      if (leaving.signal.aborted) return;
      if (error instanceof Problem) {
        onProblem(error);
        gapMs = REST_MS;
        if (error.isLast) leaving.abort();
      } else if (!(error instanceof Unreachable)) {
        throw error;
      }
    } finally {
      running = false;
    }
    if (leaving.signal.aborted) return;
    timer = setTimeout(turn, Math.max(0, gapMs - (performance.now() - startedAt)));
  }

  connection.addEventListener("found", turn, { signal: leaving.signal });
  document.addEventListener("visibilitychange", turn, { signal: leaving.signal });
  turn();
  return () => {
    leaving.abort();
    clearTimeout(timer);
  };
}
