"""Links to edit a page lead to a file of the repository; what would lead astray is refused."""

import re
from pathlib import Path

import pytest
import yaml
from course_book import data
from course_site import repository
from sphinx.errors import ConfigError
from test_book_build import book, build  # noqa: F401, the first is a fixture

URL = "https://github.com/somebody/course"


def settings(buttons=(), launch=None, **given):
    """Return settings as `_config.yml` has them."""
    html = dict.fromkeys(buttons, True)
    return {"title": "x", "html": html, "repository": given, "launch_buttons": launch}


def test_the_settings_of_the_course_are_fine():
    text = (data.ROOT / "_config.yml").read_text(encoding="utf-8")
    repository.check(yaml.safe_load(text))


def test_a_repository_with_its_branch_is_fine():
    repository.check(settings(["use_edit_page_button"], url=URL, branch="main"))
    repository.check(settings(["use_issues_button"], url=URL, branch="x", path_to_book="teach"))
    repository.check(settings(launch={"notebook_interface": "jupyterlab", "colab_url": ""}))
    repository.check({"title": "x"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (settings(["use_edit_page_button"]), "repository.url must be set for html.use_edit"),
        (settings(["use_issues_button"], branch="main"), "repository.url must be set"),
        (settings(url=URL), "repository.branch must be set"),
        (settings(url=URL, branch="main", path_to_book="book/"), "path_to_book must be"),
        (settings(url=URL, branch="main", path_to_book="teach/book"), "got teach/book"),
        (settings(launch={"colab_url": "https://colab"}), "launch_buttons.colab_url must be"),
        (settings(launch={"thebe": True}), "launch_buttons.thebe must be left out, got True"),
        (settings(launch={"binderhub_url": "https://mybinder"}), "binderhub_url must be"),
    ],
)
def test_what_would_lead_astray_is_refused(given, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        repository.check(given)


def change(book, *pairs):  # noqa: F811
    path = book / "_config.yml"
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def links(book):  # noqa: F811
    """Return the addresses outside of the site, page by page."""
    found = {}
    for path in (book / "_build" / "html" / "book").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        found[path.stem] = re.findall(r'<a href="(https?://github[^"]*)"', text)
    return found


@pytest.mark.slow
def test_buttons_lead_to_files_of_the_repository_and_only_where_one_is_named(book):  # noqa: F811
    status, printed = build(book)
    assert status == 0, printed
    assert not any(links(book).values())

    buttons = "".join(f"\n  {name}: true" for name in repository.LINKS)
    change(book, ("\nhtml:", f"\nrepository:\n  url: {URL}\n  branch: main\nhtml:{buttons}"))
    status, printed = build(book)
    assert status == 0, printed
    found = links(book)
    assert set(found) == {"intro", "demo", "equations", "claims"}
    for name, addresses in found.items():
        (edit,) = [a for a in addresses if "/edit/" in a]
        assert edit.startswith(f"{URL}/edit/main/")
        assert (book / Path(edit.removeprefix(f"{URL}/edit/main/"))).is_file(), name
        assert URL in addresses
        assert any(a.startswith(f"{URL}/issues/new?") for a in addresses)

    change(book, ("\n  branch: main", ""))
    status, printed = build(book)
    assert status != 0
    assert "repository.branch must be set" in printed
