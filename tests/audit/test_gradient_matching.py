"""Images come out of a small network's gradient, and no longer out of a large sum."""

import numpy as np
import pytest
from cases import each_case, named, some_or_all
from replaying import Replay
from scipy.optimize import approx_fprime
from sklearn.datasets import load_digits

from securecomp.audit.reconstruction.gradient_matching import (
    _cosine,
    _squared,
    gradient_matching,
    match_gradient,
    paired,
)
from securecomp.audit.reconstruction.similarity import psnr, ssim
from securecomp.audit.reconstruction.two_layer_net import Network
from securecomp.errors import ParameterError
from securecomp.protocol.secure_sum import secure_sum

IMAGES, DIGITS = load_digits(return_X_y=True)
IMAGES = IMAGES / 16
AIMS = np.eye(10)[DIGITS]


@pytest.fixture(scope="module")
def network():
    return Network.draw(64, 32, 10, Replay("network"))


def small(seed):
    rng = np.random.default_rng(seed)
    network = Network.draw(5, 4, 3, Replay(seed), spread=2.0)
    return network, rng.uniform(size=(3, 5)), np.eye(3)[rng.integers(3, size=3)], rng


@each_case("seed", range(5))
def test_the_gradient_is_the_slope_of_the_loss(seed):
    network, rows, aims, _ = small(seed)
    flat = np.concatenate([part.reshape(-1) for part in network._parts()])
    slope = approx_fprime(flat, lambda f: Network(*network.split(f)).loss(rows, aims), 1e-7)
    assert network.gradient(rows, aims) == pytest.approx(slope, abs=2e-6)


@each_case("seed", range(5))
def test_the_second_derivative_is_the_slope_of_the_gradient(seed):
    network, rows, aims, rng = small(seed)
    direction = rng.normal(size=network.parameters)

    def product(flat):
        return network.gradient(flat.reshape(rows.shape), aims) @ direction

    step = 1e-5  # central differences
    unit = np.eye(rows.size)
    slope = [
        (product(rows.reshape(-1) + step * e) - product(rows.reshape(-1) - step * e)) / (2 * step)
        for e in unit
    ]
    found = network.pull(rows, aims, direction).reshape(-1)
    assert found == pytest.approx(np.array(slope), abs=1e-8)


@each_case("between", [_squared, _cosine])
def test_the_slope_of_a_distance(between):
    rng = np.random.default_rng(0)
    gradient, seen = rng.normal(size=(2, 9))
    slope = approx_fprime(gradient, lambda g: between(g, seen)[0], 1e-7)
    assert between(gradient, seen)[1] == pytest.approx(slope, abs=1e-5)
    assert between(seen, seen)[0] == pytest.approx(0, abs=1e-15)
    assert between(np.zeros(9), seen)[0] == 1


@each_case("distance", ["squared", "cosine"])
@each_case("seed", range(5))
def test_one_image_comes_out_of_its_gradient(network, distance, seed):
    place = 97 * seed
    leak = gradient_matching(
        network,
        IMAGES[[place]],
        AIMS[[place]],
        IMAGES[[place + 1]],
        distance=distance,
        restarts=2,
        steps=400,
        entropy=Replay(seed),
    )
    assert leak.members.psnr[0] > 40
    assert leak.members.ssim[0] > 0.99
    assert leak.guess.psnr[0] < 20
    assert leak.others.psnr[0] < 20


@some_or_all("seeds", 1, 3)
def test_a_few_images_come_out_of_a_secure_sum_and_many_do_not(network, seeds):
    for seed in range(seeds):
        with named(seed):
            few_come_out(network, seed)


def few_come_out(network, seed):
    """Eight sites with one image each, through the real sum; then with twenty each."""
    # Neighbours in the file are of one hand: mixed, so that the others are of the same kind.
    order = np.random.default_rng(seed).permutation(len(IMAGES))
    known = order[800:]
    means = np.array([IMAGES[known[DIGITS[known] == c]].mean(axis=0) for c in range(10)])
    near = {}
    for per_site in (1, 20):
        places, others = order[: 8 * per_site], order[400 : 400 + 8 * per_site]
        sites = {
            f"site {s}": network.gradient(IMAGES[places[s::8]], AIMS[places[s::8]])
            for s in range(8)
        }
        opened = secure_sum(sites, bound=per_site, bits=24, entropy=Replay(seed)).values
        near[per_site] = gradient_matching(
            network,
            IMAGES[places],
            AIMS[places],
            IMAGES[others],
            gradient=opened,
            guess=means[DIGITS[places]],
            steps=150,
            entropy=Replay(seed),
        )
    few, many = near[1], near[20]
    assert few.members.recovered >= 7
    assert few.guess.recovered <= 1
    assert np.median(few.members.psnr) > 23
    assert many.members.recovered < 0.15 * 160
    assert np.median(many.members.psnr) < 18
    assert np.median(many.members.psnr) - np.median(many.others.psnr) < 3
    assert "of 160" in str(many)
    assert "does not prove" in str(many)


def test_one_site_comes_out_of_a_sum_whose_other_rows_are_known(network):
    """Aggregation is no differential privacy."""
    places = np.arange(40)
    opened = network.gradient(IMAGES[places], AIMS[places])
    rest = network.gradient(IMAGES[places[1:]], AIMS[places[1:]])
    first = IMAGES[:1], AIMS[:1], IMAGES[50:51]
    leak = gradient_matching(network, *first, gradient=opened - rest, entropy=Replay(0))
    assert leak.members.psnr[0] > 60


def test_noise_hides_what_a_search_would_find(network):
    noise = np.random.default_rng(0).normal(size=network.parameters)
    gradient = network.gradient(IMAGES[:1], AIMS[:1])
    first = IMAGES[:1], AIMS[:1], IMAGES[50:51]
    leak = gradient_matching(
        network, *first, gradient=gradient + np.linalg.norm(gradient) * noise, entropy=Replay(0)
    )
    assert leak.members.recovered == 0


def test_the_pairing_is_the_best_one():
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(6, 4))
    assert (paired(rows[[3, 1, 0, 5, 2, 4]], rows) == rows).all()


def test_the_guess_is_given_its_best_order_too(network):
    """As what is found: otherwise a search would seem to find what it was given."""
    turned = IMAGES[[1, 2, 0]]
    leak = gradient_matching(
        network, IMAGES[:3], AIMS[:3], IMAGES[3:6], guess=turned, steps=1, entropy=Replay(0)
    )
    assert leak.guess.recovered == 3


def test_more_searches_are_never_worse(network):
    seen = network.gradient(IMAGES[:5], AIMS[:5])
    distances = [
        match_gradient(network, seen, AIMS[:5], restarts=n, steps=3, entropy=Replay(1)).distance
        for n in range(1, 7)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > distances[-1]


def test_psnr_and_ssim():
    rng = np.random.default_rng(0)
    image = rng.uniform(size=(1, 64))
    assert psnr(image, image).tolist() == [np.inf]
    assert ssim(image, image) == pytest.approx([1])
    assert psnr(np.full((1, 4), 0.6), np.full((1, 4), 0.5)) == pytest.approx([20])
    assert abs(ssim(rng.uniform(size=(1, 4000)), rng.uniform(size=(1, 4000)))[0]) < 0.1
    assert ssim(1 - image, image)[0] < -0.5
    with pytest.raises(ParameterError, match="give one shape"):
        psnr(image, image[:, :9])


def test_what_is_infinite_is_no_json(network):
    import json

    leak = gradient_matching(
        network, IMAGES[:1], AIMS[:1], IMAGES[1:2], guess=IMAGES[0], steps=1, entropy=Replay(0)
    )
    facts = leak.to_json()
    assert facts["guess"]["psnr"] is None
    json.loads(json.dumps(facts, allow_nan=False))


def changed(**how):
    return {"rows": IMAGES[:2], "targets": AIMS[:2], "others": IMAGES[2:4]} | how


@each_case(
    "how, message",
    [
        (changed(rows=IMAGES[:2] * 16), "values must be from 0 to 1"),
        (changed(others=IMAGES[2:4] - 1), "others: values must be from 0 to 1"),
        (changed(others=IMAGES[2:5]), "shape of the rows"),
        (changed(targets=AIMS[:3]), "do not fit a model of 64 features"),
        (changed(rows=IMAGES[:2, :9]), "do not fit a model of 64 features"),
        (changed(gradient=np.ones(7)), "2410 parameters and 10 classes; the gradient has 7"),
        (changed(gradient=np.zeros(2410)), "the gradient is zero"),
        (changed(gradient=np.full(2410, np.nan)), "element 1 is NaN"),
        (changed(guess=np.ones(63)), r"the guess has shape \(63,\)"),
        (changed(guess=np.full(64, 1.5)), "the guess must be within 0.0 and 1.0"),
        (changed(distance="absolute"), 'distance must be "squared" or "cosine"'),
        (changed(steps=0), "restarts and steps at least 1"),
    ],
)
def test_what_is_refused(network, how, message):
    with pytest.raises(ParameterError, match=message):
        gradient_matching(network, **how)


def test_bounds_that_leave_no_room(network):
    with pytest.raises(ParameterError, match="low must be below high"):
        match_gradient(network, np.ones(2410), AIMS[:1], low=1, high=1)


def test_parameters_that_are_no_network():
    with pytest.raises(ParameterError, match="not form two dense layers"):
        Network(np.ones((4, 3)), np.ones(4), np.ones((2, 5)), np.ones(2))
    with pytest.raises(ParameterError, match="not 0, 4 and 2"):
        Network.draw(0, 4, 2)
