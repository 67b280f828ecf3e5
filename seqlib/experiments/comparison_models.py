"""The four networks of the comparison, with one way to call them."""

from torch import nn
from torch.nn import init

from seqlib.experiments.charlm import Preset, build

__all__ = ["CELLS", "Recurrent", "Transformer", "detached", "make"]

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class Recurrent(nn.Module):
    """One recurrent layer between an embedding and a linear layer.

    It starts as the chapters recommend: the recurrent matrix of the plain network is
    orthogonal, and the gates that keep have a bias of 1.

    Parameters
    ----------
    kind : {"rnn", "lstm", "gru"}
        The cell.
    V, D, H : int
        Entries of the vocabulary, width of a token and of the state.
    keep : float, default=1.0
        Bias of the gate that keeps.
    """

    def __init__(self, kind, V, D, H, *, keep=1.0):
        super().__init__()
        self.embedding = nn.Embedding(V, D)
        self.recurrent = CELLS[kind](D, H, batch_first=True)
        self.head = nn.Linear(H, V)
        if kind == "rnn":
            init.orthogonal_(self.recurrent.weight_hh_l0)
        else:
            # The second block of rows: the forget gate; in a GRU of PyTorch, what is kept.
            init.constant_(self.recurrent.bias_ih_l0[H : 2 * H], keep)
            init.zeros_(self.recurrent.bias_hh_l0[H : 2 * H])

    def forward(self, ids, state=None):
        """Return logits of shape (B, T, V), and the state behind the last step."""
        y, state = self.recurrent(self.embedding(ids), state)
        return self.head(y), state


class Transformer(nn.Module):
    """The decoder of the small character model: RMSNorm, SwiGLU and rotary positions.

    Parameters
    ----------
    V, D, F : int
        Entries of the vocabulary, width of a token and of the feed-forward networks.
    context : int
        Longest sequence.
    layers, heads : int
        Their numbers.
    positions : str, default="rotary"
        As in :class:`seqlib.pt.DecoderConfig`.
    """

    def __init__(self, V, D, F, *, context, layers, heads, positions="rotary"):
        super().__init__()
        config = {
            "context": context,
            "dim": D,
            "n_layer": layers,
            "n_head": heads,
            "dim_feedforward": F,
            "norm_type": "rms",
            "feed_forward": "swiglu",
            "positions": positions,
            "bias": False,
        }
        self.decoder = build(Preset(config, batch_size=1, recipe=None), V)

    def forward(self, ids, state=None):
        """Return logits of shape (B, T, V), and None: nothing is carried."""
        return self.decoder(ids), None


def make(kind, V, inputs, context):
    """Return a fresh network; ``inputs["sizes"]`` makes all kinds equally large.

    Parameters
    ----------
    kind : str
        A cell, or ``"transformer"``.
    V : int
        Entries of the vocabulary.
    inputs : dict
        ``width`` D, ``sizes`` with H of each cell and F of the Transformer, ``layers``,
        ``heads`` and, if not rotary, ``positions`` of the Transformer.
    context : int
        Longest sequence that the Transformer reads.
    """
    D, size = inputs["width"], inputs["sizes"][kind]
    if kind in CELLS:
        return Recurrent(kind, V, D, size)
    shape = {"layers": inputs["layers"], "heads": inputs["heads"], "context": context}
    return Transformer(V, D, size, **shape, positions=inputs.get("positions", "rotary"))


def detached(state):
    """Return a state through which no gradient flows back."""
    if isinstance(state, tuple):
        return tuple(part.detach() for part in state)
    return None if state is None else state.detach()
