// Whoever uses the keyboard must be able to stop at what scrolls. The theme sees to it for code
// and tables, but looks at them when the window changes, not when something unfolds; MathJax
// does it for formulas, and nobody for a plot that is wider than a phone.
const mark = () => {
  for (const box of document.querySelectorAll("div.cell_output")) {
    const scrolls =
      box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX === "auto";
    if (scrolls) {
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "A figure that scrolls sideways");
    } else {
      for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
    }
  }
};
const unfolded = () => setTimeout(() => dispatchEvent(new Event("resize")));
addEventListener("load", mark);
addEventListener("resize", mark);
document.addEventListener("toggle", unfolded, true); // <details>; it does not bubble
document.addEventListener("change", unfolded); // tabs
document.addEventListener("click", (event) => {
  if (event.target.closest(".toggle-button, .admonition-title")) unfolded();
});
