"""Diagrams of the Transformer: a layer in its two forms, and a model that predicts tokens."""

from seqlib.experiments.diagrams.sheet import Sheet
from seqlib.experiments.style import GREEN, ORANGE

WORDS = ("the", "cat", "sat", "down", ".")


def layers():
    """Draw equations (17) and (18) side by side."""
    sheet = Sheet(440, 502)
    for middle, form in ((112, "post"), (332, "pre")):
        sheet.label(middle, 488, f"{form}-norm")
        value = sheet.value(middle, 20, "$X$")
        for base, name, number, out in ((0, "MHA", 1, "$Z$"), (216, "MLP", 2, "$X'$")):
            side = middle - 78
            value = _residual(
                sheet, value, form, base, side, name, rf"$\mathrm{{Norm}}_{number}$", out
            )
    return sheet


def _residual(sheet, value, form, base, side, name, norm_name, out):
    """Draw one part of a layer with its residual and its norm; return its output."""
    middle = value.x
    rows = {
        "pre": (base + 82, base + 130, base + 178),
        "post": (base + 178, base + 82, base + 130),
    }
    norm_row, part_row, add_row = rows[form]
    norm = sheet.norm(middle, norm_row, norm_name)
    part = sheet.map(middle, part_row, name, 76)
    add = sheet.op(middle, add_row, "$+$")
    result = sheet.value(middle, base + 236, out)
    corners = (middle, base + 50), (side, base + 50), (side, add.y)
    sheet.arrow(value.top(), *corners, end=add.left(), color=GREEN, thick=True)
    branch = value.at(middle, base + 50)
    if form == "pre":
        sheet.arrow(branch, end=norm.bottom())
        sheet.arrow(norm.top(), end=part.bottom())
        sheet.arrow(part.top(), end=add.bottom())
        sheet.arrow(add.top(), end=result.bottom(), color=GREEN, thick=True)
    else:
        sheet.arrow(branch, end=part.bottom())
        sheet.arrow(part.top(), end=add.bottom())
        sheet.arrow(add.top(), end=norm.bottom())
        sheet.arrow(norm.top(), end=result.bottom())
    return result


def decoder(T=4):
    """Draw a language model and its targets, one place further than what it reads."""
    sheet = Sheet(440, 608)
    columns = [66 + 84 * t for t in range(T)]
    middle, width = (columns[0] + columns[-1]) / 2, 84 * (T - 1) + 62
    numbers = range(1, T + 1)
    read = [sheet.value(x, 44, f"$t_{t}$") for t, x in zip(numbers, columns, strict=True)]
    table = sheet.map(middle, 98, "$E$", width)
    add, positions = sheet.op(middle, 148, "$+$", width), sheet.map(412, 148, "$P$", 36)
    x = [sheet.value(x, 210, f"$x_{t}$") for t, x in zip(numbers, columns, strict=True)]
    y = [sheet.value(x, 304, f"$x'_{t}$") for t, x in zip(numbers, columns, strict=True)]
    sheet.frame(columns[0] - 34, 182, columns[-1] + 34, 332)
    sheet.label(columns[-1] + 42, 257, "$L$ layers", align="left")
    norm = sheet.norm(middle, 366, "Norm", width)
    logits, soft = (
        sheet.map(middle, 416, r"$E^\top$", width),
        sheet.op(middle, 466, "softmax", width),
    )
    sheet.arrow(positions.left(), end=add.right())
    for t, column in enumerate(columns):
        shift = column - middle
        sheet.label(column, 16, WORDS[t])
        sheet.label(column, 594, WORDS[t + 1])
        loss = sheet.op(column, 516, "loss", 50)
        target = sheet.value(column, 566, f"$t_{t + 2}$", color=ORANGE)
        sheet.arrow(read[t].top(), end=table.bottom(shift))
        sheet.arrow(table.top(shift), end=add.bottom(shift))
        sheet.arrow(add.top(shift), end=x[t].bottom())
        for seen in range(t + 1):
            sheet.arrow(x[seen].top(), end=y[t].bottom(), color=GREEN)
        sheet.arrow(y[t].top(), end=norm.bottom(shift))
        sheet.arrow(norm.top(shift), end=logits.bottom(shift))
        sheet.arrow(logits.top(shift), end=soft.bottom(shift))
        sheet.arrow(soft.top(shift), end=loss.bottom())
        sheet.arrow(target.bottom(), end=loss.top(), color=ORANGE, dashed=True)
    sheet.label(columns[-1] + 42, 44, "read", align="left")
    sheet.label(columns[-1] + 42, 566, "targets", align="left")
    return sheet
