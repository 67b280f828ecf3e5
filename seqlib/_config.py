"""What a decoder-only language model consists of; shared by both backends, needs neither."""

from dataclasses import dataclass

from seqlib._check import (
    check_boolean,
    check_choice,
    check_divisible,
    check_ids,
    check_positive,
    check_shape,
    dtype_name,
)

__all__ = ["DecoderConfig"]


@dataclass(frozen=True)
class DecoderConfig:
    """Choices that fix the parameters and the arithmetic of a decoder-only language model.

    The defaults are those of GPT-2, at a small size. LLaMA is ``norm_type="rms"``,
    ``feed_forward="swiglu"``, ``positions="rotary"``, ``bias=False``.

    Parameters
    ----------
    vocab_size : int
        Entries of the vocabulary, V.
    context : int
        Longest sequence that the model reads.
    dim : int, default=128
        Width of the tokens, D.
    n_layer : int, default=4
        Number of layers.
    n_head : int, default=4
        Number of attention heads, N; divides ``dim``.
    dim_feedforward : int, optional
        Width F of the feed-forward network; ``4 * dim`` if not given.
    norm : {"pre", "post"}, default="pre"
        Where the norms stand; with ``"pre"`` there is one more after the last layer.
    norm_type : {"layer", "rms"}, default="layer"
        LayerNorm or RMSNorm.
    feed_forward : {"gelu", "gelu_tanh", "relu", "swiglu"}, default="gelu"
        Nonlinearity of the feed-forward network, or its gated form.
    positions : {"learned", "sinusoidal", "rotary", "none"}, default="learned"
        How the model learns the order of the tokens. With ``"sinusoidal"`` the token vectors
        are multiplied by the root of ``dim``, as in the original Transformer: positions of
        size 1 would otherwise hide tokens of size 0.02.
    tie_weights : bool, default=True
        Whether the output layer uses the embedding matrix.
    bias : bool, default=True
        Whether the linear maps of the layers have biases (SwiGLU has none).
    dropout : float, default=0.0
        Probability of a zero after the embedding and at the end of each part of a layer,
        while a PyTorch model trains. The NumPy model has no dropout.
    eps : float, default=1e-5
        The norms' epsilon.
    rotary_base : float, default=10000.0
        Base of the rotary positions.

    Raises
    ------
    ValueError
        If a value is outside its range.
    """

    vocab_size: int
    context: int
    dim: int = 128
    n_layer: int = 4
    n_head: int = 4
    dim_feedforward: int | None = None
    norm: str = "pre"
    norm_type: str = "layer"
    feed_forward: str = "gelu"
    positions: str = "learned"
    tie_weights: bool = True
    bias: bool = True
    dropout: float = 0.0
    eps: float = 1e-5
    rotary_base: float = 10000.0

    def __post_init__(self):
        """Check every field once, here."""
        if self.dim_feedforward is None:
            object.__setattr__(self, "dim_feedforward", 4 * self.dim)
        for name in ("vocab_size", "context", "dim", "n_layer", "n_head", "dim_feedforward"):
            check_positive(name, getattr(self, name))
        check_divisible("dim", self.dim, "n_head", self.n_head)
        check_choice("norm", self.norm, ("pre", "post"))
        check_choice("norm_type", self.norm_type, ("layer", "rms"))
        check_choice("feed_forward", self.feed_forward, ("gelu", "gelu_tanh", "relu", "swiglu"))
        check_choice("positions", self.positions, ("learned", "sinusoidal", "rotary", "none"))
        if self.positions == "rotary" and self.dim // self.n_head % 2 != 0:
            raise ValueError(
                f"dim / n_head must be even with rotary positions, got {self.dim} / "
                f"{self.n_head} = {self.dim // self.n_head}"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout}")
        for name in ("eps", "rotary_base"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")

    def shapes(self):
        """Return the name and shape of every parameter, in the order of the ``state_dict``."""
        shapes = {"embedding.weight": (self.vocab_size, self.dim)}
        if self.positions == "learned":
            shapes["positions.weight"] = (self.context, self.dim)
        layer = layer_shapes(
            self.dim,
            self.dim_feedforward,
            norm_type=self.norm_type,
            swiglu=self.feed_forward == "swiglu",
            bias=self.bias,
        )
        for i in range(self.n_layer):
            shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
        if self.norm == "pre":
            shapes |= _norm_shapes("norm", self.dim, self.norm_type)
        if not self.tie_weights:
            shapes["head.weight"] = (self.vocab_size, self.dim)
        return shapes


def layer_shapes(dim, dim_feedforward, *, norm_type, swiglu, bias, cross=False):
    """Return the name and shape of every parameter of one Transformer layer."""
    shapes = {}
    for name in ("self_attn", "multihead_attn") if cross else ("self_attn",):
        shapes[f"{name}.in_proj_weight"] = (3 * dim, dim)
        if bias:
            shapes[f"{name}.in_proj_bias"] = (3 * dim,)
        shapes |= _linear_shapes(f"{name}.out_proj", dim, dim, bias)
    if swiglu:
        shapes |= _linear_shapes("gate_proj", dim_feedforward, dim, False)
        shapes |= _linear_shapes("up_proj", dim_feedforward, dim, False)
        shapes |= _linear_shapes("down_proj", dim, dim_feedforward, False)
    else:
        shapes |= _linear_shapes("linear1", dim_feedforward, dim, bias)
        shapes |= _linear_shapes("linear2", dim, dim_feedforward, bias)
    for i in range(1, 4 if cross else 3):
        shapes |= _norm_shapes(f"norm{i}", dim, norm_type)
    return shapes


def check_params(params, shapes, *, what="params"):
    """Raise ``ValueError`` unless the dict ``params`` has exactly these names and shapes."""
    missing, unknown = shapes.keys() - params.keys(), params.keys() - shapes.keys()
    if missing or unknown:
        raise ValueError(
            f"{what} must hold one array for each of {len(shapes)} names, got "
            f"{len(params)}; missing: {sorted(missing)}; unknown: {sorted(unknown)}"
        )
    for name, shape in shapes.items():
        check_shape(f"{what}[{name!r}]", params[name], shape)


def check_precision(params):
    """Raise ``ValueError`` unless all arrays are float32, or all float64."""
    found = {dtype_name(p) for p in params.values()}
    if found not in ({"float32"}, {"float64"}):
        raise ValueError(
            f"params must be float32 throughout, or float64, got {sorted(found)}; "
            "convert them with .astype(np.float32)"
        )


def check_decoder_input(ids, config, is_padding):
    """Raise ``ValueError`` unless the model can read these token ids."""
    check_shape("ids", ids, ("B", "T"))
    check_ids("ids", ids, config.vocab_size)
    T = ids.shape[1]
    if not 1 <= T <= config.context:
        raise ValueError(
            f"ids must hold 1 to {config.context} tokens per sequence (the context), got {T}; "
            f"cut them, for example to the last ones with ids[:, -{config.context}:]"
        )
    if is_padding is not None:
        check_boolean("is_padding", is_padding, "True = padding")
        check_shape("is_padding", is_padding, tuple(ids.shape))
        starts = is_padding[:, :-1] & ~is_padding[:, 1:]  # where real tokens follow padding
        if bool((starts.sum(1) + ~is_padding[:, 0] > 1).any()):
            raise ValueError(
                "is_padding must leave the real tokens of a row in one piece, got padding "
                "between them; pad at the left or at the right end"
            )


def _linear_shapes(name, outputs, inputs, bias):
    shapes = {f"{name}.weight": (outputs, inputs)}
    return shapes | {f"{name}.bias": (outputs,)} if bias else shapes


def _norm_shapes(name, dim, norm_type):
    shapes = {f"{name}.weight": (dim,)}
    return shapes | {f"{name}.bias": (dim,)} if norm_type == "layer" else shapes
