"""A probabilistic grammar whose texts have a known probability, character by character."""

import re
from bisect import bisect_right
from itertools import accumulate, pairwise

import numpy as np

from seqlib._check import check_positive

__all__ = ["Grammar"]

# A piece of a rule: <name>, <variable=name>, {variable}, {variable|form}, or literal text.
_PIECE = re.compile(r"<(?:(\w+)=)?(\w+)>|\{(\w+)(?:\|(\d))?\}|([^<>{}]+)")


class _TextEnds(Exception):
    """The text ended inside a sentence."""


class Grammar:
    """A probabilistic context-free grammar with names that are remembered.

    A rule maps a symbol to pairs of a probability and a text, in which ``<name>`` stands for a
    text of that symbol; ``<hero=name>`` also remembers it, and ``{hero}`` repeats it until the
    sentence ends. Forms of a word are separated by ``|`` and reached by number: after the
    word ``Ann|she`` was remembered, ``{hero|1}`` is ``she``.

    The rules ``{"start": [(1, "<who=name> ran. {who|1} fell.")], "name": [(0.5, "Ann|She"),
    (0.5, "Bob|He")]}`` have two sentences, each of probability 1/2. A model of characters
    that has seen the first letter knows the rest, and so an entropy of ln 2 = 0.69 nats is
    all that there is to a sentence of 17 or 16 characters.

    Of the texts that a symbol can begin with none is the beginning of another, which is
    checked; so a text has one derivation at most, and its probability is a product. A text is
    a row of sentences, each derived from ``start``.

    Parameters
    ----------
    rules : dict of str to list of (float, str)
        The rules. Probabilities of a symbol sum to 1.
    start : str, default="start"
        Symbol of a sentence.

    Raises
    ------
    ValueError
        If the rules are not such a grammar, or their sentences need not end.
    """

    def __init__(self, rules, start="start"):
        self.start, self._rules, self._variables = start, {}, {}
        for name, options in rules.items():
            p = [float(weight) for weight, _ in options]
            if not options or min(p) <= 0 or abs(sum(p) - 1) > 1e-9:
                raise ValueError(
                    f"rules[{name!r}] must have positive probabilities of sum 1, got {p}"
                )
            texts = [self._parse(name, text, rules) for _, text in options]
            self._rules[name] = (p, list(accumulate(p)), texts)
        if start not in rules:
            raise ValueError(f"start must be one of the rules' symbols, got {start!r}")
        self._firsts = {name: self._find_firsts(name, ()) for name in rules}
        for name, firsts in self._firsts.items():
            self._check_firsts(name, [text for _, text, _ in firsts])
        self._expected = self._solve()

    def sample(self, n, rng):
        """Draw a text of ``n`` independent sentences.

        Parameters
        ----------
        n : int
            Number of sentences.
        rng : numpy.random.Generator
            Source of all choices.

        Returns
        -------
        str
            The sentences, one behind the other.
        """
        check_positive("n", n)
        parts = []

        def choose(name):
            _, cumulative, texts = self._rules[name]
            # The last bound may be 1 - 1e-16 by rounding.
            return texts[min(bisect_right(cumulative, rng.random()), len(texts) - 1)]

        for _ in range(n):
            self._derive(choose, parts.append)
        return "".join(parts)

    def nats(self, text):
        """Return the negative log-probability of every character, given those before.

        The text must begin with a sentence and may end anywhere. Sums over it are the least
        loss that a model of characters can have: no model is better on average.

        Parameters
        ----------
        text : str
            The text, of T characters.

        Returns
        -------
        ndarray of shape (T,)
            Losses in nats, 0 where only one character is possible.

        Raises
        ------
        ValueError
            If the grammar has no such text.
        """
        reader = _Reader(text, self._firsts)
        while reader.place < len(text):
            try:
                self._derive(reader.choose, reader.read)
            except _TextEnds:
                break
        return reader.found

    def log_prob(self, text):
        """Return the log-probability that a text drawn from the grammar begins with this one.

        Parameters
        ----------
        text : str
            The text; see :meth:`nats`.

        Returns
        -------
        float
            The natural logarithm, 0 for the empty text.
        """
        return -float(self.nats(text).sum())

    def entropy(self):
        """Return the entropy of a sentence in nats: the mean of -log p over all sentences.

        Returns
        -------
        float
            The sum over all symbols of how often one is expected times the entropy of its
            choice, from one system of linear equations.
        """
        return self._expected[0]

    def mean_length(self):
        """Return the expected number of characters of a sentence.

        Returns
        -------
        float
            The length; :meth:`entropy` divided by it is the entropy rate in nats a character.
        """
        return self._expected[1]

    def _parse(self, name, text, rules):
        """Cut the text of a rule into pieces (kind, variable or forms, symbol or form)."""
        if "".join(match[0] for match in _PIECE.finditer(text)) != text or not text:
            raise ValueError(
                f"rules[{name!r}] must be text with <name>, <variable=name>, {{variable}}, got "
                f"{text!r}"
            )
        if "|" in _PIECE.sub(lambda match: match[5] or "", text):
            forms = text.split("|")
            if set("<>{}") & set(text) or not all(forms):
                raise ValueError(f"rules[{name!r}] must have forms of plain text, got {text!r}")
            return [("literal", forms, None)]
        pieces = []
        for variable, symbol, repeated, form, literal in _PIECE.findall(text):
            if symbol and symbol not in rules:
                raise ValueError(
                    f"rules must have a rule for every symbol, got <{symbol}> in {name!r}"
                )
            if variable and self._variables.setdefault(variable, symbol) != symbol:
                raise ValueError(
                    f"rules must remember {variable!r} from one symbol, got "
                    f"{self._variables[variable]!r} and {symbol!r}"
                )
            if symbol:
                pieces.append(("expand", variable, symbol))
            elif repeated:
                pieces.append(("repeat", repeated, int(form or 0)))
            else:
                pieces.append(("literal", [literal], None))
        return pieces

    def _derive(self, choose, emit):
        """Derive one sentence; ``choose(symbol)`` takes a rule, ``emit`` its plain text."""
        remembered, stack = {}, [("expand", "", self.start)]
        while stack:
            kind, what, which = stack.pop()
            if kind == "literal":
                emit(what[0])
            elif kind == "repeat":
                if what not in remembered:
                    raise ValueError(
                        f"rules must remember {what!r} before it is repeated, got {{{what}}} "
                        "in a sentence that has none yet"
                    )
                emit(remembered[what][which])
            else:
                pieces = choose(which)
                if what:
                    remembered[what] = pieces[0][1]
                stack.extend(reversed(pieces))

    def _find_firsts(self, name, above):
        """Return (probability, text, pieces) for each text that a symbol can begin with."""
        if name in above:
            raise ValueError(f"rules must not begin with themselves, got {name!r}")
        found = []
        p, _, texts = self._rules[name]
        for weight, pieces in zip(p, texts, strict=True):
            kind, what, which = pieces[0]
            if kind == "literal":
                found.append((weight, what[0], pieces))
            elif kind == "expand":
                inner = self._find_firsts(which, (*above, name))
                found += [(weight * q, text, pieces) for q, text, _ in inner]
            elif len(texts) == 1:
                found.append((1.0, "", pieces))
            else:
                raise ValueError(
                    f"rules[{name!r}] must not begin with a variable where there is a choice, "
                    f"got {{{what}}}"
                )
        return found

    @staticmethod
    def _check_firsts(name, texts):
        texts = sorted(texts)
        for text, following in pairwise(texts):
            if following.startswith(text):
                raise ValueError(
                    f"rules[{name!r}] must begin with texts of which none begins another, got "
                    f"{text!r} and {following!r}"
                )

    def _solve(self):
        """Return the expected nats and characters of a sentence."""
        names = list(self._rules)
        number = {name: i for i, name in enumerate(names)}
        children = np.zeros((len(names), len(names)))  # expected number in one expansion
        own = np.zeros((len(names), 2))  # nats and characters of an expansion itself
        for i, (p, _, texts) in enumerate(self._rules.values()):
            for weight, pieces in zip(p, texts, strict=True):
                own[i, 0] -= weight * np.log(weight)
                for kind, what, which in pieces:
                    if kind == "expand":
                        children[i, number[which]] += weight
                    elif kind == "literal":
                        own[i, 1] += weight * len(what[0])
                    else:
                        own[i, 1] += weight * self._mean_form(what, which)
        if np.abs(np.linalg.eigvals(children)).max() >= 1:
            raise ValueError(
                "rules must give sentences of finite expected length, got a symbol that "
                "expands to one or more of itself on average"
            )
        expected = np.linalg.solve(np.eye(len(names)) - children, own)
        return tuple(float(value) for value in expected[number[self.start]])

    def _mean_form(self, variable, form):
        """Return the expected length of a repeated word."""
        if variable not in self._variables:
            raise ValueError(
                f"rules must remember {variable!r} somewhere, got only {{{variable}}}; write "
                f"<{variable}=...> once"
            )
        p, _, texts = self._rules[self._variables[variable]]
        for pieces in texts:
            forms = pieces[0][1] if len(pieces) == 1 and pieces[0][0] == "literal" else []
            if len(forms) <= form:
                raise ValueError(
                    f"rules[{self._variables[variable]!r}] must be words with a form "
                    f"{form}, got {pieces}; {variable!r} is remembered from it"
                )
        return sum(w * len(pieces[0][1][form]) for w, pieces in zip(p, texts, strict=True))


class _Reader:
    """Follow a text through a grammar and note what each character costs."""

    def __init__(self, text, firsts):
        self.text, self.firsts = text, firsts
        self.place, self.counted = 0, -1
        self.found = np.zeros(len(text))

    def choose(self, name):
        """Return the rule that the text takes here, and count the choice once."""
        options, place = self.firsts[name], self.place
        if len(options) > 1:
            left = options
            while len(left) > 1:
                if place == len(self.text):
                    raise _TextEnds
                k = place - self.place
                fits = [option for option in left if option[1][k] == self.text[place]]
                if not fits:
                    self._refuse(place)
                # An outer symbol that begins here has counted the inner ones with it.
                if self.counted < self.place:
                    total = sum(option[0] for option in left)
                    self.found[place] = np.log(total / sum(option[0] for option in fits))
                left, place = fits, place + 1
            self.counted = max(self.counted, self.place)
            return left[0][2]
        return options[0][2]

    def read(self, literal):
        """Step over text that is certain."""
        for character in literal:
            if self.place == len(self.text):
                raise _TextEnds
            if self.text[self.place] != character:
                self._refuse(self.place)
            self.place += 1

    def _refuse(self, place):
        raise ValueError(
            f"text must be in the language of the grammar, got {self.text[place]!r} at "
            f"character {place}, after {self.text[max(0, place - 20) : place]!r}"
        )
