"""Pages in Chromium: what is asked for, icons, formulas, search and links."""

import gzip
import json
import re
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import watching
from watching import SITE

PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if path.relative_to(SITE).parts[0] not in ("lite", "_static", "_sources")
)
READY = """async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  return document.querySelectorAll("mjx-container").length;
}"""


def opened(page, address, name):
    """Open a page, wait for its formulas, and return their number."""
    page.goto(address + name, wait_until="load")
    formulas = page.evaluate(READY)
    page.wait_for_load_state("networkidle")
    return formulas


def clean(page):
    assert page.watch.errors == []
    assert page.watch.foreign == []


def transferred(page):
    """Return the bytes of all that a page has asked for, as they lie here and compressed.

    Pictures that wait until they are near the screen count too.
    """
    found = page.evaluate("[...document.images].map(image => image.currentSrc || image.src)")
    names = {unquote(urlsplit(url).path) for url in (*page.watch.asked, *found)}
    raw = packed = 0
    for name in names:
        path = SITE / name.removeprefix("/course/")
        if name.startswith("/course/") and path.is_file():
            data = path.read_bytes()
            raw += len(data)
            packed += min(len(gzip.compress(data, 6)), len(data))
    return raw, packed


def test_there_are_pages():
    assert len(PAGES) > 25
    assert "index.html" in PAGES
    assert "search.html" in PAGES


@pytest.mark.parametrize("name", ["book/attention.html", "book/decoder.html", "search.html"])
def test_the_icons_that_were_kept_are_drawn(name, page, address):
    opened(page, address, name)
    page.wait_for_function("document.querySelectorAll('svg.svg-inline--fa').length > 5")
    drawn = page.locator("svg.svg-inline--fa")
    names = set(drawn.evaluate_all("all => all.map(svg => svg.dataset.icon)"))
    assert {"magnifying-glass", "sun", "moon", "bars"} <= names
    assert drawn.evaluate_all("all => all.filter(svg => !svg.querySelector('path'))") == []
    # What stands in for an icon that is not there moves.
    assert page.locator("svg.svg-inline--fa animate").count() == 0
    assert page.locator("i[class*=' fa-']").count() == 0


def test_the_first_page_leads_to_the_book(page, address):
    page.goto(address)
    page.wait_for_url("**/book/intro.html")
    page.wait_for_load_state("networkidle")
    clean(page)


def test_the_watch_sees_a_failed_and_a_foreign_request(page, address, instead):
    instead["/course/bad.html"] = b"""<!doctype html><link rel="icon" href="data:,">
      <script src="missing.js"></script><script>console.error("said so"); undefined.x</script>
      <img src="http://example.org/x.png">"""
    page.goto(f"{address}bad.html", wait_until="load")
    page.wait_for_load_state("networkidle")
    assert page.watch.foreign == ["http://example.org/x.png"]
    seen = " ".join(page.watch.errors)
    for part in ("404", "missing.js", "said so", "undefined", "failed http://example.org"):
        assert part in seen


@pytest.mark.parametrize("renderer", ["CHTML", "SVG"])
def test_formulas_are_drawn_and_explored_with_what_the_site_has(renderer, page, address):
    """MathJax was cut: the settings of a formula's menu must find what they load."""
    settings = json.dumps({"renderer": renderer, "explorer": True, "speech": True})
    page.add_init_script(f"localStorage.setItem('MathJax-Menu-Settings', '{settings}')")
    assert opened(page, address, "book/lstm.html") > 50
    assert page.locator(f"mjx-container[jax={renderer}]").count() > 50
    assert page.locator("mjx-merror").count() == 0
    page.locator("mjx-container[tabindex]").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_load_state("networkidle")
    asked = " ".join(page.watch.asked)
    assert "a11y/explorer.js" in asked
    assert "sre/mathmaps/en.json" in asked
    clean(page)


def test_formulas_have_a_form_for_screen_readers(page, address):
    formulas = opened(page, address, "book/attention.html")
    assert page.locator("mjx-container mjx-assistive-mml math").count() == formulas > 50


@pytest.mark.parametrize(
    ("words", "target"),
    [("softmax", "attention"), ("forget gate", "lstm"), ("causal mask", "masks")],
)
def test_the_search_finds_the_chapter(words, target, page, address):
    page.goto(f"{address}search.html?q={words.replace(' ', '+')}")
    links = page.locator("#search-results ul.search li a")
    links.first.wait_for()
    page.wait_for_function("!document.querySelector('#search-progress')?.innerText")
    found = {link.get_attribute("href").partition("#")[0] for link in links.all()}
    wanted = f"book/{target}.html"
    link = next(href for href in found if href.partition("?")[0] == wanted)
    page.goto(address + link)
    assert page.locator("article h1").count() == 1
    clean(page)


def test_next_leads_through_the_whole_book_and_previous_back(chromium, address):
    """Both are plain links, which work without JavaScript too."""
    with watching.opened(chromium, address, java_script_enabled=False) as page:

        def follow(link):
            target = urljoin(page.url, page.locator(link).get_attribute("href"))
            page.goto(target, wait_until="domcontentloaded")
            return page.url

        page.goto(f"{address}book/intro.html")
        seen = [page.url]
        while page.locator("a.right-next").count():
            seen.append(follow("a.right-next"))
        chapters = [name for name in PAGES if name.startswith("book/")]
        assert sorted(seen) == sorted(address + name for name in chapters)
        assert [follow("a.left-prev") for _ in seen[1:]] == seen[-2::-1]
        scripts = re.compile(r"failed \S+\.js(\?\S*)?")  # not asked for
        assert [e for e in page.watch.errors if not scripts.fullmatch(e)] == []
        assert page.watch.foreign == []


def test_without_javascript_a_page_can_be_read(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}book/attention.html")
    assert "softmax" in page.locator("article").inner_text()
    assert page.locator("article img").first.is_visible()
    context.close()
