"""PyTorch models under our terms: needs torch and opacus (`pip install 'securecomp[torch]'`)."""

import io
import math
import warnings

import numpy as np
import pytest
from cases import each_case
from replaying import Replay

from securecomp.errors import BudgetError, ParameterError, RangeError
from securecomp.privacy.ledger import Ledger


def missing(*names):
    """Whether a package is not there, without loading it."""
    from importlib.util import find_spec

    return [name for name in names if find_spec(name) is None]


if missing("torch", "opacus"):
    pytest.skip("torch and opacus are not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from opacus.optimizers import DPOptimizer
    from torch.utils.data import DataLoader, TensorDataset

    from securecomp.federated.opacus import private_training

pytestmark = pytest.mark.filterwarnings("ignore")  # of their internals
TERMS = {"epsilon": 3, "delta": 1e-5, "rate": 0.1, "steps": 40, "clip": 1.0}


def problem(count=200, layer=None):
    g = np.random.default_rng(0)
    rows = g.normal(size=(count, 5))
    labels = (rows[:, :1] > 0).astype(float)
    data = TensorDataset(torch.tensor(rows).float(), torch.tensor(labels).float())
    torch.manual_seed(0)
    model = torch.nn.Sequential(*([layer] if layer else []), torch.nn.Linear(5, 1))
    return model, torch.optim.SGD(model.parameters(), lr=1.0), data


def go(training, batches=10**9):
    sizes = []
    for _, (rows, labels) in zip(range(batches), training, strict=False):
        training.optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        loss(training.model(rows), labels).backward()
        training.optimizer.step()
        sizes.append(len(rows))
    return sizes


def test_it_trains_as_promised():
    model, optimizer, data = problem()
    with private_training(model, optimizer, data, entropy=Replay(1), **TERMS) as training:
        sizes = go(training)
    assert len(sizes) == training.steps == 40
    assert len(set(sizes)) > 5  # Poisson samples, of about 20
    assert 14 < np.mean(sizes) < 26
    rows, labels = data.tensors
    assert ((model(rows) > 0) == labels).float().mean() > 0.8
    assert training.guarantee.epsilon == 3
    weaker = "floating-point noise (by Opacus, of a generator that is not cryptographic) of "
    assert weaker in str(training.guarantee)
    ours, theirs = training.spent(1e-5).epsilon, training.opacus_epsilon(1e-5)
    assert 2.99 < ours <= 3  # of all steps that were made, at their rate
    assert ours < theirs < 1.3 * ours  # Opacus bounds by Renyi divergence


def test_our_accountant_agrees_with_theirs_on_renyi_divergence():
    model, optimizer, data = problem()
    with private_training(model, optimizer, data, **TERMS) as training:
        go(training)
        assert training.spent(1e-5).bounds["RDP"] == pytest.approx(
            training.opacus_epsilon(1e-5), rel=0.02
        )


def test_it_replays():
    found = []
    for seed in (1, 1, 2):
        model, optimizer, data = problem()
        with private_training(model, optimizer, data, entropy=Replay(seed), **TERMS) as training:
            go(training)
        found.append(model[0].weight.detach().numpy().copy())
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_noise_is_not_that_of_torchs_own_seed():
    """Which programs set, to the same number each time."""
    found = []
    for seed in (1, 2):
        model, optimizer, data = problem()  # seeds torch
        terms = TERMS | {"rate": 1.0, "steps": 1}
        with private_training(model, optimizer, data, entropy=Replay(seed), **terms) as training:
            torch.manual_seed(0)
            go(training)
        found.append(model[0].weight.detach().clone())
    assert not torch.equal(*found)


def test_a_mean_is_over_the_declared_units():
    model, optimizer, data = problem()
    with private_training(model, optimizer, data, units=50, **TERMS) as training:
        assert training.schedule.expected == pytest.approx(5)
        assert training.optimizer.expected_batch_size == training.schedule.expected


def test_without_noise_it_is_our_trainers_model():
    """The same batches, clipping and division: two implementations, one model."""
    from securecomp.federated.dp_models import DPLogisticRegression

    model, optimizer, data = problem()
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.zero_()

    class Fixed:
        """The same seed for the batches in both; the adapter draws Opacus' seed before."""

        def __call__(self, size):
            return bytes(size)

    terms = {"noise_multiplier": 0, "rate": 0.2, "steps": 30}
    with private_training(model, optimizer, data, clip=0.7, entropy=Fixed(), **terms) as training:
        go(training)
    assert training.guarantee is None
    ours = DPLogisticRegression(clip=0.7, learning_rate=1.0, entropy=Fixed(), **terms)
    rows, labels = data.tensors
    ours.fit(rows.numpy(), labels.numpy()[:, 0])
    assert model[0].weight.detach().numpy() == pytest.approx(ours.coef_, abs=1e-4)
    assert model[0].bias.detach().numpy() == pytest.approx(ours.intercept_, abs=1e-4)


def test_empty_batches_are_steps():
    model, optimizer, data = problem(20)
    terms = TERMS | {"rate": 0.06, "steps": 30}
    with private_training(model, optimizer, data, entropy=Replay(4), **terms) as training:
        sizes = go(training)
    assert sizes.count(0) > 3
    assert training.steps == 30
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_the_ledger_pays_and_a_crash_spends_all(tmp_path):
    ledger = Ledger.create(tmp_path / "budget", "ward", 7, "1e-4")
    model, optimizer, data = problem()
    with private_training(model, optimizer, data, ledger=ledger, **TERMS) as training:
        assert len(ledger.state().open) == 1
        go(training)
    assert float(ledger.state().spent.epsilon) == 3
    model, optimizer, data = problem()
    crashing = private_training(model, optimizer, data, ledger=ledger, **TERMS)
    with pytest.raises(KeyboardInterrupt), crashing as training:  # noqa: PT012
        go(training, 3)
        raise KeyboardInterrupt
    assert float(ledger.state().spent.epsilon) == 6
    assert len(ledger.state().open) == 1
    model, optimizer, data = problem()
    with (
        pytest.raises(BudgetError, match="there is left"),
        private_training(model, optimizer, data, ledger=ledger, **TERMS),
    ):
        raise AssertionError


def test_a_step_that_nobody_paid_is_not_made():
    model, optimizer, data = problem()
    with private_training(model, optimizer, data, **TERMS) as training:
        go(training)
        before = model[0].weight.detach().clone()
        rows, labels = data.tensors
        training.optimizer.zero_grad()
        (training.model(rows) - labels).square().mean().backward()
        with pytest.raises(BudgetError, match="40 steps were paid for"):
            training.optimizer.step()
        assert torch.equal(before, model[0].weight)
        assert list(training) == []  # no batches are left either


def test_accumulated_batches_are_refused():
    model, optimizer, data = problem()
    with private_training(model, optimizer, data, **TERMS) as training:
        rows, labels = next(iter(training))
        for _ in range(2):
            (training.model(rows) - labels).square().mean().backward()
        with pytest.raises(ParameterError, match="a step is one batch"):
            training.optimizer.step()


def backward(training, rows, labels):
    training.optimizer.zero_grad()
    (training.model(rows) - labels).square().mean().backward()


def test_a_step_is_on_the_batch_that_was_drawn_for_it():
    """Rows of one's own, a batch used twice or in part: none of it is what is accounted."""
    model, optimizer, data = problem()
    before = model[0].weight.detach().clone()
    with private_training(model, optimizer, data, **TERMS) as training:
        step = training.optimizer.step
        backward(training, *data.tensors)
        with pytest.raises(ParameterError, match="the batch that was drawn for it"):
            step()
        rows, labels = next(iter(training))
        for own in (data.tensors, (rows[1:], labels[1:])):
            backward(training, *own)
            with pytest.raises(ParameterError, match="whole and once"):
                step()
        assert torch.equal(before, model[0].weight)
        backward(training, rows, labels)
        step()
        backward(training, rows, labels)
        with pytest.raises(ParameterError, match="whole and once"):
            step()
        assert training.steps == 1


def test_every_batch_gets_its_step():
    """Whoever leaves out empty batches tells by their missing noise that they were empty."""
    for steps in (30, 1):  # of one, it is the last
        model, optimizer, data = problem(20)
        terms = TERMS | {"rate": 0.06, "steps": steps}
        with (
            private_training(model, optimizer, data, entropy=Replay(4), **terms) as training,
            pytest.raises(ParameterError, match="also an empty one"),
        ):
            leave_out(training, 1 if steps > 1 else 10**9)


def leave_out(training, smallest):
    for rows, labels in training:
        if len(rows) >= smallest:
            backward(training, rows, labels)
            training.optimizer.step()


def test_steps_are_not_put_together():
    """Five backward passes over one batch under one noise would be five times the clip."""
    model, optimizer, data = problem()
    with private_training(model, optimizer, data, **TERMS) as training:
        training.optimizer.signal_skip_step(False)
        with pytest.raises(ParameterError, match="none is skipped"):
            training.optimizer.signal_skip_step(True)


def test_the_users_own_optimizer_makes_no_raw_step():
    model, optimizer, data = problem()
    before = model[0].weight.detach().clone()
    with private_training(model, optimizer, data, **TERMS) as training:
        rows, labels = next(iter(training))
        backward(training, rows, labels)
        with pytest.raises(ParameterError, match="neither clip nor noise"):
            optimizer.step()
        training.optimizer.step()
        assert not torch.equal(before, model[0].weight)
        with pytest.raises(ParameterError, match="neither clip nor noise"):
            optimizer.step()
    optimizer.step()  # whose it is again; there are no gradients


def test_noise_and_division_of_a_step():
    """One draw a step, of noise times clip, over the expected batch; also in empty ones."""
    model, optimizer, data = problem()
    terms = {"noise_multiplier": 500.0, "delta": 1e-5, "rate": 0.01, "steps": 1500, "clip": 0.5}
    moves = []
    with private_training(model, optimizer, data, entropy=Replay(2), **terms) as training:
        for rows, labels in training:
            before = model[0].weight.detach().clone()
            backward(training, rows, labels)
            training.optimizer.step()
            moves.append(model[0].weight.detach() - before)
    moves = torch.cat(moves).numpy() / (500 * 0.5 / 2.0)
    assert moves.std() == pytest.approx(1, rel=0.04)
    assert abs(np.corrcoef(moves[1:].ravel(), moves[:-1].ravel())[0, 1]) < 0.06


@each_case("crash", [True, False])
def test_nothing_of_a_row_is_left_in_the_model(crash):
    """A file of the whole model would have the last batch's gradients, which are its rows."""
    model, optimizer, data = problem()
    try:
        with private_training(model, optimizer, data, **TERMS) as training:
            go(training, 3)
            training.model(data.tensors[0])  # without a way back: what it saw would be kept
            if crash:
                backward(training, *data.tensors)
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    for parameter in model.parameters():
        assert vars(parameter) == {}
        assert parameter.grad is None
    for module in model.modules():
        assert not [name for name in vars(module) if "hooks" in name and vars(module)[name]]
        assert not hasattr(module, "activations")
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert vars(torch.load(file, weights_only=False)[0].weight) == {}


def test_a_model_is_trained_again():
    model, optimizer, data = problem()
    for _ in range(2):
        with private_training(model, optimizer, data, **TERMS) as training:
            go(training)
            assert training.steps == 40
    with (
        private_training(model, optimizer, data, **TERMS) as training,
        pytest.raises(ParameterError, match="hooks twice"),
        private_training(model, optimizer, data, **TERMS),
    ):
        raise AssertionError


def test_what_is_refused_leaves_the_model_alone():
    class Poor:
        def spending(self, *_):
            raise BudgetError("there is nothing left")

    model, optimizer, data = problem()
    with (
        pytest.raises(BudgetError),
        private_training(model, optimizer, data, ledger=Poor(), **TERMS),
    ):
        raise AssertionError
    with private_training(model, optimizer, data, **TERMS) as training:
        go(training)


@each_case("value", [math.nan, math.inf])
def test_a_row_that_is_no_number_does_not_become_the_model(value):
    model, optimizer, data = problem()
    data.tensors[0][3] = value
    with (
        pytest.raises(RangeError, match="NaN or infinite"),
        private_training(model, optimizer, data, entropy=Replay(1), **TERMS) as training,
    ):
        go(training)
    assert bool(torch.isfinite(model[0].weight).all())


class Rows(torch.utils.data.Dataset):
    """Rows of any shape, of which every second batch or so is empty."""

    def __init__(self, shape):
        self.shape = shape

    def __len__(self):
        return 20

    def __getitem__(self, place):
        row = np.full(5, place, np.float32)
        return self.shape(row, float(place % 2))


@each_case(
    "shape, parts",
    [
        (lambda row, label: (row, np.float32(label)), lambda batch: batch),
        (lambda row, label: (torch.tensor(row), label), lambda batch: batch),
        (lambda row, label: {"x": row, "y": label, "z": "name"}, lambda b: (b["x"], b["y"])),
        (lambda row, _: torch.tensor(row), lambda batch: (batch, batch[:, 0])),
    ],
)
def test_rows_of_any_shape_also_in_empty_batches(shape, parts):
    model, optimizer, _ = problem()
    sizes = []
    terms = TERMS | {"rate": 0.06}
    with private_training(model, optimizer, Rows(shape), entropy=Replay(1), **terms) as training:
        for batch in training:
            rows, labels = parts(batch)
            backward(training, rows, labels.float().reshape(-1, 1))
            training.optimizer.step()
            sizes.append(len(rows))
    assert len(sizes) == 40
    assert 0 in sizes


@each_case("shuffle", [True, False])
def test_a_data_loader_is_refused(shuffle):
    model, optimizer, data = problem()
    loader = DataLoader(data, batch_size=20, shuffle=shuffle)
    with (
        pytest.raises(ParameterError, match="a DataLoader shuffles its rows"),
        private_training(model, optimizer, loader, **TERMS),
    ):
        raise AssertionError


@each_case(
    "change, said",
    [
        ({"epsilon": None}, "say what is promised"),
        ({"delta": None}, "without a delta"),
        ({"sampling": "shuffle"}, "not what the promise is accounted for"),
        ({"unit": "patient", "records": 3}, "clips each row by itself"),
        ({"rate": 0.001}, "empty as a rule"),
        ({"rate": 0.001, "units": 10_000}, "empty as a rule"),
        ({"batches": 3}, "unexpected keyword argument 'batches'"),
        ({"clip": math.nan}, "clip"),
    ],
)
def test_terms_that_are_refused(change, said):
    model, optimizer, data = problem()
    with (
        pytest.raises(ParameterError, match=said),
        private_training(model, optimizer, data, **(TERMS | change)),
    ):
        raise AssertionError


def frozen(layer):
    return layer.requires_grad_(False)


@each_case(
    "layer",
    [
        lambda: torch.nn.BatchNorm1d(5),
        lambda: torch.nn.BatchNorm1d(5, affine=False),
        lambda: frozen(torch.nn.BatchNorm1d(5)),
        lambda: frozen(torch.nn.BatchNorm1d(5, track_running_stats=False)),
        lambda: torch.nn.InstanceNorm1d(5, track_running_stats=True),
    ],
)
def test_a_model_whose_rows_see_each_other_is_refused(layer):
    """Also in layers without anything to train, which Opacus does not look at."""
    model, optimizer, data = problem(layer=layer())
    with (
        pytest.raises(ParameterError, match=r"cannot train this model|mixes the rows"),
        private_training(model, optimizer, data, **TERMS),
    ):
        raise AssertionError


def test_a_layer_that_is_frozen_stays_so():
    layer = frozen(torch.nn.BatchNorm1d(5)).eval()
    model, optimizer, data = problem(layer=layer)
    optimizer = torch.optim.SGD(model[1].parameters(), lr=1.0)
    with private_training(model, optimizer, data, **TERMS) as training:
        go(training, 3)
        model.train()  # as loops do at the start of an epoch
        with pytest.raises(ParameterError, match="mixes the rows"):
            go(training, 1)


def test_parts_that_do_not_fit():
    model, optimizer, data = problem()
    other = torch.nn.Linear(5, 1)
    wrapped = DPOptimizer(optimizer, noise_multiplier=0.0, max_grad_norm=1.0, expected_batch_size=1)
    for wrong, said in (
        (torch.optim.SGD([*model.parameters(), *other.parameters()]), "and no others"),
        (torch.optim.SGD([torch.zeros(2)]), "parameters of this model"),
        (wrapped, "the plain optimizer"),
    ):
        with (
            pytest.raises(ParameterError, match=said),
            private_training(model, wrong, data, **TERMS),
        ):
            raise AssertionError
