"""Built pages on a phone and on a tablet, in a browser: formulas fit or scroll.

Wide formulas of other books were cut off on small screens (jupyter-book/jupyter-book#986). The
pages here are those with the widest formulas and tables. `make slow` builds the book first.
"""

import html
import json
import re
import shutil
import subprocess

import pytest
from course_book import data

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SITE = data.ROOT / "_build" / "html" / "book"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
]
# Written into the page: it waits for the formulas and leaves its findings in the document.
PROBE = """<script>
function scrolls(element) {
  for (let e = element; e && e !== document.body; e = e.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(e).overflowX)) return true;
  return false;
}
addEventListener("load", () => MathJax.startup.promise.then(() => {
  const edge = document.documentElement.clientWidth;
  const all = [...document.querySelectorAll("article mjx-container")];
  const wide = all.filter(e => e.getBoundingClientRect().right > edge + 1);
  const found = {
    edge: edge,
    formulas: all.length,
    page: document.documentElement.scrollWidth,
    beyond: [...document.querySelectorAll("article *")]
      .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1 && !scrolls(e))
      .map(e => `${e.tagName} ${e.textContent.trim().slice(0, 40)}`),
    wide: wide.length,
    lost: wide.filter(e => !scrolls(e)).map(e => e.textContent.slice(0, 60)),
  };
  document.documentElement.setAttribute("data-found", JSON.stringify(found));
}));
</script></head>"""


def look(page, width, tmp_path):
    """Open a page in a frame of the given width and return what the probe finds."""
    text = page.read_text(encoding="utf-8")
    assert text.count("</head>") == 1
    probed = page.with_name(f".probe-{page.stem}-{width}.html")
    outer = page.with_name(f".frame-{page.stem}-{width}.html")
    # A window of Chromium is at least 500 wide; a frame may be of any width.
    frame = f'<iframe id="f" src="{probed.name}" width="{width}" height="800"></iframe>'
    copy = """<script>
    const wait = setInterval(() => {
      const inner = document.getElementById("f").contentDocument;
      const found = inner && inner.documentElement.getAttribute("data-found");
      if (!found) return;
      document.documentElement.setAttribute("data-found", found);
      clearInterval(wait);
    }, 50);
    </script>"""
    try:
        probed.write_text(text.replace("</head>", PROBE), encoding="utf-8")
        outer.write_text(f"<html><body>{frame}{copy}</body></html>", encoding="utf-8")
        done = subprocess.run(
            [
                *(
                    CHROMIUM,
                    "--headless=new",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--hide-scrollbars",
                ),
                *("--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}"),
                *("--virtual-time-budget=30000", "--dump-dom", outer.as_uri()),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        probed.unlink(missing_ok=True)
        outer.unlink(missing_ok=True)
    match = re.search(r'data-found="([^"]*)"', done.stdout)
    assert match, done.stderr[-2000:]
    return json.loads(html.unescape(match[1]))


@pytest.mark.parametrize("width", [360, 768])
@pytest.mark.parametrize("name", ["bptt", "lstm", "multihead", "positions", "equations"])
def test_formulas_fit_or_scroll(name, width, tmp_path):
    found = look(SITE / f"{name}.html", width, tmp_path)
    assert found["edge"] == width
    assert found["formulas"] > 10
    assert found["page"] <= found["edge"], found["beyond"][-1:]
    assert found["lost"] == []


def test_a_formula_that_is_cut_off_is_found(tmp_path):
    cut = "<style>article *, article { overflow: visible !important }</style></head>"
    page = SITE / ".probe-cut.html"
    try:
        text = (SITE / "lstm.html").read_text(encoding="utf-8")
        page.write_text(text.replace("</head>", cut), encoding="utf-8")
        found = look(page, 360, tmp_path)
    finally:
        page.unlink(missing_ok=True)
    assert found["lost"]
