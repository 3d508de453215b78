// A list of users that is paged by cursor: stable while people follow and unfollow.

import { get } from "./api.js";
import { h, once, say, setText } from "./dom.js";
import { count, counted } from "./format.js";
import { alertPlace } from "./problem.js";
import { route } from "./router.js";
import { timeElement } from "./time.js";

const PAGE = 20;

/**
 * A section with the list and a button for the next page. `total`: what the counter says, where
 * there is one. `when`: the head of the time column, where items carry `followed_at`.
 */
export function userList({ title, id, path, query = {}, total, when, signal }) {
  const rows = h("tbody", {});
  const shown = h("p", { class: "fine" });
  const more = h(
    "button",
    { type: "button", class: "wide", hidden: true, on: { click: () => once(more, () => next(true)) } },
    "Show more",
  );
  const alert = alertPlace();
  const columns = ["Handle", "Id", ...(when ? [when] : [])].map((head) => h("th", { scope: "col" }, head));
  const table = h("table", { class: "people" }, h("thead", {}, h("tr", {}, columns)), rows);
  let cursor;

  async function next(byHand) {
    alert.put(null);
    try {
      const page = await get(path, { ...query, limit: PAGE, cursor }, { signal });
      const fresh = page.items.map((item) => row(item, when));
      rows.append(...fresh);
      cursor = page.next_cursor;
      more.hidden = !cursor;
      tell();
      if (!byHand) return;
      say(`${counted(page.items.length, "more user")} in ${title}`);
      // The button is gone after the last page: the focus goes on where the reading does.
      if (more.hidden) fresh[0]?.querySelector("a").focus();
    } catch (error) {
      if (signal.aborted) return;
      alert.put(error);
      more.hidden = false;
    }
  }

  function tell() {
    const here = rows.childElementCount;
    table.hidden = here === 0;
    if (here === 0) setText(shown, "Nobody");
    // At the end the list is what it is; the counter may have moved on since it was read.
    else if (!cursor) setText(shown, counted(here, "user"));
    else setText(shown, total === undefined ? `${count(here)} shown` : `${count(here)} of ${count(total)} shown`);
  }

  next(false);
  return h(
    "section",
    { class: "user-list", id, "aria-labelledby": `${id}-title` },
    h("div", { class: "list-head" }, h("h3", { id: `${id}-title` }, title), shown),
    table,
    alert.element,
    more,
  );
}

function row(item, when) {
  return h(
    "tr",
    {},
    h("td", {}, h("a", { href: route("users", item.user_id) }, item.handle)),
    h("td", { class: "number" }, item.user_id),
    when && h("td", {}, timeElement(item.followed_at)),
  );
}
