"""A feedback page that asks no host for anything.

nbgrader's page loads MathJax from a public server, and pictures from wherever the text says;
whoever runs these servers learns who reads which page. Here formulas stay as they were typed,
and a picture that lies elsewhere becomes a link. The page itself tells the browser to fetch
and to run nothing, for what may have been overlooked.
"""

import re

from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'"
# What asks for a file by its presence; HTML that a student wrote is no HTML by now
# (seqlib.grading.notebook.present), so these are nbgrader's and the instructor's.
_ASKING = ("script", "link", "iframe", "object", "embed", "base", "audio", "video")
_ELSEWHERE = re.compile(r"(?:https?:)?//", re.IGNORECASE)


class FeedbackExporter(HTMLExporter):
    """nbgrader's feedback page, self-contained; for ``GenerateFeedback.exporter_class``."""

    def from_notebook_node(self, nb, resources=None, **options):
        """Return the page of a graded notebook, and the resources."""
        page, resources = super().from_notebook_node(nb, resources, **options)
        return self_contained(page), resources


def self_contained(page):
    """Return an HTML page without what a browser would fetch or run.

    Parameters
    ----------
    page : str
        The page, with a head.

    Returns
    -------
    str
    """
    soup = BeautifulSoup(page, "html.parser")
    for tag in soup.find_all(_ASKING):
        tag.decompose()
    for image in soup.find_all("img"):
        place = image.get("src", "").strip()
        if place.startswith("data:image/"):
            del image["srcset"]
            continue
        said = image.get("alt") or place
        image.replace_with(_link(soup, place, said) if _ELSEWHERE.match(place) else said)
    policy = {"http-equiv": "Content-Security-Policy", "content": POLICY}
    soup.head.insert(0, soup.new_tag("meta", attrs=policy))
    return str(soup)


def _link(soup, place, said):
    link = soup.new_tag("a", href=place)
    link.string = said
    return link
