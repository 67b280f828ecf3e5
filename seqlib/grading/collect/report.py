"""What a run of collecting came to, in words."""

from collections import Counter

from seqlib.grading.collect.names import shown

MANY = 20  # lines of one kind; the rest is in the JSON


def report_lines(report):
    """Return a :class:`seqlib.grading.collect.run.Report` as lines of text."""
    counts = [
        (len(report.collected), "new"),
        (len(report.replaced), "newer than before"),
        (len(report.retimed), "the same with a new time"),
        (len(report.unchanged), "unchanged"),
        (len(report.older), "older than what is there"),
    ]
    said = ", ".join(f"{number} {what}" for number, what in counts if number) or "nothing"
    lines = [f"{report.assignment}, from {report.platform}: {said}"]
    lines += _people("Late by the platform's mark", report.late)
    lines += _people("Without a time of submission, so no late penalty", report.without_time)
    lines += _people("Handed in something, but no notebook", report.without_notebook)
    lines += _people("Missing", report.missing)
    lines += _list(
        "Several submissions, the newest taken",
        [f"{student}: {', '.join(places)}" for student, places in report.doubled.items()],
    )
    lines += _list("Belongs to nobody", map(_place, report.unmatched))
    lines += _list("Not read", map(_place, report.refused))
    if report.stray:
        reasons = Counter(entry["reason"] for entry in report.stray)
        each = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))
        lines.append(f"Files that are no work: {each}")
    lines += _list("Notes", report.notes)
    return lines


def _people(title, students):
    if not students:
        return []
    more = f" and {len(students) - MANY} more" if len(students) > MANY else ""
    return [f"{title} ({len(students)}): {', '.join(students[:MANY])}{more}"]


def _list(title, entries):
    entries = list(entries)
    if not entries:
        return []
    lines = [f"{title} ({len(entries)}):", *(f"  {shown(e, 400)}" for e in entries[:MANY])]
    if len(entries) > MANY:
        lines.append(f"  and {len(entries) - MANY} more; --json lists all")
    return lines


def _place(entry):
    return f"{entry['where']}: {entry['reason']}"
