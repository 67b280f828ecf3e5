"""The training loop: its arithmetic, its checkpoints after a kill, and what stops it."""

import math
import os
import pty
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

import seqlib.np as snp
from seqlib.experiments import checkpoint, training
from seqlib.experiments.training import (
    Recipe,
    learning_rate,
    make_update,
    mean_nats,
    seeded,
    train,
)
from seqlib.pt import cross_entropy


class Tiny(nn.Module):
    """A language model with dropout: embedding, hidden layer, scores."""

    def __init__(self, V=5, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding, self.dropout = nn.Embedding(V, 6), nn.Dropout(0.3)
        self.hidden, self.head = nn.Linear(6, 7), nn.Linear(7, V)

    def forward(self, ids):
        return self.head(torch.tanh(self.hidden(self.dropout(self.embedding(ids)))))


def draw(rng):
    ids = rng.integers(5, size=(4, 7))
    return ids[:, :-1], (ids[:, 1:] + ids[:, :-1]) % 5


def run(recipe, seed=0, **options):
    model = Tiny(seed=seed)
    return model, train(model, draw, recipe, **options)


def assert_same_parameters(a, b):
    for (name, p), q in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        assert torch.equal(p, q), name


# ---------------------------------------------------------------- arithmetic


def test_learning_rates_of_the_docstring():
    recipe = Recipe(10, lr=8, warmup=2, weight_decay=0)
    rates = [learning_rate(step, recipe) for step in range(10)]
    assert rates == [4, 8, 8, 7, 6, 5, 4, 3, 2, 1]


def test_learning_rate_without_warmup_ends_near_its_final_value():
    recipe = Recipe(4, lr=1.0, final_lr=0.2)
    assert_allclose([learning_rate(s, recipe) for s in range(5)], [1, 0.8, 0.6, 0.4, 0.2])
    assert learning_rate(3, Recipe(4, lr=1.0, warmup=4)) == 1


def test_matrices_decay_and_vectors_do_not():
    model = Tiny()
    model.hidden.bias.requires_grad_(False)
    decayed, others = training.parameter_groups(model, 0.3)
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.3, 0.0)
    for group, expected in (
        (decayed, [model.embedding.weight, model.hidden.weight, model.head.weight]),
        (others, [model.head.bias]),
    ):
        assert {id(p) for p in group["params"]} == {id(p) for p in expected}


@pytest.mark.parametrize("max_norm", [1e-2, 1e3])
def test_steps_are_those_of_the_numpy_optimiser(max_norm):
    recipe = Recipe(
        5,
        lr=0.1,
        warmup=2,
        final_lr=0.03,
        weight_decay=0.5,
        betas=(0.7, 0.9),
        max_norm=max_norm,
    )
    model = Tiny().double()
    model.dropout.p = 0.0
    params = {name: p.numpy().copy() for name, p in model.state_dict().items()}
    history = train(model, draw, recipe)

    rng, twin, states, losses = np.random.default_rng(0), Tiny().double(), ({}, {}), []
    twin.dropout.p = 0.0
    for step in range(5):
        twin.load_state_dict({name: torch.tensor(p) for name, p in params.items()})
        twin.zero_grad()
        inputs, targets = draw(rng)
        logits = twin(torch.tensor(inputs))
        losses.append(float(snp.cross_entropy(logits.detach().numpy(), targets)))
        training.next_token_loss(twin, torch.tensor(inputs), torch.tensor(targets)).backward()
        grads = {name: p.grad.numpy() for name, p in twin.named_parameters()}
        grads, _ = snp.clip_grad_norm(grads, max_norm=max_norm)
        for state, ndim, decay in zip(states, (2, 1), (0.5, 0.0), strict=True):
            names = [name for name in params if params[name].ndim == ndim]
            found, new = snp.adamw_step(
                {name: params[name] for name in names},
                {name: grads[name] for name in names},
                state,
                lr=learning_rate(step, recipe),
                betas=(0.7, 0.9),
                weight_decay=decay,
            )
            params |= found
            state.update(new)
    assert_allclose(history.losses, losses, rtol=1e-10)
    for name, p in model.state_dict().items():
        assert_allclose(p, params[name], rtol=1e-9, atol=1e-12)


def test_training_learns_what_can_be_learned():
    def copied(rng):
        ids = rng.integers(5, size=(8, 6))
        return ids, ids

    model = Tiny()
    history = train(model, copied, Recipe(300, lr=0.03, warmup=10))
    assert history.losses[0] == pytest.approx(math.log(5), abs=0.5)
    assert mean_nats(model, np.repeat(np.arange(5), 2)[:2], T=4) < 0.05
    assert not model.training


def test_equal_seeds_give_equal_results():
    recipe = Recipe(6, lr=0.01)
    (model, history), (again, history2) = run(recipe), run(recipe)
    assert history == history2
    assert_same_parameters(model, again)
    assert run(Recipe(6, lr=0.01, seed=1))[1].losses != history.losses
    # PyTorch's own generator does not matter, and is left where it was.
    other = Tiny()
    torch.manual_seed(99)
    state = torch.get_rng_state()
    assert train(other, draw, recipe) == history
    assert torch.equal(torch.get_rng_state(), state)


def test_validation_is_called_on_time_and_changes_nothing():
    calls = []

    def validate(model):
        assert not model.training
        assert not torch.is_grad_enabled()
        torch.rand(3)
        calls.append(model.head.bias.clone())
        return len(calls)

    model, history = run(Recipe(7, lr=0.1, validate_every=3), validate=validate)
    assert history.validation == [(3, 1.0), (6, 2.0), (7, 3.0)]
    assert torch.equal(calls[-1], model.head.bias)
    plain, losses = run(Recipe(7, lr=0.1))
    assert losses.losses == history.losses
    assert_same_parameters(model, plain)


@pytest.mark.parametrize("ignored", [0, 5, 24])
def test_loss_is_the_cross_entropy_of_the_library(ignored, rng):
    model, ids = Tiny().eval(), torch.tensor(rng.integers(5, size=(4, 6)))
    targets = ids.clone()
    targets.view(-1)[:ignored] = -100
    loss = training.next_token_loss(model, ids, targets)
    assert loss.item() == pytest.approx(cross_entropy(model(ids), targets).item(), rel=1e-6)
    loss.backward()
    if ignored == 24:  # pytorch/pytorch#70348
        assert loss == 0
        assert not any(p.grad.any() for p in model.parameters())


# A short window at the end must not weigh as much as a whole batch (xnmt#229).
@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 100])
def test_mean_nats_counts_every_position_once(n, rng):
    model, ids = Tiny().double().eval(), rng.integers(5, size=n)
    expected = []
    for start in range(0, n - 1, 4):  # windows of 4 inputs
        for t in range(start, min(start + 4, n - 1)):
            logits = model(torch.tensor(ids[None, start : t + 1]))[0, -1]
            expected.append(-torch.log_softmax(logits, -1)[ids[t + 1]].item())
    assert len(expected) == n - 1
    for batch_size in (1, 3, 64):
        found = mean_nats(model, ids, T=4, batch_size=batch_size)
        assert found == pytest.approx(np.mean(expected))


def test_windows_of_mean_nats_do_not_see_each_other():
    seen = []

    def model(ids):
        seen.extend(map(tuple, ids.tolist()))
        return torch.zeros(*ids.shape, 9)

    assert mean_nats(model, np.arange(9), T=3) == pytest.approx(math.log(9))
    assert seen == [(0, 1, 2), (3, 4, 5), (6, 7)]


# ---------------------------------------------------------------- checkpoints

# Dies as by ``kill -9`` while it writes its third checkpoint, at step 21.
SCRIPT = """
import io, os, signal, sys, torch
sys.path.insert(0, {tests!r})
from test_training import run_in_one_thread

save, count = torch.save, 0

def torn(state, file):
    global count
    count += 1
    if count == 3:
        whole = io.BytesIO()
        save(state, whole)
        file.write(whole.getvalue()[:2000])
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    save(state, file)

torch.save = torn
run_in_one_thread({path!r})
"""


def run_in_one_thread(path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return run(
            Recipe(60, lr=0.02, warmup=5, validate_every=10),
            validate=lambda model: model.head.bias.sum(),
            checkpoint=path,
            save_every=7,
        )
    finally:
        torch.set_num_threads(threads)


def test_a_killed_run_continues_bit_by_bit(tmp_path):
    path, whole = tmp_path / "killed.pt", tmp_path / "whole.pt"
    script = SCRIPT.format(tests=os.path.dirname(__file__), path=str(path))
    process = subprocess.run([sys.executable, "-c", script])
    assert process.returncode == -signal.SIGKILL
    assert (tmp_path / "killed.pt.part").stat().st_size == 2000
    killed = torch.load(path, weights_only=True)
    assert int(killed["optimizer"]["state"][0]["step"]) == 14

    run_in_one_thread(path)
    model, history = run_in_one_thread(whole)
    assert len(history.losses) == 60
    found, expected = (torch.load(p, weights_only=True) for p in (path, whole))
    assert found.keys() == expected.keys()
    for name in ("identity", "history", "numpy_rng"):
        assert found[name] == expected[name], name
    assert torch.equal(found["torch_rng"], expected["torch_rng"])
    for name, p in model.state_dict().items():
        assert torch.equal(found["model"][name], p), name
    for i, state in expected["optimizer"]["state"].items():
        for name, value in state.items():
            assert torch.equal(found["optimizer"]["state"][i][name], value), (i, name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["killed.pt", "whole.pt"]


def interrupted(after, recipe, path, **options):
    """Train until the draw of a batch fails."""
    count = 0

    def failing(rng):
        nonlocal count
        count += 1
        if count > after:
            raise KeyboardInterrupt
        return draw(rng)

    with pytest.raises(KeyboardInterrupt):
        train(Tiny(), failing, recipe, checkpoint=path, **options)


@pytest.mark.parametrize("after", [4, 5, 9])
def test_steps_after_the_last_checkpoint_are_made_again(after, tmp_path):
    recipe, path = Recipe(10, lr=0.02, warmup=3), tmp_path / "run.pt"
    interrupted(after, recipe, path, save_every=4)
    model, history = run(recipe, seed=7, checkpoint=path)  # what the model holds is replaced
    expected, losses = run(recipe)
    assert history == losses
    assert_same_parameters(model, expected)
    # A finished run is read and not trained on.
    again, history = run(recipe, seed=7, checkpoint=path)
    assert history == losses
    assert_same_parameters(again, expected)


def test_a_failing_save_leaves_the_checkpoint_before(tmp_path, monkeypatch):
    recipe, path = Recipe(10, lr=0.02), tmp_path / "run.pt"
    interrupted(4, recipe, path, save_every=4)
    before = path.read_bytes()

    def torn(state, file):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(checkpoint.torch, "save", torn)
    with pytest.raises(OSError, match="no space"):
        run(recipe, checkpoint=path, save_every=4)
    assert path.read_bytes() == before
    monkeypatch.undo()
    assert run(recipe, checkpoint=path)[1] == run(recipe)[1]
    assert [p.name for p in tmp_path.iterdir()] == ["run.pt"]


@pytest.mark.parametrize(
    ("recipe", "identity", "message"),
    [
        (Recipe(9, lr=0.02), {"text": "a"}, "a run with steps = 9, got 8 in .*run.pt; use"),
        (Recipe(8, lr=0.03), {"text": "a"}, "a run with lr = 0.03, got 0.02"),
        (Recipe(8, lr=0.02, seed=1), {"text": "a"}, "a run with seed = 1, got 0"),
        (Recipe(8, lr=0.02), {"text": "b"}, "a run with text = 'b', got 'a'"),
        (Recipe(8, lr=0.02), {"text": "b" * 99}, r"a run with text = 'b{56}\.\.\., got 'a'"),
        (Recipe(8, lr=0.02), {}, "a run with text = None, got 'a'"),
        (Recipe(8, lr=0.02), {"text": "a", "more": 1}, "a run with more = 1, got None"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(recipe, identity, message, tmp_path):
    path = tmp_path / "run.pt"
    interrupted(2, Recipe(8, lr=0.02), path, save_every=1, identity={"text": "a"})
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"^checkpoint must be of {message}"):
        run(recipe, checkpoint=path, identity=identity)
    assert path.read_bytes() == before


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    interrupted(2, Recipe(8, lr=0.02), path, save_every=1)
    message = r"^checkpoint\['embedding.weight'\] must have shape \(6, 6\), got \(5, 6\)"
    with pytest.raises(ValueError, match=message):
        train(Tiny(V=6), draw, Recipe(8, lr=0.02), checkpoint=path)


@pytest.mark.parametrize("content", [b"", b"text", "another"])
def test_a_file_that_is_no_checkpoint_is_refused(content, tmp_path):
    path = tmp_path / "run.pt"
    if content == "another":
        torch.save({"model": {}}, path)
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"^checkpoint must be a file that train wrote, got .*pt"
    ):
        run(Recipe(2), checkpoint=path)
    assert path.read_bytes() == before


# ---------------------------------------------------------------- what stops a run


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run(value, tmp_path):
    path, count = tmp_path / "run.pt", 0

    def loss(model, inputs, targets):
        nonlocal count
        count += 1
        return training.next_token_loss(model, inputs, targets) * (value if count == 4 else 1)

    with pytest.raises(
        ValueError, match=rf"^loss must be finite, got {value} at step 3; lower"
    ):
        run(Recipe(6, lr=0.01), loss=loss, checkpoint=path, save_every=1)
    state = torch.load(path, weights_only=True)
    assert int(state["optimizer"]["state"][0]["step"]) == 3
    assert all(p.isfinite().all() for p in state["model"].values())


def test_a_gradient_that_is_not_finite_stops_the_run():
    def loss(model, inputs, targets):
        zero = model.head.bias.sum() * 0
        return training.next_token_loss(model, inputs, targets) + torch.sqrt(zero)  # d/dx inf

    with pytest.raises(
        ValueError, match=r"^gradient must be finite, got a norm of nan at step 0"
    ):
        run(Recipe(3, lr=0.01), loss=loss)


@pytest.mark.parametrize("factor", [math.nan, math.inf])
def test_an_update_that_is_refused_changes_nothing(factor):
    model, expected = Tiny(), Tiny()
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(ValueError, match=r"^loss must be finite, got (nan|inf) at step 0; low"):
        make_update(model, optimizer, factor * model.head.weight.abs().sum())
    assert_same_parameters(model, expected)


def test_an_update_has_its_rate_and_its_norm():
    model = nn.Linear(2, 1, bias=False)
    # Its step is the rate times the gradient, so that both are seen.
    optimizer, seen = torch.optim.SGD(model.parameters(), lr=0.5), []
    for options in ({"max_norm": math.inf}, {}, {"rate": 2.0}, {}):
        before = model.weight.detach().clone()
        loss = (model.weight * torch.tensor([3.0, 4.0])).sum()  # a gradient of length 5
        assert make_update(model, optimizer, loss, **options) == loss.item()
        seen.append((before - model.weight.detach()).norm().item())
    assert_allclose(seen, [2.5, 0.5, 2.0, 2.0], rtol=1e-5)


def test_what_is_drawn_from_a_seed_leaves_the_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seeded(7):
        drawn = torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(7)
    assert torch.equal(torch.rand(3), drawn)


def test_a_rate_that_is_far_too_high_stops_the_run():
    with pytest.raises(ValueError, match=r"^(loss|gradient) must be finite, got .* lower lr"):
        run(Recipe(50, lr=1e38, weight_decay=0))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps": 0}, "steps must be a positive integer, got 0"),
        ({"lr": 0}, "lr must be positive and finite, got 0"),
        ({"lr": math.nan}, "lr must be positive and finite, got nan"),
        ({"warmup": 6}, "warmup must lie between 0 and steps = 5, got 6"),
        ({"warmup": -1}, "warmup must lie between 0 and steps = 5, got -1"),
        ({"final_lr": 1}, "final_lr must lie between 0 and lr = 0.001, got 1"),
        ({"weight_decay": 1000}, r"weight_decay must lie in \[0, 1 / lr\), got 1000"),
        ({"weight_decay": -0.1}, "weight_decay must lie in .* got -0.1"),
        ({"betas": (0.9, 1)}, r"betas must be two numbers in \[0, 1\), got \(0.9, 1\)"),
        ({"betas": (0.9,)}, "betas must be two numbers"),
        ({"max_norm": 0}, "max_norm must be positive and finite, got 0"),
        ({"validate_every": 0}, "validate_every must be a positive integer, got 0"),
    ],
)
def test_a_recipe_out_of_range_is_refused(fields, message):
    with pytest.raises(ValueError, match=rf"^{message}"):
        Recipe(**{"steps": 5, **fields})


def test_other_arguments_are_checked():
    with pytest.raises(ValueError, match=r"^save_every must be a positive integer, got 0$"):
        run(Recipe(1), save_every=0)
    with pytest.raises(ValueError, match=r"^ids must hold at least 2 tokens, .* got 1$"):
        mean_nats(Tiny(), np.zeros(1, int), T=3)
    with pytest.raises(ValueError, match=r"^ids must have shape \(n,\), got \(2, 3\)"):
        mean_nats(Tiny(), np.zeros((2, 3), int), T=3)
    with pytest.raises(ValueError, match=r"^T must be a positive integer, got 0"):
        mean_nats(Tiny(), np.zeros(4, int), T=0)


# ---------------------------------------------------------------- progress


def test_nothing_is_shown_away_from_a_terminal(capfd):
    run(Recipe(3))
    assert capfd.readouterr() == ("", "")


def read_to_the_end(terminal):
    """Return all that was written to a terminal whose other end is closed."""
    parts = []
    while True:
        try:
            parts.append(os.read(terminal, 1 << 16))
        except OSError:  # Linux says so instead of returning nothing
            return b"".join(parts).decode()
        if not parts[-1]:
            return b"".join(parts).decode()


def test_a_terminal_shows_how_far_the_run_is(monkeypatch):
    shown, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
        _, history = run(Recipe(3), validate=lambda model: 0.25)
        monkeypatch.undo()
    text = read_to_the_end(shown)
    os.close(shown)
    assert "3/3" in text
    assert f"loss {history.losses[-1]:.3f}, validation 0.2500" in text
