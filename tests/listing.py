"""Which function computes which equation, and what it is held against: ``make listing``.

Read off the code: equations from the docstrings, oracles from the syntax trees of the tests.
A test counts for a function that it names, directly, in a parametrisation, or through helpers
of the tests; an oracle counts for a test that uses it in the same ways.
"""

import ast
import functools
import inspect
import re
from pathlib import Path

from twins import NUMPY, PYTORCH

TESTS = Path(__file__).parent
HELPERS = {path.stem for path in TESTS.glob("*.py")}
EQUATION = re.compile(
    r"[Ll]ecture notes, (?:equations? ((?:\(\d+\)(?:, | and | to )?)+)"
    r"|(sections? \d+(?: and \d+)?))"
)

# What a test uses, and what the listing calls it.
TOOLS = {
    "check_backward": "central differences",
    "torch.autograd.grad": "autograd",
    "given": "properties",
}
LAYERS = (
    "RNN",
    "LSTM",
    "GRU",
    "MultiheadAttention",
    "LayerNorm",
    "RMSNorm",
    "Embedding",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
)
PACKAGES = ("transformers", "tokenizers", "tiktoken", "num2words")
# These speak of functions and hold none against a reference.
NOT_EVIDENCE = ("test_parity", "test_docstrings", "test_listing", "test_book", "test_claims")


def rows():
    """Return ``(function, equations, backends, oracles)`` for every public function."""
    used = _uses()
    found = []
    for name in sorted(NUMPY.keys() | PYTORCH.keys()):
        function = NUMPY.get(name) or PYTORCH[name]
        backends = [b for b, names in (("np", NUMPY), ("pt", PYTORCH)) if name in names]
        found.append((name, equations(function), backends, sorted(used.get(name, ()))))
    return found


def equations(function):
    """Return the notes' equations that a docstring, or that of the forward pass, names."""
    forward = NUMPY.get(re.sub(r"_(backward|with_vjp)$", "", function.__name__), function)
    references = (inspect.getdoc(forward) or "").partition("References")[2]
    named = [a or b for a, b in EQUATION.findall(" ".join(references.split()))]
    return ", ".join(dict.fromkeys(text.strip(" ,").removesuffix(" and") for text in named))


def _uses():
    """Map each function to the oracles of the tests that name it."""
    functions = NUMPY.keys() | PYTORCH.keys()
    used = {}
    for path in sorted(TESTS.glob("test_*.py")):
        if path.stem in NOT_EVIDENCE:
            continue
        for name in _module(path.stem).tests():
            words = _module(path.stem).words(name)
            named = functions & words
            suffixes = {word for word in words if word.startswith("_")}
            for suffix in suffixes:  # getattr(snp, f"{name}_backward")
                named |= {f + suffix for f in named} & functions
            oracles = {oracle for word in words if (oracle := _oracle(word))}
            for function in named:
                used.setdefault(function, set()).update(oracles or {"by hand"})
    return used


def _oracle(word):
    if word in TOOLS:
        return TOOLS[word]
    head, _, last = word.rpartition(".")
    if head == "torch.nn.functional" or (head == "torch.nn" and last in LAYERS):
        return word
    if word in ("torch.optim.AdamW", "torch.special.erf") or head == "torch.nn.utils":
        return word
    return word.partition(".")[0] if word.startswith(PACKAGES) and " " not in word else None


@functools.cache
def _module(name):
    return _Module(TESTS / f"{name}.py")


class _Module:
    """A module of the tests: what each of its names uses."""

    def __init__(self, path):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.aliases = {}
        self.nodes = {}
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                for alias in node.names:
                    self.aliases[alias.asname or alias.name] = f"{prefix}{alias.name}"
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.nodes[node.name] = node
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    for leaf in ast.walk(target):
                        if isinstance(leaf, ast.Name):
                            self.nodes[leaf.id] = node

    def tests(self):
        return [name for name in self.nodes if name.startswith("test_")]

    @functools.cache  # noqa: B019 (as many modules as there are files)
    def words(self, name):
        """Return the dotted names and the strings that a name of the module leads to."""
        seen, queue, words = set(), [(self, name)], set()
        while queue:
            module, current = queue.pop()
            if (module, current) in seen:
                continue
            seen.add((module, current))
            for word in _words(module.nodes[current]):
                head, _, rest = word.partition(".")
                full = f"{module.aliases.get(head, head)}{'.' if rest else ''}{rest}"
                words |= {word, full, full.rpartition(".")[2]} | ({full} if rest else set())
                if head in module.nodes:
                    queue.append((module, head))
                owner, _, member = full.partition(".")
                if owner in HELPERS and member in _module(owner).nodes:
                    queue.append((_module(owner), member))
        return words


def _words(node):
    for leaf in ast.walk(node):
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
            yield leaf.value
        elif isinstance(leaf, ast.Name):
            yield leaf.id
        elif isinstance(leaf, ast.Attribute):
            parts = [leaf.attr]
            while isinstance(leaf.value, ast.Attribute):
                leaf = leaf.value
                parts.append(leaf.attr)
            if isinstance(leaf.value, ast.Name):
                yield ".".join([leaf.value.id, *reversed(parts)])


def main():
    """Print the listing."""
    for name, notes, backends, oracles in rows():
        shown = ", ".join(o.replace("torch.nn.functional", "F") for o in oracles)
        print(f"{name:44} {notes or '-':16} {'+'.join(backends):6} {shown or 'NONE'}")


if __name__ == "__main__":
    main()
