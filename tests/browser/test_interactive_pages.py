"""Interactive figures in a browser: moved by mouse and keyboard they say what seqlib says.

The numbers themselves are compared to the last digits by ``tests/test_interactive.py``; here
they are read from the page, which shows three.
"""

import numpy as np
import pytest
from course_book import interactive
from watching import PATIENCE, SITE

import seqlib.np as snp
from seqlib.text import BPETokenizer, bpe_encode, pretokenize

PAGES = {
    "gradient": "gradients",
    "lstm": "lstm",
    "gru": "gru",
    "attention": "masks",
    "bpe": "tokens",
    "positions": "positions",
    "sampling": "decoder",
    "depth": "transformer",
}
VALUES = """holder => Object.fromEntries(
  [...holder.querySelectorAll(".interactive-controls label")].map((label) => {
    const field = document.getElementById(label.htmlFor);
    const value = field.type === "checkbox" ? field.checked
      : field.tagName === "SELECT" ? field.selectedOptions[0].text
      : field.type === "range" ? Number(field.value) : field.value;
    return [label.textContent, value];
  }),
)"""


def open_page(chromium, address, name, **options):
    """Open the page of a figure; return the page and the figure."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
    context.set_default_timeout(PATIENCE)
    # Formulas are typeset for seconds, and no figure needs them.
    context.route("**/mathjax/**", lambda route: route.abort())
    page = context.new_page()
    page.goto(f"{address}book/{PAGES[name]}.html", wait_until="domcontentloaded")
    return page, page.locator(f"[data-interactive={name}]")


@pytest.fixture(scope="module", params=PAGES)
def moved(request, chromium, address):
    """A figure that is moved by all tests in turn: its name, page and holder."""
    page, holder = open_page(chromium, address, request.param)
    holder.locator(".interactive-says").filter(has_text=".").wait_for()
    yield request.param, page, holder
    page.context.close()


@pytest.fixture
def figure(moved):
    """The same figure, as it is at the start."""
    _, page, holder = moved
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 900})
    holder.get_by_role("button", name="Reset").click()
    settle(page)
    return moved


def says(holder):
    return holder.locator(".interactive-says").inner_text()


def settle(page):
    """Wait until a change is computed and drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def shown(value):
    """Write a number as the figures do: three digits, powers of ten where it is extreme."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.2e}".split("e")
    if -3 <= int(exponent) <= 4:
        return np.format_float_positional(float(f"{value:.3g}"), trim="-").replace("-", "−")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{raised}".replace("-", "−")


# ---------------------------------------------------------------- what each figure must say


def gradient(values):
    rho, sigma = values["Spectral radius ρ of W"], values["Largest singular value σmax of W"]
    angle = np.radians(values["Axes of W turned by (degrees)"])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    off = sigma - rho**2 / sigma
    W = turn @ np.array([[rho, off], [0, rho]]) @ turn.T
    drive = [values[f"Drive: argument of tanh in unit {unit}"] for unit in (1, 2)]
    T, h = int(values["Length (steps)"]), np.tanh(drive)
    x = np.tile(drive - W @ h, (1, T, 1))
    norms = snp.jacobian_norm_by_lag(x, h[None], np.eye(2), W, None, None)[:, 0]
    last = norms[-1] if norms[-1] > 1e-12 else 0
    return [f"over {T} step", f": {shown(last)}. W", f"σmax = {shown(np.linalg.norm(W, 2))};"]


def gate_inputs(values):
    content = [float(u) for u in values["Contents u, up to 16 numbers"].split()]
    marks = [int(t) for t in values["Marked steps"].split()]
    return np.array([[u, t in marks] for t, u in enumerate(content, start=1)], float)


def lstm(values):
    x = gate_inputs(values)
    weight = [values[f"{g}: weight of the mark"] for g in ("Input gate i", "Forget gate f")]
    bias = [values[f"{g}: bias"] for g in ("Input gate i", "Forget gate f", "Output gate o")]
    weight_ih = np.array([[0, weight[0]], [0, weight[1]], [2, 0], [0, 0]])
    weight_hh = np.array([[0], [0], [values["Weight of h in the candidate"]], [0]])
    zero, bias = np.zeros((1, 1)), np.array([*bias[:2], 0, bias[2]])
    _, h, c = snp.lstm(x[None], zero, zero, weight_ih, weight_hh, bias, None)
    return [f"After step {len(x)}: C = {shown(c[0, 0])} and h = {shown(h[0, 0])}."]


def gru(values):
    x = gate_inputs(values)
    weight = [values[f"{g}: weight of the mark"] for g in ("Reset gate r", "Update gate z")]
    bias = [values[f"{g}: bias"] for g in ("Reset gate r", "Update gate z")]
    weight_ih = np.array([[0, weight[0]], [0, weight[1]], [2, 0]])
    weight_hh = np.array([[0], [0], [values["Weight of h in the candidate"]]])
    _, h = snp.gru(x[None], np.zeros((1, 1)), weight_ih, weight_hh, np.array([*bias, 0]), None)
    return [f"After step {len(x)}: h = {shown(h[0, 0])}."]


def attention(values):
    n, pads = int(values["Tokens"]), int(values["Padded positions"])
    mask = np.zeros((n, n))
    if values["Causal mask: no key after the query"]:
        mask = mask + snp.causal_mask(n)
    if (side := values["Padding"].removeprefix("on the ")) != "none":
        lengths = np.array([n - pads])
        mask = mask + snp.padding_mask(snp.padding_from_lengths(lengths, n, side=side))[0, 0]
    empty = [str(i + 1) for i in np.flatnonzero((mask < 0).all(axis=1))]
    rows = f"{', '.join(empty)} may attend to nothing" if empty else "The largest weight"
    return [f"{(mask < 0).sum()} of {n * n} pairs are forbidden.", rows]


def bpe(values):
    text, n = values["Text, up to 400 characters"], int(values["Merges"])
    merges = BPETokenizer.train(text, 256 + n).merges
    count = sum(len(bpe_encode(piece.encode(), merges)) for piece in pretokenize(text))
    return [f"After {len(merges)} merge", f": {count} tokens for {len(text.encode())} bytes."]


def positions(values):
    row, T, D = (
        int(values[k]) for k in ("Position t of the framed row", "Positions T", "Width D")
    )
    table = snp.sinusoidal_positions(T, D, base=float(values["Base b"]))
    dots = table @ table[row]
    return [
        f"Row {row} has the length {shown(np.sqrt(dots[row]))}",
        f"has the largest: {shown(max(np.delete(dots, row)))}.",
    ]


def sampling(values):
    q = np.array(
        [float(v) for v in values["Probabilities before, in any unit, up to 16"].split()]
    )
    p = snp.next_token_distribution(
        np.log(q),
        temperature=values["Temperature τ"],
        top_k=int(values["Top-k: tokens to keep"]),
        top_p=values["Top-p: probability to keep"],
    )
    kept = p[p > 0]
    return [
        f"{len(kept)} of {len(q)} tokens",
        f"id {p.argmax()}, has {shown(p.max())}.",
        f"Entropy: {shown(abs((kept * np.log(kept)).sum()))} nats.",
    ]


def depth(values):
    # The weights are drawn in the page; tests/test_interactive.py hands them to seqlib.
    return [f"{int(values['Layers L'])} layer", "Gradient norm, pre-norm: "]


EXPECTED = {
    f.__name__: f for f in (gradient, lstm, gru, attention, bpe, positions, sampling, depth)
}


def check(page, holder, name):
    """The sentence is what seqlib gives for the values that the controls show."""
    settle(page)
    sentence = says(holder)
    values = holder.evaluate(VALUES)
    for part in EXPECTED[name](values):
        assert part in sentence, (values, sentence)
    return sentence


# ---------------------------------------------------------------- the tests


def test_pages_of_the_figures():
    assert sorted(PAGES) == interactive.names() == sorted(EXPECTED)


def test_mouse(figure):
    name, page, holder = figure
    first = check(page, holder, name)
    buttons = holder.locator(".interactive-examples button")
    seen = set()
    for i in range(buttons.count() - 1):
        buttons.nth(i).click()
        seen.add(check(page, holder, name))
    assert first in seen
    assert len(seen) == buttons.count() - 1  # every example says something else
    for slider in holder.locator("input[type=range]").all():
        before = slider.input_value()
        box = slider.bounding_box()
        right = float(before) > float(slider.get_attribute("max")) / 2
        share = 0.2 if right else 0.8
        slider.click(position={"x": box["width"] * share, "y": box["height"] / 2})
        assert slider.input_value() != before
        check(page, holder, name)
    holder.get_by_role("button", name="Reset").click()
    assert check(page, holder, name) == first


def test_keyboard(figure):
    name, page, holder = figure
    first = check(page, holder, name)
    drawing = holder.locator(".interactive-drawing").inner_html()
    buttons = holder.get_by_role("button").count()
    controls = holder.locator(".interactive-controls :is(input, select, textarea)").count()
    keys = {"range": "ArrowLeft", "checkbox": "Space", "select-one": "ArrowDown"}
    texts, changes = 0, 0
    holder.get_by_role("button").first.focus()
    for _ in range(buttons + controls - 1):
        page.keyboard.press("Tab")
        kind, outline = page.evaluate(
            """() => [document.activeElement.type,
                      getComputedStyle(document.activeElement).outlineStyle]"""
        )
        assert outline == "solid", kind  # one sees where one is
        texts += kind == "textarea"
        if kind in keys:
            before = says(holder)
            page.keyboard.press(keys[kind])
            changes += check(page, holder, name) != before
    assert page.evaluate("document.activeElement.closest('.interactive-controls') !== null")
    assert texts == holder.locator("textarea").count()
    assert changes >= 1
    assert holder.locator(".interactive-drawing").inner_html() != drawing
    holder.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Enter")
    assert check(page, holder, name) == first


def test_every_control_has_a_name(figure):
    _, _, holder = figure
    fields = holder.locator(".interactive-controls :is(input, select, textarea)").all()
    names = [field.evaluate("field => field.labels[0].textContent") for field in fields]
    assert len(set(names)) == len(names) > 1
    assert all(len(name) > 5 for name in names)
    assert holder.locator(".interactive-says").get_attribute("role") == "status"
    drawing = holder.locator(".interactive-drawing")
    assert drawing.get_attribute("role") == "img"
    assert len(drawing.get_attribute("aria-label")) > 20


@pytest.mark.parametrize("width", [390, 1280])
def test_figures_fit_the_page(figure, width):
    _, page, holder = figure
    page.set_viewport_size({"width": width, "height": 900})
    # Drawn anew for this width, so that the letters keep their size.
    page.wait_for_function(
        """holder => {
          const svg = holder.querySelector("svg");
          return Math.abs(svg.clientWidth - svg.viewBox.baseVal.width) < 2;
        }""",
        arg=holder.element_handle(),
    )
    beyond = holder.evaluate(
        """holder => [...holder.querySelectorAll("*")].filter(e => {
          const box = e.getBoundingClientRect(), own = holder.getBoundingClientRect();
          return box.width && (box.right > own.right + 1 || box.left < own.left - 1);
        }).map(e => `${e.tagName} ${e.textContent.slice(0, 30)}`)"""
    )
    assert beyond == []
    assert holder.evaluate("holder => holder.clientWidth") < width


def test_on_paper_the_static_figure_stands(figure):
    _, page, holder = figure
    assert not holder.locator("img").is_visible()
    page.emulate_media(media="print")
    # An image has no size before its file is there, and `open_page` does not wait for files.
    holder.locator("img").wait_for(state="visible")
    assert not holder.locator(".interactive-live").is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_without_javascript_the_static_figure_stands(name, chromium, address):
    page, holder = open_page(chromium, address, name, java_script_enabled=False)
    holder.locator("img").wait_for(state="visible")
    assert holder.locator("figcaption").is_visible()
    assert holder.locator(".interactive-live").count() == 0
    page.context.close()


# ---------------------------------------------------------------- single figures


@pytest.fixture
def opened(chromium, address):
    """Open the page of one figure."""
    contexts = []

    def open_one(name):
        page, holder = open_page(chromium, address, name)
        contexts.append(page.context)
        holder.locator(".interactive-says").filter(has_text=".").wait_for()
        return page, holder

    yield open_one
    for context in contexts:
        context.close()


def test_text_of_ones_own(opened):
    page, holder = opened("bpe")
    holder.get_by_label("Merges").fill("0")
    holder.get_by_role("textbox").fill("Größe <größte> & <größte>")
    check(page, holder, "bpe")
    drawing = holder.locator(".interactive-drawing")
    shown_tokens = drawing.locator("svg text").all_text_contents()
    assert shown_tokens[:2] == ["G", "r"]
    assert "<" in shown_tokens  # a mark of HTML is text
    assert drawing.locator("svg > :not(text, rect)").count() == 0
    assert drawing.get_attribute("aria-label").startswith("Tokens: G|r|")
    holder.get_by_role("textbox").fill("")
    settle(page)
    assert says(holder) == "After 0 merges: 0 tokens for 0 bytes. No pair is left."


def test_probabilities_of_ones_own(opened):
    page, holder = opened("sampling")
    holder.get_by_role("textbox").fill("1 5 3")
    assert check(page, holder, "sampling").startswith("3 of 3 tokens are left")
    holder.get_by_label("Top-k").fill("2")
    assert check(page, holder, "sampling").endswith("By id: top-k removes 0.")


def test_what_cannot_be_read_is_said_and_marked(opened):
    page, holder = opened("lstm")
    first = says(holder)
    field = holder.get_by_label("Marked steps")
    field.fill("13")
    settle(page)
    assert says(holder) == "Marked steps must be from 1 to 12, got 13."
    assert field.get_attribute("aria-invalid") == "true"
    field.fill("2 8")
    settle(page)
    assert says(holder) == first
    assert field.get_attribute("aria-invalid") == "false"


def test_a_singular_value_is_never_below_the_spectral_radius(opened):
    page, holder = opened("gradient")
    rho, sigma = (holder.get_by_label(name) for name in ("Spectral radius", "Largest singular"))
    rho.fill("2.5")
    sigma.fill("1.2")
    check(page, holder, "gradient")
    assert (rho.input_value(), sigma.input_value()) == ("1.2", "1.2")
    rho.fill("3")
    check(page, holder, "gradient")
    assert sigma.input_value() == "3"


def test_pages_without_a_figure_load_none_of_it():
    assert "interactive/main.js" in (SITE / "book" / "lstm.html").read_text(encoding="utf-8")
    assert "interactive/" not in (SITE / "book" / "rnn.html").read_text(encoding="utf-8")
