// Light, dark, or as the system says. Runs before the first paint (see index.html), so it is a
// classic script and keeps its names to itself.
(() => {
  const KEY = "tidings-theme";
  const ORDER = ["auto", "light", "dark"];
  const WORDS = { auto: "Auto", light: "Light", dark: "Dark" };

  // Storage may be refused (private windows, policies): then the choice lives as long as the page.
  const remembered = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };
  const remember = (theme) => {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      /* nothing to do: see above */
    }
  };

  let theme = ORDER.includes(remembered()) ? remembered() : "auto";
  const apply = () => {
    // CSS reads this attribute into `color-scheme`; every colour is a light-dark() pair of it.
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) {
      button.firstElementChild.textContent = WORDS[theme];
      button.setAttribute("aria-label", `Theme: ${WORDS[theme].toLowerCase()}. Change`);
      button.title = "Theme: auto, light, dark";
    }
  };

  apply();
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
      remember(theme);
      apply();
    });
  });
})();
