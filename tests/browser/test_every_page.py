"""Every page: it loads without error, asks nobody else, and stands before axe-core.

Light and dark, on a desktop and on a phone; and the keyboard. A page is laid open first, since
axe sees nothing of what is folded. ``_build/axe.md`` is the report: the violations of each page
by weight. Serious and critical ones fail the test. The notebooks under ``lite`` are
JupyterLite's own pages and are not looked at.
"""

import contextlib
import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from test_pages import PAGES, READY, clean, transferred
from watching import SITE, opened

THEMES = ("light", "dark")
WIDTHS = (1280, 390)
HEIGHT = 900
WEIGHTS = ("critical", "serious", "moderate", "minor")
SETTLED = 500  # milliseconds; the theme looks at what scrolls 300 after a change
REPORT = SITE.parent / "axe"
# Formulas and coloured code are tens of thousands of elements, alike on all pages: code loses
# its colours, and a formula becomes a box of its size, with its words for screen readers. One
# page is looked at with all of it. Of the rows of tables that are alike three stay.
SIMPLIFY = """() => {
  for (const code of document.querySelectorAll("pre")) code.textContent = code.textContent;
  for (const formula of document.querySelectorAll("mjx-math")) {
    const { width, height } = formula.getBoundingClientRect();
    formula.replaceChildren();
    formula.style.cssText = `display: inline-block; width: ${width}px; height: ${height}px`;
  }
  for (const math of document.querySelectorAll("math")) math.textContent = math.textContent;
  const seen = {};
  for (const row of document.querySelectorAll("tbody > tr")) {
    const parts = [row, ...row.querySelectorAll("*")];
    const shape = parts.map((part) => `${part.localName} ${part.getAttribute("class")}`);
    seen[shape] = (seen[shape] ?? 0) + 1;
    if (seen[shape] > 3) row.remove();
  }
}"""
LAY_OPEN = """() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const folded of document.querySelectorAll(".toggle-hidden"))
    folded.querySelector("button.toggle-button")?.click();
}"""
# What a visible focus changes; none of it is inherited.
FOCUS = """() => {
  const element = document.activeElement;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return {
    what: element.outerHTML.slice(0, 120),
    body: element === document.body,
    seen: box.width > 0 && box.height > 0,
    outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
    shadow: style.boxShadow !== "none",
  };
}"""


@contextlib.contextmanager
def shown(chromium, address, name, theme):
    """Open a page in a theme, as a reader who has chosen it, and lay it open."""
    size = {"width": WIDTHS[0], "height": HEIGHT}
    with opened(chromium, address, color_scheme=theme, viewport=size) as page:
        for key in ("mode", "theme"):
            page.add_init_script(f"localStorage.setItem('{key}', '{theme}')")
        page.goto(address + name, wait_until="load")
        page.evaluate(READY)
        page.evaluate(LAY_OPEN)
        page.wait_for_timeout(SETTLED)
        yield page


def choose(page, theme):
    """Choose a theme as a reader does, by the button, which goes round all three modes."""
    for _ in range(3):
        if page.evaluate("document.documentElement.dataset.theme") != theme:
            page.evaluate("document.querySelector('.theme-switch-button').click()")
    assert page.evaluate("document.documentElement.dataset.theme") == theme


def violations(page):
    """Return what axe-core finds: rule, weight, and the places as selector and reason."""
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        {
            "rule": rule["id"],
            "weight": rule["impact"] or "minor",
            "places": [(node["target"][0], node["failureSummary"]) for node in rule["nodes"]],
        }
        for rule in found
    ]


def look(page):
    """Return the violations of a page, by theme and width."""
    found = {}
    page.evaluate(SIMPLIFY)
    for theme in THEMES:
        choose(page, theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.wait_for_timeout(SETTLED)
            found[f"{theme} {width}"] = violations(page)
    return found


def write_report(name, found):
    """Keep the page's findings, and write the report of all pages that were looked at."""
    REPORT.mkdir(exist_ok=True)
    (REPORT / f"{name.replace('/', '-')}.json").write_text(json.dumps(found), encoding="utf-8")
    lines = ["| Page | " + " | ".join(WEIGHTS) + " | Rules |", "|---" * 6 + "|"]
    for page in PAGES:
        path = REPORT / f"{page.replace('/', '-')}.json"
        if path.is_file():
            rules = [r for view in json.loads(path.read_text()).values() for r in view]
            counts = [sum(len(r["places"]) for r in rules if r["weight"] == w) for w in WEIGHTS]
            names = ", ".join(sorted({r["rule"] for r in rules}))
            lines.append(f"| {page} | " + " | ".join(map(str, counts)) + f" | {names} |")
    part = REPORT.with_suffix(".part")
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    part.replace(REPORT.with_suffix(".md"))
    return lines


def grave(found):
    """Return the violations that may not be, as lines."""
    return [
        f"{view}: {rule['rule']} at {place}: {reason}"
        for view, rules in found.items()
        for rule in rules
        if rule["weight"] in ("critical", "serious")
        for place, reason in rule["places"][:5]
    ]


@pytest.fixture(scope="module", params=[name for name in PAGES if name != "index.html"])
def one_page(request, chromium, address):
    """Return the name of a page, and the page as it is when it has been laid open."""
    with shown(chromium, address, request.param, THEMES[0]) as page:
        yield request.param, page


def test_a_page_loads_without_error_and_asks_nobody_else(one_page):
    name, page = one_page
    page.wait_for_load_state("networkidle")
    assert len(page.watch.asked) > 5
    clean(page)
    raw, packed = transferred(page)
    print(f"{name}: {raw / 1e6:.2f} MB, compressed {packed / 1e6:.2f} MB")
    assert raw > 1e5
    assert raw < 3.5e6
    assert packed < 1.5e6


def test_a_page_has_no_grave_violation(one_page):
    name, page = one_page
    found = look(page)
    assert len(found) == len(THEMES) * len(WIDTHS)
    lines = write_report(name, found)
    print(next(line for line in lines if line.startswith(f"| {name} ")))
    assert grave(found) == []


@pytest.mark.parametrize("theme", THEMES)
def test_formulas_and_code_have_no_grave_violation(theme, chromium, address):
    with shown(chromium, address, "book/norm.html", theme) as page:
        assert page.locator("mjx-math").count() > 50
        assert page.locator("pre > span").count() > 1000
        assert grave({theme: violations(page)}) == []


def test_axe_sees_what_is_wrong(chromium, address, instead):
    instead["/course/bad.html"] = b"""<!doctype html><html lang="en"><title>x</title><main>
      <h1>x</h1><img src="data:,"><button></button>
      <p style="color:#999;background:#fff">pale</p>
      <details><summary>folded</summary><p style="color:#aaa;background:#fff">pale</p></details>
      <div style="overflow:auto;width:50px"><pre>a long line that must be scrolled</pre></div>
      </main></html>"""
    with shown(chromium, address, "bad.html", "light") as page:
        found = {rule["rule"]: rule for rule in violations(page)}
    assert {"image-alt", "color-contrast", "button-name"} <= found.keys()
    assert len(found["color-contrast"]["places"]) == 2  # the folded one too
    assert "scrollable-region-focusable" in found
    assert len(grave({"light 1280": list(found.values())})) >= 5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["book/masks.html", "book/intro.html"])
def test_the_keyboard_shows_where_it_is(name, theme, chromium, address):
    lost, visited = [], 0
    with shown(chromium, address, name, theme) as page:
        for _ in range(150):
            page.keyboard.press("Tab")
            focus = page.evaluate(FOCUS)
            if focus["body"]:
                break
            visited += 1
            if focus["seen"] and not (focus["outline"] or focus["shadow"]):
                lost.append(focus["what"])
    assert visited > 40
    assert lost == []
