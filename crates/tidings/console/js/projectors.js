// The names of the projectors, for forms that ask which one.

import { get } from "./api.js";

/** Without the generations that are being built: those have an `@` in their name. */
export async function projectorNames(signal) {
  const { stages } = await get("/v1/admin/flow", {}, { signal });
  const names = stages.filter((stage) => stage.stage === "projector").map((stage) => stage.name);
  return names.filter((name) => !name.includes("@"));
}
