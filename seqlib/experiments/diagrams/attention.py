"""Diagrams of attention: scaled dot product, with a mask, and several heads."""

from seqlib.experiments.diagrams.sheet import Sheet
from seqlib.experiments.style import BLUE, ORANGE


def attention(*, masked=False):
    """Draw equations (8) and (9), or (12) with a mask."""
    sheet = Sheet(340, 516 if masked else 470)
    x = sheet.value(170, 20, "$X$")
    parts = {}
    for column, name in ((70, "q"), (170, "k"), (270, "v")):
        weight = sheet.map(column, 84, f"$W^{{({name})}}$", 62)
        parts[name] = sheet.value(column, 140, f"${name.upper()}$")
        if name == "k":
            sheet.arrow(x.top(), end=weight.bottom())
        else:
            sheet.arrow(x.at(170, 48), (column, 48), end=weight.bottom())
        sheet.arrow(weight.top(), end=parts[name].bottom())
    sheet.label(194, 20, r"$n \times d$", align="left")
    product = sheet.op(120, 190, r"$Q K^\top$", 66)
    sheet.arrow(parts["q"].top(), (70, 190), end=product.left())
    sheet.arrow(parts["k"].top(), (170, 190), end=product.right())
    scaled = sheet.op(120, 238, r"$\div\,\sqrt{d_k}$", 66)
    sheet.arrow(product.top(), end=scaled.bottom())
    y = 284
    if masked:
        add, mask = sheet.op(120, y, "$+$"), sheet.value(40, y, "$M$")
        sheet.arrow(scaled.top(), end=add.bottom())
        sheet.arrow(mask.right(), end=add.left())
        sheet.label(22, y - 26, r"0 or $-\infty$", align="left")
        scaled, y = add, y + 46
    soft = sheet.op(120, y, "softmax of each row", 164)
    weights = sheet.value(120, y + 48, "$A$")
    mean, out = sheet.op(195, y + 94, r"$A V$", 50), sheet.value(195, y + 142, "$Y$")
    sheet.arrow(scaled.top(), end=soft.bottom())
    sheet.arrow(soft.top(), end=weights.bottom())
    sheet.arrow(weights.top(), (120, y + 94), end=mean.left())
    sheet.arrow(parts["v"].top(), (270, y + 94), end=mean.right())
    sheet.arrow(mean.top(), end=out.bottom())
    for row, column, shape in (
        (140, 92, r"$n \times d_k$"),
        (140, 192, r"$n \times d_k$"),
        (140, 292, r"$n \times d_v$"),
        (y + 48, 144, r"$n \times n$"),
        (y + 142, 219, r"$n \times d_v$"),
    ):
        sheet.label(column, row, shape, align="left")
    return sheet


def masked_attention():
    """Draw equation (12): the mask is added to the scores, before the softmax."""
    return attention(masked=True)


def multihead():
    """Draw equations (10) and (11) for two heads: split, attend, merge, mix."""
    sheet = Sheet(440, 462)
    x = sheet.value(220, 20, "$X$")
    sheet.label(246, 20, r"$n \times d$", align="left")
    colors = (BLUE, ORANGE)
    attend = [sheet.op(120 + 200 * h, 252, "attention", 130, 30) for h in range(2)]
    for place, name in enumerate("qkv"):
        column = 70 + 150 * place
        weight = sheet.map(column, 88, f"$W^{{({name})}}$", 88)
        if name == "k":
            sheet.arrow(x.top(), end=weight.bottom())
        else:
            sheet.arrow(x.at(220, 50), (column, 50), end=weight.bottom())
        for h in range(2):
            shift = -22 + 44 * h
            text = f"${name.upper()}_{h + 1}$"
            part = sheet.value(column + shift, 146, text, 40, color=colors[h])
            sheet.arrow(weight.top(shift), end=part.bottom(), color=colors[h], dashed=h == 1)
            end = attend[h].bottom(-40 + 40 * place)
            sheet.arrow(part.top(), end=end, color=colors[h], dashed=h == 1)
    merged = sheet.value(220, 332, "$[H_1, H_2]$", 94)
    for h in range(2):
        head = sheet.value(120 + 200 * h, 300, f"$H_{h + 1}$", 40, color=colors[h])
        sheet.arrow(attend[h].top(), end=head.bottom(), color=colors[h], dashed=h == 1)
        end = merged.right() if h else merged.left()
        sheet.arrow(head.top(), (head.x, 332), end=end, color=colors[h], dashed=h == 1)
    mix, out = sheet.map(220, 388, "$W^{(o)}$", 62), sheet.value(220, 442, "$Y$")
    sheet.arrow(merged.top(), end=mix.bottom())
    sheet.arrow(mix.top(), end=out.bottom())
    sheet.label(246, 442, r"$n \times d$", align="left")
    return sheet
