// Counts the questions whose first opened choice was right. Everything else works without it.
for (const test of document.querySelectorAll(".selftest")) {
  const questions = [...test.querySelectorAll(":scope > ol > li")];
  const first = new Map(); // question -> whether its first opened choice was right
  const count = document.createElement("p");
  count.className = "selftest-count";
  count.setAttribute("role", "status");
  test.append(count);
  for (const question of questions) {
    for (const choice of question.querySelectorAll(".selftest-choice")) {
      choice.addEventListener("toggle", () => {
        if (!choice.open || first.has(question)) return;
        first.set(question, choice.hasAttribute("data-right"));
        const right = [...first.values()].filter(Boolean).length;
        count.textContent =
          `${first.size} of ${questions.length} answered, ${right} right at the first try.`;
      });
    }
  }
}
