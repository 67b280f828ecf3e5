"""The page of claims: each sentence of the notes, and the verdict that a cell computed."""

from course_book import data
from course_book.data import GapError
from course_book.gaps import raise_gaps
from course_book.markdown import Generated

PAGE = "book/claims"


def table(claims):
    """Return the table of verdicts as MyST; the verdicts come from the page's cells."""
    lines = ["| Claim | The notes say | Verdict |", "|---|---|---|"]
    for claim in claims:
        verdict = f"{{glue:text}}`{claim.name}`" if claim.pending is None else "pending"
        lines.append(
            f"| {{ref}}`{claim.name} <claims-{claim.name.lower()}>` | {claim.quote} "
            f"| {verdict} |"
        )
    return "\n".join(lines)


def quotation(claim):
    """Return the sentence of the notes with its place, and why it is pending, as MyST."""
    text = f"> {claim.quote}\n>\n> Notes, {claim.notes}; chapter {{doc}}`/book/{claim.page}`."
    return text if claim.pending is None else f"{text}\n\n*Pending*: {claim.pending}"


def claim_gaps(claims, quoted):
    """Return what is wrong with the claims and with those that the page quotes.

    ``quoted`` holds the names in the order of the page.
    """
    names = [claim.name for claim in claims]
    return (
        [
            f"claim {name}: book/claims.md does not treat it"
            for name in names
            if name not in quoted
        ]
        + [f"claim {name}: quoted twice" for name in names if quoted.count(name) > 1]
        + [
            f"claim {claim.name}: pending without a reason"
            for claim in claims
            if claim.pending is not None and not claim.pending.strip()
        ]
    )


class ClaimsTable(Generated):
    """All claims with their verdicts."""

    depends_on = "claims.toml"

    def text(self):
        """Return the table."""
        return table(data.claims())


class ClaimQuote(Generated):
    """One claim, quoted; its cell follows on the page."""

    required_arguments = 1
    depends_on = "claims.toml"

    def text(self):
        """Return the quotation, and note that the page treats this claim."""
        name = self.arguments[0]
        rows = {claim.name: claim for claim in data.claims()}
        if name not in rows:
            raise GapError(f"{{claim}} {name}: not in book/data/claims.toml")
        self.env.metadata[self.env.docname].setdefault("claims", []).append(name)
        return quotation(rows[name])


def _check(_app, env):
    raise_gaps(claim_gaps(data.claims(), env.metadata[PAGE].get("claims", [])))


def setup(app):
    """Register the directives and the check that no claim is left out."""
    app.add_directive("claims-table", ClaimsTable)
    app.add_directive("claim", ClaimQuote)
    app.connect("env-check-consistency", _check)
