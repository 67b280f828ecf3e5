"""The site around the book: notebooks that run in the browser, and what goes with them.

``pins``      every file from elsewhere, with its hash
``fetch``     gets the pinned files into a cache, or says what is missing
``runtime``   the folder of Pyodide, and its lock, which names no other host
``offline``   a chapter's notebook without the cells that need PyTorch
``contents``  the notebooks that are offered: release copies and chapters
``lite``      builds JupyterLite from these into ``.site/lite``
``mathjax``   removes the parts of MathJax that no page asks for
``icons``     removes the drawings of Font Awesome that no page shows
``thebe``     removes what Jupyter Book adds for cells that run on a server
``citations``  gives the list of sources the roles of a list
``buttons``   the links on the pages
``pdf``       the whole book as one PDF, of the document that ``pdf_document`` makes
``repository``  refuses settings whose buttons would lead to a wrong place
``pack``      the whole site as one archive, with a server to look at it

``python -m course_site prepare`` builds ``.site/tree``; the extension then copies it into the
book, with the links to it, for as long as it fits what it was built from. Nothing of it needs
the built book, so a page is never written twice. ``pdf`` alone does: the pages link to it
once it is known that this machine can print, and ``make site`` prints right after the book.
"""

from course_site import buttons, citations, icons, lite, mathjax, repository, thebe


def setup(app):
    """Register the parts that work while the book is built; called by Sphinx."""
    for part in (lite, buttons, citations, mathjax, icons, repository, thebe):
        part.setup(app)
    app.add_js_file("scroll.js", loading_method="defer")
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
