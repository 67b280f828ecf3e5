"""The page of claims: every claim has a cell, and every cell can fail."""

import dataclasses
import re

import pytest
from course_book import claims, data

TEXT = (data.ROOT / "book" / "claims.md").read_text(encoding="utf-8")
# Without the options in front of a cell's code, such as `:tags: [wrap]`.
CELLS = re.findall(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```$", TEXT, re.M | re.S)


CLAIM_CELLS = {}
for cell in CELLS:
    for name in re.findall(r'\bverdict\(\s*"(C\d+)"', cell):
        CLAIM_CELLS[name] = cell


def test_claims_on_attention_are_all_there():
    names = [claim.name for claim in data.claims()]
    assert {f"C{n}" for n in range(16, 26)} <= set(names)
    assert sorted(names, key=lambda name: int(name[1:])) == names
    assert list(CLAIM_CELLS) == [c.name for c in data.claims() if c.pending is None]
    for name in names:
        target = f"(claims-{name.lower()})="
        assert target in TEXT
        assert f"`{name} <claims-{name.lower()}>`" in claims.table(data.claims())


def test_no_claim_is_without_a_verdict():
    assert [claim.name for claim in data.claims() if claim.pending is not None] == []


def test_a_pending_claim_says_so_with_its_reason():
    claim = data.Claim("C9", "section 2", "It rains.", "rnn", pending="no clouds yet.")
    assert "| It rains. | pending |" in claims.table([claim])
    assert claims.quotation(claim).endswith("\n\n*Pending*: no clouds yet.")
    judged = dataclasses.replace(claim, pending=None)
    assert "| It rains. | {glue:text}`C9` |" in claims.table([judged])
    assert "Pending" not in claims.quotation(judged)


def test_gaps_of_the_page_of_claims():
    first, second = (data.Claim(name, "", "", "") for name in ("C1", "C2"))
    assert claims.claim_gaps([first, second], ["C1", "C2"]) == []
    assert claims.claim_gaps([first, second], ["C1", "C1"]) == [
        "claim C2: book/claims.md does not treat it",
        "claim C1: quoted twice",
    ]
    blank = dataclasses.replace(first, pending=" ")
    assert claims.claim_gaps([blank], ["C1"]) == ["claim C1: pending without a reason"]


def test_no_verdict_is_typed_into_the_table():
    assert not re.search("confirmed|qualified|refuted", claims.table(data.claims()))


def run_claims(upto, **replaced):
    """Run the cells of the page of claims up to one claim, with some names replaced."""
    scope = {}
    for cell in CELLS:
        exec(cell, scope)  # the page's own code
        scope |= replaced
        if f'"{upto}"' in cell:
            return


@pytest.mark.parametrize("name", CLAIM_CELLS)
def test_each_claim_fails_under_the_opposite_verdict(name, capsys):
    """The evidence is turned round: what holds fails and the reverse, or all cases agree."""
    from seqlib.experiments.claims import verdict

    outcomes = {}
    for kind in ("as it is", "all hold", "all fail"):

        def turned(claim, evidence, kind=kind):
            if claim == name and kind != "as it is":
                evidence = dict.fromkeys(evidence, kind == "all hold")
            return verdict(claim, evidence)

        try:
            run_claims(name, verdict=turned)
            outcomes[kind] = "passes"
        except AssertionError:
            outcomes[kind] = "fails"
    assert outcomes.pop("as it is") == "passes"
    assert "fails" in outcomes.values()
    if '"qualified' in CLAIM_CELLS[name]:
        assert set(outcomes.values()) == {"fails"}


class Broken:
    """The library with one function replaced."""

    def __init__(self, **replaced):
        self.replaced = replaced

    def __getattr__(self, name):
        import seqlib.np as snp

        return self.replaced.get(name, getattr(snp, name))


def without_max_shift(x, *, axis=-1):
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def without_mask(function):
    return lambda *args, mask=None: function(*args)


def strictly_causal(T, S=None):
    import numpy as np

    return np.where(np.tri(T, T, -1) > 0, 0.0, -np.inf)


def steps_alone(dy, *args, **options):
    """Nothing comes back from the next step: the fault of case A21."""
    import seqlib.np as snp

    return snp.rnn_truncated_backward(dy, *args, k1=1, k2=1)


def bound_by_lag(x, h0, weight_ih, weight_hh, bias_ih, bias_hh):
    """Powers of the largest singular value, a bound, in place of the norm."""
    import numpy as np

    return np.linalg.norm(weight_hh, ord=2) ** np.arange(x.shape[1] + 1.0)[:, None]


def test_a_broken_library_turns_claims(capsys):
    import seqlib.np as snp

    plain = snp.scaled_dot_product_attention
    attention = without_mask(plain)
    for name, broken in [
        ("C1", Broken(rnn_backward=steps_alone)),
        ("C2", Broken(rnn=lambda *args, lengths=None: snp.rnn(*args))),
        ("C5", Broken(rnn_truncated_backward=steps_alone)),
        ("C6", Broken(jacobian_norm_by_lag=bound_by_lag)),
        ("C7", Broken(jacobian_norm_by_lag=bound_by_lag)),
        ("C8", Broken(clip_grad_norm=lambda grads, *, max_norm: (grads, 0.0))),
        ("C16", Broken(softmax=without_max_shift)),
        ("C18", Broken(softmax=lambda x, *, axis=-1: snp.softmax(x, axis=0))),
        ("C23", Broken(scaled_dot_product_attention=attention)),
        ("C24", Broken(scaled_dot_product_attention=attention)),
        ("C25", Broken(causal_mask=strictly_causal)),
        ("C27", Broken(streaming_attention=lambda q, k, v, **_: plain(q, k, v))),
    ]:
        with pytest.raises(AssertionError):
            run_claims(name, snp=broken)
