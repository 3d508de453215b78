// What an operator does about reconciliation: run one now, repair what one found.

import { post } from "./api.js";
import { confirm } from "./confirm.js";
import { h } from "./dom.js";
import { choiceField, typedField } from "./fields.js";
import { count, counted } from "./format.js";

const PATH = "/v1/admin/reconciliations";

/** Asks for a run over one of `names`, or all; `done(run)` when it has begun. */
export function runDialog({ names, done }) {
  const all = [["", "Every projector"], ...names.map((name) => [name, name])];
  const projector = choiceField({ id: "run-projector", label: "What is compared", options: all });
  return confirm({
    title: "Reconcile now?",
    about: h(
      "p",
      {},
      "Facts, log and projections are compared by counts and checksums, then row by row where those differ. It only " +
        "reads. Nothing is repaired before you say so, unless the configuration allows it within its bound.",
    ),
    fields: [projector],
    wanted: () => (projector.value ? `?projector=${encodeURIComponent(projector.value)}` : ""),
    button: "Reconcile",
    run: (query, _, key) => post(`${PATH}${query}`, undefined, { key }),
    done,
  });
}

/** Asks about repairing what a run found; `done(run)` when it is being repaired. */
export function repairDialog({ run, done }) {
  const kinds = run.checks.flatMap(({ check, kinds }) =>
    Object.entries(kinds ?? {}).map(([kind, many]) => [check, kind, many]),
  );
  const typed = typedField({ id: "repair-typed", word: "repair", what: "the word" });
  return confirm({
    title: `Repair ${counted(run.differences, "difference")}?`,
    about: [
      h("p", {}, "Facts are the truth: what follows from them is made to agree, by events that every projector sees."),
      h(
        "ul",
        { class: "plan", "aria-label": "What will be repaired" },
        kinds.map(([check, kind, many]) =>
          h("li", {}, h("span", {}, h("strong", {}, count(many)), ` ${kind}`), h("span", { class: "fine" }, check)),
        ),
      ),
      h("p", {}, "What came right meanwhile is left alone; what is only behind is not touched."),
    ],
    fields: [typed],
    button: "Repair",
    run: (_, __, key) => post(`${PATH}/${encodeURIComponent(run.id)}/repair`, undefined, { key }),
    done,
  });
}
