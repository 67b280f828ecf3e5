"""The grammar: probabilities by enumeration, and the stories that are drawn from it."""

import contextlib
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from seqlib.data import Grammar, NGramLM, stories, story_grammar

FINITE = {
    "start": [(0.25, "<who=name> saw <name>.<more>"), (0.75, "The <pet> of <who=name> ran.")],
    "more": [(0.5, " Later {who|1} ran."), (0.3, " The <pet> ran."), (0.2, " Then {who} hid.")],
    "name": [(0.6, "Ann|She"), (0.3, "Abe|He"), (0.1, "Bo|He")],
    "pet": [(0.5, "cat"), (0.5, "cow")],
}


def derivations(rules, name="start"):
    """Enumerate (probability, pieces with variables resolved later), written afresh."""
    for weight, text in rules[name]:
        parts = re.split(r"(<[^>]*>)", text)
        found = [(weight, "")]
        for part in parts:
            if not part.startswith("<"):
                found = [(p, done + part) for p, done in found]
                continue
            variable, _, symbol = part[1:-1].rpartition("=")
            inner = list(derivations(rules, symbol))
            mark = (lambda t, v=variable: f"[{v}:{t}]") if variable else (lambda t: t)
            found = [(p * q, done + mark(t)) for p, done in found for q, t in inner]
        yield from found


def sentences(rules):
    """Return the probability of every sentence of a finite grammar."""
    found = {}
    for p, text in derivations(rules):
        names = dict(re.findall(r"\[(\w+):([^\]]*)\]", text))
        text = re.sub(r"\[\w+:([^\]]*)\]", r"\1", text)
        text = re.sub(
            r"\{(\w+)(?:\|(\d))?\}", lambda m, n=names: n[m[1]].split("|")[int(m[2] or 0)], text
        )
        text = re.sub(r"(\w+)\|\w+", r"\1", text)  # the first form is what is written
        found[text] = found.get(text, 0) + p
    return found


@pytest.fixture(scope="module")
def language():
    return sentences(FINITE)


def test_the_enumeration_has_the_sentences_one_would_write(language):
    assert sum(language.values()) == pytest.approx(1)
    assert language["The cow of Bo ran."] == pytest.approx(0.75 * 0.5 * 0.1)
    assert language["Abe saw Ann. Later He ran."] == pytest.approx(0.25 * 0.3 * 0.6 * 0.5)
    assert len(language) == 3 * 3 * 4 + 2 * 3


def test_log_prob_is_that_of_the_enumeration(language):
    grammar = Grammar(FINITE)
    for text, p in language.items():
        assert grammar.log_prob(text) == pytest.approx(math.log(p), abs=1e-12)
    assert grammar.log_prob("") == 0
    two = "The cow of Bo ran.The cow of Bo ran."
    assert grammar.log_prob(two) == pytest.approx(2 * grammar.log_prob(two[:18]))


def test_entropy_and_length_are_those_of_the_enumeration(language):
    grammar = Grammar(FINITE)
    entropy = -sum(p * math.log(p) for p in language.values())
    assert grammar.entropy() == pytest.approx(entropy, rel=1e-12)
    length = sum(p * len(text) for text, p in language.items())
    assert grammar.mean_length() == pytest.approx(length, rel=1e-12)


def test_each_character_has_its_own_probability(language):
    grammar = Grammar(FINITE)
    for text in language:
        for t, nats in enumerate(grammar.nats(text)):
            same = [p for other, p in language.items() if other.startswith(text[:t])]
            next_too = [p for other, p in language.items() if other.startswith(text[: t + 1])]
            assert nats == pytest.approx(math.log(sum(same) / sum(next_too)), abs=1e-9)


def test_samples_have_the_probabilities(language):
    grammar, n = Grammar(FINITE), 20_000
    rng = np.random.default_rng(0)
    drawn = [grammar.sample(1, rng) for _ in range(n)]
    assert set(drawn) <= set(language)
    for text, p in language.items():
        assert abs(drawn.count(text) / n - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_a_recursive_grammar_by_hand():
    """S -> a S with 3/4 else b: a geometric number of a, so 3 on average."""
    grammar = Grammar({"start": [(0.75, "a<start>"), (0.25, "b")]})
    assert grammar.mean_length() == pytest.approx(4)
    one_choice = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert grammar.entropy() == pytest.approx(4 * one_choice)
    assert_allclose(grammar.nats("aab"), -np.log([0.75, 0.75, 0.25]))


def test_a_variable_stands_for_its_last_word():
    grammar = Grammar({"start": [(1, "<x=y><x=y>{x}.")], "y": [(0.5, "a"), (0.5, "b")]})
    assert grammar.log_prob("abb.") == pytest.approx(-2 * math.log(2))
    with pytest.raises(ValueError, match=r"got 'a' at character 2, after 'ab'$"):
        grammar.log_prob("aba.")


def test_example_of_the_docstring():
    rules = {
        "start": [(1, "<who=name> ran. {who|1} fell.")],
        "name": [(0.5, "Ann|She"), (0.5, "Bob|He")],
    }
    grammar = Grammar(rules)
    assert grammar.sample(50, np.random.default_rng(0)).count("Ann ran. She fell.") > 15
    assert grammar.entropy() == pytest.approx(math.log(2))
    assert_allclose(grammar.nats("Bob ran. He fell."), [math.log(2)] + [0] * 16)
    assert grammar.mean_length() == pytest.approx(17.5)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"start": [(0.5, "a"), (0.4, "b")]},
            r"rules\['start'\] must have positive .* got \[0",
        ),
        ({"start": [(1.5, "a"), (-0.5, "b")]}, r"rules\['start'\] must have positive"),
        (
            {"start": []},
            r"rules\['start'\] must have positive probabilities of sum 1, got \[\]",
        ),
        ({"start": [(1, "")]}, r"rules\['start'\] must be text with .* got ''"),
        ({"start": [(1, "a<b")]}, r"rules\['start'\] must be text with .* got 'a<b'"),
        (
            {"start": [(1, "a<b>")]},
            r"rules must have a rule for every symbol, got <b> in 'start'",
        ),
        ({"a": [(1, "a")]}, "start must be one of the rules' symbols, got 'start'"),
        ({"start": [(1, "<start>a")]}, "rules must not begin with themselves, got 'start'"),
        (
            {"start": [(0.5, "a"), (0.5, "ab")]},
            "rules.* of which none begins another, got 'a' a",
        ),
        ({"start": [(0.5, "a"), (0.5, "a")]}, "rules.* of which none begins another"),
        (
            {"start": [(0.5, "<x>"), (0.5, "ab")], "x": [(0.5, "a"), (0.5, "c")]},
            "rules.* of which none begins another, got 'a' and 'ab'",
        ),
        ({"start": [(1, "a{x}")]}, "rules must remember 'x' somewhere"),
        (
            {"start": [(0.5, "a<x=y>{x|1}"), (0.5, "b{x}")], "y": [(1, "u")]},
            r"rules\['y'\] must be words with a form 1",
        ),
        (
            {"start": [(1, "a<x=y><x=z>{x}")], "y": [(1, "u")], "z": [(1, "v")]},
            "rules must remember 'x' from one symbol, got 'y' and 'z'",
        ),
        (
            {"start": [(1, "<x=y><z>")], "y": [(1, "u")], "z": [(0.5, "{x}"), (0.5, "v")]},
            r"rules\['z'\] must not begin with a variable where there is a choice, got \{x\}",
        ),
        ({"start": [(0.5, "a<start><start>"), (0.5, "b")]}, "rules must give .* finite"),
        (
            {"start": [(1, "<x>|a")], "x": [(1, "u")]},
            r"rules\['start'\] must have forms of plain",
        ),
        ({"start": [(1, "a|")]}, r"rules\['start'\] must have forms of plain"),
    ],
)
def test_what_is_no_such_grammar_is_refused(rules, message):
    with pytest.raises(ValueError, match=r"^" + message):
        Grammar(rules)


def test_a_variable_that_is_not_yet_remembered():
    grammar = Grammar({"start": [(1, "a{x}<x=y>")], "y": [(1, "u")]})
    with pytest.raises(ValueError, match=r"^rules must remember 'x' before it is repeated"):
        grammar.sample(1, np.random.default_rng(0))


# ---------------------------------------------------------------- stories


@pytest.fixture(scope="module")
def text():
    return stories(3000, np.random.default_rng(0))


def test_stories_reach_the_entropy_of_the_grammar(text):
    grammar = story_grammar()
    lines = text.splitlines(keepends=True)
    assert len(lines) == 3000
    nats = np.array([-grammar.log_prob(line) for line in lines])
    assert grammar.nats(text).sum() == pytest.approx(nats.sum())
    error = nats.std() / math.sqrt(len(lines))
    assert abs(nats.mean() - grammar.entropy()) < 4 * error
    lengths = np.array([len(line) for line in lines])
    error = lengths.std() / math.sqrt(len(lines))
    assert abs(lengths.mean() - grammar.mean_length()) < 4 * error


@given(end=st.integers(0, 5000))
def test_next_characters_of_a_story_have_probabilities_of_sum_1(end):
    text = stories(60, np.random.default_rng(1))[:end]
    grammar, found = story_grammar(), []
    for code in (10, 32, 46, *range(65, 91), *range(97, 123)):
        with contextlib.suppress(ValueError):
            found.append(math.exp(-grammar.nats(text + chr(code))[-1]))
    assert sum(found) == pytest.approx(1)


def test_the_end_of_a_story_remembers_its_beginning(text):
    for line in text.splitlines():
        hero, colour, toy = re.match(r"(\w+) has a (\w+) (\w+)\.", line).groups()
        assert re.search(rf"At night {hero} puts the {colour} {toy} \w+ (the|a) \w+\.$", line)
        female = hero in ("Anna", "Clara", "Mia", "Rosa")
        assert not re.search(
            r"(Then|and) " + ("he" if female else "she") + " (sees|cries)", line
        )


def test_verbs_agree_over_clauses(text):
    singular, plural = r"a (dog|cat|hen|fox)", r"two (dogs|cats|hens|foxes)"
    assert re.search(singular + " that .*two .* see (sleeps|runs)", text)
    for wrong in (
        singular + " (sleep|run|see|hear)\\b",
        plural + " (sleeps|runs|sees|hears)\\b",
    ):
        assert not re.search(wrong, text)


def test_counting_short_contexts_stays_far_above_the_floor(text):
    characters, ids = np.unique(list(text), return_inverse=True)
    cut = text.rindex("\n", 0, len(text) * 9 // 10) + 1
    floor = story_grammar().nats(text[cut:]).mean()
    for n, least in ((3, 0.5), (6, 0.15)):
        model = NGramLM(n, len(characters)).fit(ids[:cut])
        assert model.nats(ids[cut:]).mean() > floor + least


def test_text_outside_the_language_is_refused(text):
    grammar = story_grammar()
    for wrong in ("x", text.replace("At night", "at night", 1), text[1:]):
        with pytest.raises(
            ValueError, match=r"^text must be in the language .* at character \d+"
        ):
            grammar.nats(wrong)
