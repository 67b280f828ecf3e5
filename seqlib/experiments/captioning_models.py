"""The networks of :mod:`seqlib.experiments.captioning`, and how they write."""

import torch
from torch import nn

from seqlib.pt import LayerNorm, additive_attention

__all__ = ["Captioner", "Classifier", "Encoder", "write"]

CELLS = 8  # rows and columns of the grid that the encoder makes of a picture


class Encoder(nn.Module):
    """Three convolutions: from a picture to a grid of 8 x 8 cells, each with its place.

    Two strides of 2 make one cell of 4 x 4 pixels. A cell sees the 15 x 15 pixels around it,
    so that a whole shape fits, and two shapes seldom. Row and column, from -1 to 1, are two
    more features: a convolution does the same everywhere and could not tell left from right.
    The other features of a cell are normalised first.
    """

    def __init__(self, channels):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(3, channels // 2, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels // 2, channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
        )
        self.norm = LayerNorm(channels)
        self.mix = nn.Linear(channels + 2, channels)

    def forward(self, images):
        """Map pictures ``(B, 32, 32, 3)`` to cells ``(B, 64, channels)``, row by row."""
        grid = self.convolutions(images.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        grid = self.norm(grid)  # (B, 8, 8, channels), each cell by itself
        place = torch.linspace(-1, 1, grid.shape[1])
        places = torch.stack(torch.meshgrid(place, place, indexing="ij"), dim=-1)
        grid = torch.cat([grid, places.expand(len(grid), -1, -1, -1)], dim=-1)
        return torch.relu(self.mix(grid)).flatten(1, 2)


class Captioner(nn.Module):
    """The encoder, and a GRU that writes and attends to the cells at every word.

    Without ``sees`` the cells are 0: the same decoder, blind.
    """

    def __init__(self, words, inputs, *, sees):
        super().__init__()
        C, H, inner = inputs["channels"], inputs["hidden"], inputs["inner"]
        self.sees = sees
        self.encoder = Encoder(C) if sees else None
        self.written = nn.Embedding(words, inputs["embedding"])
        self.begin = nn.Linear(C, H)
        self.decoder = nn.GRU(inputs["embedding"], H, batch_first=True)
        self.dropout = nn.Dropout(inputs["dropout"])
        self.head = nn.Linear(H + C, words)
        shapes = ((inner, H), (inner, C), (inner,))
        self.score = nn.ParameterList(torch.randn(s) / s[-1] ** 0.5 for s in shapes)

    def encode(self, images):
        """Return the cells, and the decoder's first state, made of their mean."""
        if self.sees:
            cells = self.encoder(images)
        else:
            cells = torch.zeros(len(images), CELLS**2, self.begin.in_features)
        return cells, torch.tanh(self.begin(cells.mean(dim=1)))[None]

    def decode(self, written, memory, state=None):
        """Return logits, the weights of the cells, and the state to go on from."""
        cells, first = memory
        written = self.dropout(self.written(written))
        queries, state = self.decoder(written, first if state is None else state)
        identity = torch.eye(cells.shape[1]).expand(len(cells), -1, -1)
        weights = additive_attention(queries, cells, identity, *self.score)
        # Dropout of the state, not of what is seen: a word must come from the picture.
        joined = torch.cat([self.dropout(queries), weights @ cells], dim=-1)
        return self.head(joined), weights, state


class Classifier(nn.Module):
    """The same encoder, and one softmax for each blank of the template."""

    def __init__(self, sizes, inputs):
        super().__init__()
        self.encoder = Encoder(inputs["channels"])
        self.inner = nn.Linear(CELLS**2 * inputs["channels"], inputs["hidden"])
        self.heads = nn.ModuleList(nn.Linear(inputs["hidden"], size) for size in sizes)

    def forward(self, images):
        """Return one array of logits for each blank."""
        x = torch.relu(self.inner(self.encoder(images).flatten(1)))
        return [head(x) for head in self.heads]


@torch.no_grad()
def write(model, images, *, begin, end, longest):
    """Return what a model writes, greedily: ids ``(B, T)``, and weights ``(B, T, 64)``."""
    memory = model.encode(images)
    token, state, done = (
        torch.full((len(images), 1), begin),
        None,
        torch.zeros(len(images)).bool(),
    )
    written, weights = [], []
    for _ in range(longest):
        logits, row, state = model.decode(token, memory, state)
        token = logits.argmax(dim=-1)
        written.append(token)
        weights.append(row)
        done |= token[:, 0] == end
        if done.all():
            break
    return torch.cat(written, dim=1), torch.cat(weights, dim=1)
