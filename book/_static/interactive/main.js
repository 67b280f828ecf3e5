// Brings the interactive figures of a page to life. Without this file, or where it fails, the
// page keeps the static ones.
import { mount } from "./mount.js";

for (const holder of document.querySelectorAll("[data-interactive]")) {
  import(`./${holder.dataset.interactive}.js`).then((module) => mount(holder, module.default));
}
