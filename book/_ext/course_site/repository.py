"""Settings of a repository and of launch buttons lead somewhere, or are refused.

Jupyter Book fills in what is left out: its own repository, and the branch ``master``. Links to
edit a page would then lead to a wrong place, as in many books (jupyter-book/jupyter-book#722).
"""

from pathlib import Path

import yaml
from sphinx.errors import ConfigError

LINKS = ("use_repository_button", "use_edit_page_button", "use_issues_button")
# Jupyter Book also takes a notebook interface there, which is no button.
SERVICES = ("binderhub_url", "jupyterhub_url", "thebe", "colab_url", "deepnote_url")


def check(settings):
    """Raise unless the buttons that the settings ask for lead to what they name.

    Parameters
    ----------
    settings : dict
        Content of ``_config.yml``.

    Raises
    ------
    ConfigError
        If a link to the repository lacks its address or branch, if the path to the book would
        name the folder ``book`` twice, or if a launch button is asked for.
    """
    repository = settings.get("repository") or {}
    asked = [name for name in LINKS if (settings.get("html") or {}).get(name)]
    if asked and not repository.get("url"):
        raise ConfigError(
            f"repository.url must be set for html.{asked[0]}, got nothing; "
            "say for example https://github.com/NAME/REPOSITORY"
        )
    if repository.get("url") and not repository.get("branch"):
        raise ConfigError(
            "repository.branch must be set with repository.url, got nothing; it would be "
            "master, say for example main"
        )
    path = str(repository.get("path_to_book") or "").strip("/")
    if path.rpartition("/")[2] == "book":
        raise ConfigError(
            f"repository.path_to_book must be the folder that _config.yml is in, got {path}; "
            "the folder book is part of each page's name"
        )
    launch = settings.get("launch_buttons") or {}
    for service in SERVICES:
        if launch.get(service):
            raise ConfigError(
                f"launch_buttons.{service} must be left out, got {launch[service]}; the pages "
                "are Markdown, which it does not run; `make site` offers them as notebooks "
                "that run in the reader's browser"
            )


def _check(app, _config):
    path = Path(app.confdir) / "_config.yml"
    if path.is_file():
        check(yaml.safe_load(path.read_text(encoding="utf-8")) or {})


def setup(app):
    """Check before a page is read."""
    app.connect("config-inited", _check)
