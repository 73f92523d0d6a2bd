/** What is used rarely: a file of its own (`dist/hud-more.js`), loaded when somebody needs it. It knows no page: data in, data out. */

export { readProfile } from "./wpa.ts";
