"""The network's derivatives against PyTorch's, and its attack with PyTorch's gradients."""

import numpy as np
import pytest
from cases import each_case
from replaying import Replay

from securecomp.audit.reconstruction.gradient_matching import match_gradient
from securecomp.audit.reconstruction.two_layer_net import Network

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the extra [torch]")


def by_torch(network, rows, aims):
    """The flat gradient, as a function that can be derived again."""
    parts = [torch.tensor(part, requires_grad=True) for part in network._parts()]
    inner, inner_bias, outer, outer_bias = parts
    hidden = torch.sigmoid(rows @ inner.T + inner_bias)
    scores = hidden @ outer.T + outer_bias
    loss = -(torch.tensor(aims) * torch.log_softmax(scores, dim=1)).sum()
    slopes = torch.autograd.grad(loss, parts, create_graph=True)
    return torch.cat([slope.reshape(-1) for slope in slopes])


@each_case("seed", range(4))
def test_both_derivatives(seed):
    rng = np.random.default_rng(seed)
    network = Network.draw(7, 6, 4, Replay(seed), spread=3.0)
    data, aims = rng.uniform(size=(5, 7)), np.eye(4)[rng.integers(4, size=5)]
    direction = rng.normal(size=network.parameters)
    rows = torch.tensor(data, requires_grad=True)
    gradient = by_torch(network, rows, aims)
    assert network.gradient(data, aims) == pytest.approx(gradient.detach().numpy(), abs=1e-12)
    (pulled,) = torch.autograd.grad(gradient @ torch.tensor(direction), rows)
    assert network.pull(data, aims, direction) == pytest.approx(pulled.numpy(), abs=1e-12)


def test_a_row_comes_out_of_a_gradient_that_torch_computed():
    rng = np.random.default_rng(9)
    network = Network.draw(30, 20, 4, Replay(9))
    data, aims = rng.uniform(size=(2, 30)), np.eye(4)[[1, 3]]
    gradient = by_torch(network, torch.tensor(data), aims).detach().numpy()
    found = match_gradient(network, gradient, aims, entropy=Replay(0))
    assert found.rows == pytest.approx(data, abs=1e-6)
