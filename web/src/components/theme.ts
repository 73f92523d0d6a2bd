/** Light, dark, or as the system says. */

import { h } from "../lib/dom.ts";

const THEMES = ["auto", "light", "dark"] as const;
const KEY = "etwhy-theme";

/** A button that goes through the themes. What was chosen is kept where the browser allows it. */
export function themeButton(): HTMLElement {
  let theme: (typeof THEMES)[number] = "auto";
  try {
    theme = THEMES.find((one) => one === localStorage.getItem(KEY)) ?? "auto";
  } catch {
    // Files may have no storage.
  }
  const button = h("button", {
    type: "button",
    class: "quiet theme",
    onclick: () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // As above.
      }
      show();
    },
  });
  const show = () => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    button.textContent = `Theme: ${theme}`;
  };
  show();
  return button;
}
