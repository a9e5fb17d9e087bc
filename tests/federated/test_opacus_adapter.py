"""PyTorch models under our terms: needs torch and opacus (`pip install 'securecomp[torch]'`)."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from replaying import Replay

from securecomp.errors import BudgetError, ParameterError
from securecomp.privacy.ledger import Ledger


def missing(*names):
    """Whether a package is not there, without loading it."""
    from importlib.util import find_spec

    return [name for name in names if find_spec(name) is None]


def test_without_torch_the_error_says_how_to_get_it():
    code = (
        "import sys; sys.modules['torch'] = sys.modules['opacus'] = None\n"
        "try: import securecomp.federated.opacus\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "BackendUnavailableError PyTorch models need torch and opacus; pip install "
        "'securecomp[torch]'\n"
    )


if missing("torch", "opacus"):
    pytest.skip("torch and opacus are not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
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
    for (rows, labels), _ in zip(training, range(batches), strict=False):
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
    assert ours <= 3
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


def test_without_noise_it_is_our_trainers_model():
    """The same batches, clipping and division: two implementations, one model."""
    from securecomp.federated.dpmodels import DPLogisticRegression

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
        for rows, labels in training:
            (training.model(rows) - labels).square().mean().backward()
            if training.steps == 0 and isinstance(model[0].weight.grad_sample, list):
                break
        with pytest.raises(ParameterError, match="a step is one batch"):
            training.optimizer.step()


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_data_loader_is_refused(shuffle):
    model, optimizer, data = problem()
    loader = DataLoader(data, batch_size=20, shuffle=shuffle)
    with (
        pytest.raises(ParameterError, match="a DataLoader shuffles its rows"),
        private_training(model, optimizer, loader, **TERMS),
    ):
        raise AssertionError


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epsilon": None}, "say what is promised"),
        ({"delta": None}, "without a delta"),
        ({"sampling": "shuffle"}, "not what the promise is accounted for"),
        ({"unit": "patient", "records": 3}, "clips each row by itself"),
        ({"rate": 0.001}, "empty as a rule"),
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


def test_a_model_whose_rows_see_each_other_is_refused():
    model, optimizer, data = problem(layer=torch.nn.BatchNorm1d(5))
    with (
        pytest.raises(ParameterError, match="Opacus cannot train this model"),
        private_training(model, optimizer, data, **TERMS),
    ):
        raise AssertionError
