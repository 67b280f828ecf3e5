"""Diagrams of recurrence: unrolling, cut backward passes, cells, an attending decoder."""

from itertools import pairwise

from seqlib.experiments.diagrams.sheet import SYMBOL, Sheet
from seqlib.experiments.style import GREEN, ORANGE


def rnn():
    """Draw equation (1): the loop on the left is the chain on the right."""
    sheet = Sheet(460, 244)
    sheet.label(62, 232, "folded")
    sheet.label(296, 232, "unrolled over three steps")
    x, f, h = (
        sheet.value(44, 20, "$x_t$"),
        sheet.map(44, 80, "$f_W$"),
        sheet.value(100, 80, "$h_t$"),
    )
    g, y = sheet.map(100, 142, "$g_{W'}$"), sheet.value(100, 200, r"$\hat{y}_t$")
    sheet.arrow(x.top(), end=f.bottom())
    sheet.arrow(f.right(), end=h.left())
    sheet.arrow(h.top(), end=g.bottom())
    sheet.arrow(h.at(100, 110), (12, 110), (12, 80), end=f.left(), color=GREEN, thick=True)
    sheet.arrow(g.top(), end=y.bottom())
    sheet.label(44, 124, "$h_{t-1}$", size=SYMBOL)
    state = sheet.value(160, 80, "$h_0$", 32)
    for t in (1, 2, 3):
        x, f = (
            sheet.value(114 + 92 * t, 20, f"$x_{t}$", 32),
            sheet.map(114 + 92 * t, 80, "$f_W$", 32),
        )
        h = sheet.value(160 + 92 * t, 80, f"$h_{t}$", 32)
        g = sheet.map(160 + 92 * t, 142, "$g_{W'}$")
        y = sheet.value(160 + 92 * t, 200, rf"$\hat{{y}}_{t}$")
        sheet.arrow(state.right(), end=f.left(), color=GREEN, thick=True)
        sheet.arrow(x.top(), end=f.bottom())
        sheet.arrow(f.right(), end=h.left(), color=GREEN, thick=True)
        sheet.arrow(h.top(), end=g.bottom())
        sheet.arrow(g.top(), end=y.bottom())
        state = h
    return sheet


def bptt(T=5, k1=2, k2=3):
    """Draw truncated backpropagation: a pass per block of k1 steps, k2 steps deep."""
    blocks = [range(first, min(first + k1, T + 1)) for first in range(1, T + 1, k1)]
    sheet = Sheet(440, 102 + 92 * len(blocks))
    column = [30 + 74 * t for t in range(T + 1)]
    height = sheet.height - 52
    states = [sheet.value(column[t], height, f"$h_{t}$") for t in range(T + 1)]
    for before, after in pairwise(states):
        sheet.arrow(before.right(), end=after.left())
    for number, block in enumerate(blocks, start=1):
        left, right = column[block[0]] - 26, column[block[-1]] + 26
        sheet.frame(left, height - 22, right, height + 22)
        note = f", $k_1 = {k1}$" if number == 1 else ""
        sheet.label((left + right) / 2, height + 36, f"block {number}{note}")
        _backward_pass(sheet, column, block, height - 2 - 92 * number, k2)
    return sheet


def _backward_pass(sheet, column, block, y, k2):
    """Draw one pass from the end of a block; what would go further is dropped."""
    end = block[-1]
    after = None
    for t in range(end, max(end - k2, 0), -1):
        da = sheet.value(column[t], y, f"$da_{t}$", 42, color=ORANGE)
        if t in block:
            dy = sheet.value(column[t], y + 44, f"$dy_{t}$", 42)
            sheet.arrow(dy.bottom(), end=da.top(), color=ORANGE, dashed=True)
        if after is not None:
            sheet.arrow(after.left(), end=da.right(), color=ORANGE, dashed=True)
        after = da
    if end - k2 <= 0:
        start = sheet.value(column[0], y, "$dh_0$", 42, color=ORANGE)
        sheet.arrow(after.left(), end=start.right(), color=ORANGE, dashed=True)
        return
    x = column[end - k2] + 28
    sheet.line([(after.left().x, y), (x, y)], color=ORANGE, dashed=True)
    sheet.line([(x, y - 9), (x, y + 9)], color=ORANGE, thick=True)
    sheet.label(x - 8, y, "cut", color=ORANGE, align="right")
    if end < len(column) - 1:
        left, right = after.left().x, column[end] + 21
        sheet.line([(left, y - 18), (left, y - 24), (right, y - 24), (right, y - 18)])
        sheet.label((left + right) / 2, y - 36, f"$k_2 = {k2}$ steps")


def lstm():
    """Draw the six equations of an LSTM step."""
    sheet = Sheet(460, 336)
    c, h = sheet.value(30, 300, "$C_{t-1}$", 52), sheet.value(30, 72, "$h_{t-1}$", 52)
    x, both = sheet.value(124, 20, "$x_t$"), sheet.value(124, 72, "$[h_{t-1}, x_t]$", 94)
    sheet.arrow(h.right(), end=both.left())
    sheet.arrow(x.top(), end=both.bottom())
    gates = {}
    for place, (name, function, matrix) in enumerate(
        (
            ("f_t", r"\sigma", "f"),
            ("i_t", r"\sigma", "i"),
            (r"\tilde{C}_t", r"\tanh", "C"),
            ("o_t", r"\sigma", "o"),
        )
    ):
        column = 124 + 72 * place
        gate = sheet.map(column, 136, f"${function}$\n$W_{matrix}, b_{matrix}$", 64, 48)
        gates[matrix] = sheet.value(column, 192, f"${name}$")
        if place == 0:
            sheet.arrow(both.top(), end=gate.bottom())
        elif place == 3:
            sheet.arrow(both.right(), (column, 72), end=gate.bottom())
        else:
            sheet.arrow(both.at(column, 72), end=gate.bottom())
        sheet.arrow(gate.top(), end=gates[matrix].bottom())
    keep, write = sheet.op(124, 300, r"$\odot$"), sheet.op(232, 246, r"$\odot$")
    add, show = sheet.op(232, 300, "$+$"), sheet.op(396, 192, r"$\odot$")
    squash = sheet.op(396, 246, r"$\tanh$", 54)
    c_new, h_new = sheet.value(438, 300, "$C_t$"), sheet.value(438, 192, "$h_t$")
    sheet.arrow(c.right(), end=keep.left(), color=GREEN, thick=True)
    sheet.arrow(gates["f"].top(), end=keep.bottom())
    sheet.arrow(gates["i"].top(), (196, 246), end=write.left())
    sheet.arrow(gates["C"].top(), (268, 246), end=write.right())
    sheet.arrow(keep.right(), end=add.left(), color=GREEN, thick=True)
    sheet.arrow(write.top(), end=add.bottom())
    sheet.arrow(add.right(), end=c_new.left(), color=GREEN, thick=True)
    sheet.arrow(add.at(396, 300), end=squash.top())
    sheet.arrow(gates["o"].right(), end=show.left())
    sheet.arrow(squash.bottom(), end=show.top())
    sheet.arrow(show.right(), end=h_new.left())
    return sheet


def gru():
    """Draw the four equations of a GRU step."""
    sheet = Sheet(460, 336)
    h, x = sheet.value(30, 300, "$h_{t-1}$", 52), sheet.value(124, 20, "$x_t$")
    both = sheet.value(124, 72, "$[h_{t-1}, x_t]$", 94)
    masked = sheet.value(340, 72, r"$[r_t \odot h_{t-1}, x_t]$", 140)
    maps = [
        sheet.map(column, 136, text, 64, 48)
        for column, text in (
            (124, "$\\sigma$\n$W_r$"),
            (232, "$\\sigma$\n$W_z$"),
            (340, "$\\tanh$\n$W$"),
        )
    ]
    r, z = sheet.value(124, 192, "$r_t$"), sheet.value(232, 192, "$z_t$")
    candidate = sheet.value(340, 192, r"$\tilde{h}_t$")
    reset, rest = sheet.op(124, 246, r"$\odot$"), sheet.op(232, 246, "$1 -$", 42)
    keep, take = sheet.op(232, 300, r"$\odot$"), sheet.op(340, 246, r"$\odot$")
    add, h_new = sheet.op(340, 300, "$+$"), sheet.value(434, 300, "$h_t$")
    # The state enters below as well, down the left edge.
    sheet.arrow(h.bottom(), (30, 72), end=both.left())
    sheet.arrow(x.top(), end=both.bottom())
    sheet.arrow(both.top(), end=maps[0].bottom())
    sheet.arrow(both.right(), (232, 72), end=maps[1].bottom())
    sheet.arrow(masked.top(), end=maps[2].bottom())
    for source, target in zip(maps, (r, z, candidate), strict=True):
        sheet.arrow(source.top(), end=target.bottom())
    sheet.arrow(r.top(), end=reset.bottom())
    sheet.arrow(h.at(124, 300), end=reset.top())
    sheet.arrow(reset.right(), (188, 246), (188, 42), (310, 42), end=masked.bottom(-30))
    sheet.arrow(x.right(), (370, 20), end=masked.bottom(30))
    sheet.arrow(z.top(), end=rest.bottom())
    sheet.arrow(rest.top(), end=keep.bottom())
    sheet.arrow(h.right(), end=keep.left(), color=GREEN, thick=True)
    sheet.arrow(z.right(), (290, 192), (290, 246), end=take.left())
    sheet.arrow(candidate.top(), end=take.bottom())
    sheet.arrow(keep.right(), end=add.left(), color=GREEN, thick=True)
    sheet.arrow(take.top(), end=add.bottom())
    sheet.arrow(add.right(), end=h_new.left(), color=GREEN, thick=True)
    return sheet


def seq2seq():
    """Draw additive attention: one step of a decoder that looks at all of the source."""
    sheet = Sheet(460, 420)
    state = sheet.value(26, 80, "$h_0$", 34)
    states = []
    for j in (1, 2, 3):
        column = 10 + 80 * j
        x, f = sheet.value(column, 20, f"$x_{j}$"), sheet.map(column, 80, "$f$", 36)
        h = sheet.value(column, 142, f"$h_{j}$")
        if j == 1:
            sheet.arrow(state.right(), end=f.left(), color=GREEN, thick=True)
        else:
            middle = column - 40
            corners = [(middle, 142), (middle, 80)]
            sheet.arrow(state.right(), *corners, end=f.left(), color=GREEN, thick=True)
        sheet.arrow(x.top(), end=f.bottom())
        sheet.arrow(f.top(), end=h.bottom(), color=GREEN, thick=True)
        state = h
        states.append(h)
    group = sheet.frame(66, 120, 274, 164, states)
    score = sheet.map(214, 216, "$W_q, W_k, w_v$", 116)
    e = sheet.value(214, 264, "$e_{i1}, e_{i2}, e_{i3}$", 116)
    soft = sheet.op(214, 310, "softmax", 90)
    a = sheet.value(214, 358, "$a_{i1}, a_{i2}, a_{i3}$", 116)
    mean = sheet.op(80, 358, r"$\Sigma_j\, a_{ij} h_j$", 104)
    c = sheet.value(80, 402, "$c_i$")
    s, g = sheet.value(322, 216, "$s_{i-1}$", 52), sheet.map(382, 216, "$g$", 36)
    y, s_new = sheet.value(382, 152, "$y_{i-1}$", 52), sheet.value(436, 216, "$s_i$")
    out, p = sheet.map(426, 272, "$W, b$", 58), sheet.value(426, 370, "$p(y_i)$", 62)
    normal = sheet.op(426, 322, "softmax", 66)
    sheet.arrow(s.left(), end=score.right())
    sheet.arrow(group.top(44), end=score.bottom())
    sheet.arrow(score.top(), end=e.bottom())
    sheet.arrow(e.top(), end=soft.bottom())
    sheet.arrow(soft.top(), end=a.bottom())
    sheet.arrow(a.left(), end=mean.right())
    sheet.arrow(group.top(-90), end=mean.bottom())
    sheet.arrow(mean.top(), end=c.bottom())
    sheet.arrow(s.right(), end=g.left(), color=GREEN, thick=True)
    sheet.arrow(y.top(), end=g.bottom())
    sheet.arrow(c.right(), (382, 402), end=g.top())
    sheet.arrow(g.right(), end=s_new.left(), color=GREEN, thick=True)
    sheet.arrow(s_new.top(), end=out.bottom(10))
    sheet.arrow(out.top(), end=normal.bottom())
    sheet.arrow(normal.top(), end=p.bottom())
    return sheet
