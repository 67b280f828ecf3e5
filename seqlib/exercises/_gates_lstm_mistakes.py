"""The known mistakes in the backward pass of an LSTM step."""

from seqlib.exercises.record import Misconception

PATHS = "lstm#two-paths"
DERIVATIVES = "lstm#gate-derivatives"

MISCONCEPTIONS = (
    # Into the cell state
    Misconception(
        "later_dC_missing",
        "The gradient dC that comes in from later steps is not used: C_t gets only what comes "
        "through h_t.",
        PATHS,
        "apache/mxnet#4057",
    ),
    Misconception(
        "through_h_missing",
        "The cell state gets only dC: what comes through h_t is left out.",
        PATHS,
        "our own: h_t depends on C_t too",
    ),
    Misconception(
        "through_h_without_o",
        "On the way from h_t to C_t the output gate is left out.",
        PATHS,
        "our own: the derivative of a product keeps the other factor",
    ),
    Misconception(
        "tanh_derivative_missing",
        "On the way from h_t to C_t the derivative of the tanh is left out.",
        PATHS,
        "our own: the tanh of the hidden state skipped",
    ),
    Misconception(
        "tanh_derivative_of_tanh",
        "The derivative of the tanh is taken at tanh(C_t), which applies the tanh twice.",
        PATHS,
        "nicklashansen/rnn_lstm_from_scratch#1",
    ),
    Misconception(
        "tanh_derivative_of_value",
        "The derivative of the tanh is computed as 1 - C_t^2, as if C_t were the tanh.",
        PATHS,
        "our own: 1 - y^2 holds for y = tanh(C)",
    ),
    Misconception(
        "tanh_derivative_of_old_cell",
        "The derivative of the tanh is taken at the cell state before the step.",
        PATHS,
        "our own: C_{t-1} in the place of C_t",
    ),
    # Out of the cell state
    Misconception(
        "dC_prev_without_f",
        "dC_prev is the gradient of C_t itself, without the forget gate.",
        "lstm#backward",
        "our own: the path of the cell state taken for an identity",
    ),
    Misconception(
        "dC_prev_from_later_alone",
        "dC_prev is computed from dC as it comes in, without what C_t gets through h_t.",
        PATHS,
        "our own: the sum is made, and the old dC used",
    ),
    Misconception(
        "forget_gate_new_cell",
        "The gradient of the forget gate is computed with C_t, not with the cell state that "
        "the gate has multiplied.",
        "lstm#backward",
        "our own: C_t in the place of C_{t-1}",
    ),
    Misconception(
        "forget_input_exchanged",
        "The gradient of the forget gate is computed with the candidate, and that of the input "
        "gate with the old cell state.",
        "lstm#backward",
        "our own: the partners of the two gates exchanged",
    ),
    Misconception(
        "candidate_without_i",
        "The gradient of the candidate lacks the input gate.",
        "lstm#backward",
        "our own: the derivative of a product keeps the other factor",
    ),
    Misconception(
        "output_gate_without_tanh",
        "The gradient of the output gate is computed with C_t, not with its tanh.",
        "lstm#backward",
        "nicodjimenez/lstm#30",
    ),
    # Through the nonlinearities
    Misconception(
        "sigmoid_derivative_missing",
        "The derivative of the sigmoid is left out in all three gates.",
        DERIVATIVES,
        "our own: the gradient of a gate taken for that of its sum",
    ),
    Misconception(
        "sigmoid_derivative_missing_f",
        "The derivative of the sigmoid is left out in the forget gate.",
        DERIVATIVES,
        "CaptainE/RNN-LSTM-in-numpy#1",
    ),
    Misconception(
        "candidate_derivative_missing",
        "The derivative of the candidate's tanh is left out.",
        DERIVATIVES,
        "llSourcell/LSTM_Networks#4",
    ),
    Misconception(
        "candidate_like_a_gate",
        "The candidate gets the derivative of a sigmoid.",
        DERIVATIVES,
        "our own: the candidate treated as a fourth gate",
    ),
    # To the arguments
    Misconception(
        "output_gate_not_followed",
        "dx and dh_prev lack what comes through the output gate.",
        "lstm#backward",
        "our own: the output gate does not reach C_t, but it reads h_{t-1} and x_t",
    ),
    Misconception(
        "one_bias",
        "db_i and db_o are those of the forget gate.",
        "lstm#backward",
        "hanbt/learn_dl#53",
    ),
    Misconception(
        "biases_not_summed",
        "The gradients of the biases have one row for each row of the batch: they are not "
        "summed.",
        "lstm#backward",
        "mlpack/mlpack#3679",
    ),
    Misconception(
        "dh_prev_first",
        "The gradients are returned in another order: dh_prev stands where dx belongs.",
        "lstm#backward",
        "our own: the order of [h, x]",
    ),
)
