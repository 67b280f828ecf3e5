"""PyTorch twins: the functions of ``seqlib.np`` and the modules that own their parameters."""

from seqlib.pt.activation import *
from seqlib.pt.attention import *
from seqlib.pt.cache import *
from seqlib.pt.checkpoints import *
from seqlib.pt.decoder import *
from seqlib.pt.feedforward import *
from seqlib.pt.generation import *
from seqlib.pt.gradients import *
from seqlib.pt.gru import *
from seqlib.pt.loss import *
from seqlib.pt.lstm import *
from seqlib.pt.masks import *
from seqlib.pt.multihead import *
from seqlib.pt.norm import *
from seqlib.pt.positions import *
from seqlib.pt.rnn import *
from seqlib.pt.sampling import *
from seqlib.pt.tokens import *
from seqlib.pt.transformer import *
