"""NumPy references: pure functions, each with its ``*_backward``.

``f_backward(dy, *args, **options)`` takes the gradient of the loss with respect to the output
of ``f`` (a tuple if there are several outputs), then exactly the arguments of ``f``, and
returns one gradient per positional floating-point argument, in order.
"""

from seqlib.np.activation import *
from seqlib.np.adamw import *
from seqlib.np.attention import *
from seqlib.np.attention_vjp import *
from seqlib.np.bptt import *
from seqlib.np.cache import *
from seqlib.np.decoder import *
from seqlib.np.decoder_vjp import *
from seqlib.np.feedforward import *
from seqlib.np.generation import *
from seqlib.np.gradients import *
from seqlib.np.gru import *
from seqlib.np.gru_vjp import *
from seqlib.np.gru_weights import *
from seqlib.np.loss import *
from seqlib.np.lstm import *
from seqlib.np.lstm_vjp import *
from seqlib.np.lstm_weights import *
from seqlib.np.masks import *
from seqlib.np.multihead import *
from seqlib.np.norm import *
from seqlib.np.positions import *
from seqlib.np.rnn import *
from seqlib.np.rnn_vjp import *
from seqlib.np.sampling import *
from seqlib.np.streaming import *
from seqlib.np.tokens import *
from seqlib.np.transformer import *
