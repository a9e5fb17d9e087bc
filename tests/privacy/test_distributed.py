"""Noise that is added in parts: what sums promise, how it is calibrated, and who refuses what."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from scipy import optimize, stats

from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.privacy import noise_distributions
from securecomp.privacy.distributed import KINDS, plan
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.privacy.rotation import Encoding
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.secure_sum import secure_sum
from securecomp.protocol.session import Layout
from securecomp.secagg.client import Client
from securecomp.secagg.masked_sum import Masking
from securecomp.secagg.server import Server

ONE = UnitChange(1, 1, 1.0, one=True)


def delta_by_hand(mass, shift, epsilon):
    """Sum over outputs of what one side has beyond e^epsilon times the other, from a dict."""
    return sum(max(0.0, p - math.exp(epsilon) * mass.get(x + shift, 0.0)) for x, p in mass.items())


def whole(half):
    return {x: float(half[abs(x)]) for x in range(-len(half) + 1, len(half))}


def test_sums_of_narrow_discrete_gaussians_are_not_discrete_gaussian():
    """Four of sigma 0.5: delta .295 at epsilon .5, where one of sigma 1 would have .204."""
    quarter = noise_distributions.gaussian_mass(0.25, 30)
    true = noise_distributions.exact_delta(noise_distributions.sum_mass(quarter, 4), 1, 0.5)
    naive = noise_distributions.exact_delta(noise_distributions.gaussian_mass(1.0, 40), 1, 0.5)
    assert round(true, 3) == 0.295
    assert round(naive, 3) == 0.204
    by_hand = {}
    for parts in itertools.product(range(-6, 7), repeat=4):
        p = math.prod(float(quarter[abs(x)]) for x in parts)
        by_hand[sum(parts)] = by_hand.get(sum(parts), 0.0) + p
    assert math.isclose(delta_by_hand(by_hand, 1, 0.5), true, rel_tol=1e-9)


def test_the_naive_claim_is_refused():
    with pytest.raises(ParameterError, match=r"local sigma 0\.5 are added: below 2"):
        noise_distributions.gaussian_delta(ONE, 0.25, 4, 0.5)
    assert noise_distributions.gaussian_delta(ONE, 0.25, 1, 0.5) > 0.2  # one alone is what it is


def test_wide_discrete_gaussians_add_up_to_nearly_one():
    exact = noise_distributions.exact_delta(
        noise_distributions.sum_mass(noise_distributions.gaussian_mass(6.25, 60), 4), 1, 0.5
    )
    claimed = noise_distributions.gaussian_delta(ONE, 6.25, 4, 0.5)
    assert f"{exact:.4g}" == f"{claimed:.4g}" == "0.0004978"
    assert claimed >= exact * (1 - 1e-12)


@each_case("sigma, parties", [(2.0, 2), (2.0, 6), (2.5, 4), (3.0, 3)])
def test_tau_bounds_what_sums_differ_by(sigma, parties):
    total = noise_distributions.sum_mass(noise_distributions.gaussian_mass(sigma**2, 60), parties)[
        :40
    ]
    one = noise_distributions.gaussian_mass(parties * sigma**2, 400)[:40]
    far = np.abs(np.log(total / one)).max()
    assert far <= noise_distributions.tau(sigma, parties) + 1e-11


def test_tau_is_the_formula():
    expected = 10 * sum(math.exp(-2 * math.pi**2 * 0.25 * k / (k + 1)) for k in (1, 2, 3))
    assert math.isclose(noise_distributions.tau(0.5, 4), expected)
    assert noise_distributions.tau(3.0, 1) == 0.0


def renyi(mass, shift, order):
    logs = [
        order * math.log(mass[x]) + (1 - order) * math.log(mass[x + shift])
        for x in mass
        if x + shift in mass and mass[x] > 1e-290 and mass[x + shift] > 1e-290
    ]
    top = max(logs)
    return (top + math.log(sum(math.exp(v - top) for v in logs))) / (order - 1)


@each_case("variance", [5.0, 20.0, 200.0])
@each_case("shift", [1, 3])
def test_the_bound_on_skellams_divergence_is_above_the_true_one(variance, shift):
    """Theorem 3.5 against divergences summed up."""
    change = UnitChange(1, shift, float(shift))
    bounds = dict(
        zip(
            noise_distributions._ORDERS,
            noise_distributions.skellam_rdp(change, variance),
            strict=True,
        )
    )
    mass = whole(noise_distributions.skellam_mass(variance, 400))
    for order in (2, 3, 8, 20):
        exact = renyi(mass, shift, order)
        assert exact <= bounds[order] * (1 + 1e-9)
        assert bounds[order] <= exact * (1 + 3 / variance + 8 * order * shift / variance)


@each_case("variance", [Fraction(1, 4), Fraction(5), Fraction(1000)])
@each_case("l1, l2", [(1, 1), (3, 3), (40, 7), (1000, 2)])
def test_the_bound_on_skellams_divergence_is_the_theorems(l1, l2, variance):
    """In fractions; what is less may be true, as it is of one number, but nobody proved it."""
    found = noise_distributions.skellam_rdp(UnitChange(1000, l1, float(l2)), float(variance))
    for order, bound in zip(noise_distributions._ORDERS, found, strict=True):
        a = int(order)
        gauss = Fraction(a * l2**2) / (2 * variance)
        first = Fraction((2 * a - 1) * l2**2 + 6 * l1) / (4 * variance**2)
        second = Fraction(3 * l1) / (2 * variance)
        assert bound == pytest.approx(float(gauss + min(first, second)), rel=1e-12)


@each_case("shift", [1, 2, 7])
@each_case("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_exact_delta_is_the_sum(shift, epsilon):
    for half in (
        noise_distributions.skellam_mass(9.0, 90),
        noise_distributions.gaussian_mass(9.0, 90),
    ):
        by_hand = delta_by_hand(whole(half), shift, epsilon)
        assert math.isclose(
            noise_distributions.exact_delta(half, shift, epsilon), by_hand, rel_tol=1e-9
        )


def test_large_sigma_gives_the_continuous_gaussians_delta():
    """Balle, Wang 2018, theorem 8, for the Gaussian of sigma 1 and sensitivity 1."""
    for epsilon, published in ((0.5, 0.2384217), (1.0, 0.1269367), (2.0, 0.0209236)):
        change = UnitChange(1, 300, 300.0, one=True)
        assert math.isclose(
            noise_distributions.gaussian_delta(change, 9e4, 1, epsilon), published, rel_tol=1e-4
        )
        assert math.isclose(
            noise_distributions.skellam_delta(change, 9e4, epsilon), published, rel_tol=1e-4
        )


def test_renyi_conversion_is_the_gaussians_to_its_slack():
    change = UnitChange(10, 1, 1.0)
    sigma = math.sqrt(noise_distributions.gaussian_variances((change,), 1.0, 1e-5, 1)[0])
    assert 3.730632 < sigma < 3.730632 * 1.10


@each_case("kind", KINDS)
@each_case("epsilon", [0.1, 1.0, 5.0])
def test_plans_keep_their_promise_with_the_honest_parts_alone(kind, epsilon):
    """Recomputed from what the parts are, without the code that calibrated them."""
    for parties, colluding, dropouts in ((2, 1, 0), (6, 1, 0), (10, 3, 2)):
        made = plan(kind, [ONE], epsilon, 1e-6, parties, colluding=colluding, dropouts=dropouts)
        assert made.honest == parties - colluding - dropouts
        assert made.needed == parties - dropouts
        part = float(made.parts[0])
        if kind == "laplace":
            assert made.parts[0] * Fraction(epsilon) == 1  # one part is enough: 1/b = epsilon
            assert made.delta == 0
            continue
        if kind == "skellam":
            half = noise_distributions.skellam_mass(part * made.honest, 3000)
        else:
            assert made.honest == 1 or part >= 4
            half = noise_distributions.gaussian_mass(part, 3000)
            half = (
                half
                if made.honest == 1 or part > 1000
                else noise_distributions.sum_mass(half[:300], made.honest)
            )
        if len(half) > 6:
            found = delta_by_hand(whole(half), 1, epsilon)
            assert found <= 1e-6 * (1 + 1e-6)
            if kind == "skellam" and made.parts[0] > 1:
                less = noise_distributions.skellam_mass(part * made.honest * 0.99, 3000)
                assert delta_by_hand(whole(less), 1, epsilon) > 1e-6


@each_case("kind", ["skellam", "discrete-gaussian"])
def test_several_blocks_are_paid_from_one_budget(kind):
    blocks = [ONE, UnitChange(4, 365, 365.0), UnitChange(8, 6, 3.0)]
    made = plan(kind, blocks, 1.0, 1e-6, 5)
    total = [
        noise_distributions.skellam_rdp(c, float(p) * 4)
        if kind == "skellam"
        else noise_distributions.gaussian_rdp(c, float(p), 4)
        for c, p in zip(blocks, made.parts, strict=True)
    ]
    assert noise_distributions.delta_of_rdp(sum(total), 1.0) <= 1e-6
    alone = plan(kind, blocks[:1], 1.0, 1e-6, 5)
    assert made.parts[0] >= alone.parts[0]


def test_laplace_blocks_share_epsilon():
    made = plan("laplace", [ONE, UnitChange(4, 10, 10.0)], 0.5, 0, 3)
    assert sum(Fraction(c.l1) / p for c, p in zip(made.changes, made.parts, strict=True)) == 0.5
    assert made.accountant == "pure"


def test_which_accountant():
    assert plan("skellam", [ONE], 1.0, 1e-6, 3).accountant == "exact"
    assert plan("skellam", [UnitChange(2, 2, 2.0)], 1.0, 1e-6, 3).accountant == "RDP"
    assert (
        plan("skellam", [UnitChange(1, 10**7, 1e7, one=True)], 1.0, 1e-6, 3).accountant
        == "analytic"
    )


@each_case("kind", KINDS)
def test_error_bars_hold(kind, replay):
    """95 % at least, and not much more, of sums by the sampler itself."""
    for epsilon, parties in ((1.0, 2), (1.0, 8), (0.1, 3)):
        made = plan(kind, [UnitChange(4000, 1, 1.0, one=True)], epsilon, 1e-6, parties)
        total = np.zeros(4000, np.int64)
        for party in range(parties):
            total += np.array(made.draw(0, replay(party)))
        inside = (np.abs(total) <= made.half_width(0)).mean()
        assert 0.94 < inside < 0.99
        spread = total.std() / made.deviation(0)
        assert 0.93 < spread < 1.07


@each_case("kind", KINDS)
def test_noise_is_within_its_headroom(kind, replay):
    made = plan(kind, [UnitChange(50_000, 3, 3.0, one=True)], 1.0, 1e-6, 4)
    assert max(map(abs, made.draw(0, replay(1)))) <= made.reach(0)
    assert noise_distributions.reach(100.0) > 13 * 10
    # Bernstein's bound against the distribution.
    half = noise_distributions.skellam_mass(100.0, 400)
    assert half[noise_distributions.reach(100.0, bits=20) :].sum() < 2**-20


def test_every_integer_gets_noise(replay):
    """No coordinate goes without: with much noise none stays what it was."""
    made = plan("skellam", [UnitChange(500, 1, 1.0, one=True)], 0.001, 1e-9, 3)
    noised = made.add(0, [7] * 500, replay(1))
    assert sum(n == 7 for n in noised) < 5
    assert len(set(noised)) > 450
    for wrong in ([7] * 499, [7] * 501):
        with pytest.raises(ParameterError, match="planned for 500 integers"):
            made.add(0, wrong, replay(1))


def test_parties_draw_different_noise():
    made = plan("skellam", [UnitChange(50, 1, 1.0, one=True)], 0.1, 1e-6, 3)
    assert made.draw(0) != made.draw(0)


@each_case("protocol", ["sharing", "masking"])
def test_negative_noised_counts_come_out_negative(protocol, replay):
    """A count of nothing with noise below nothing is not decoded as a huge one."""
    made = plan("skellam", [UnitChange(64, 1, 1.0, one=True)], 0.5, 1e-6, 4)
    parts = {f"site {i}": made.add(0, [0] * 64, replay(i)) for i in range(4)}
    total = secure_sum(parts, bound=1 + made.reach(0), protocol=protocol)
    expected = np.sum(list(parts.values()), axis=0)
    assert total.values.tolist() == expected.tolist()
    assert 20 < (total.values < 0).sum() < 44
    assert np.abs(total.values).max() <= 4 * made.deviation(0)


def test_wide_noise_goes_through_limbs(replay):
    change = UnitChange(3, 10**20, 1e20)
    made = plan("skellam", [change], 1.0, 1e-6, 3)
    parts = {f"site {i}": made.add(0, [10**19] * 3, replay(i)) for i in range(3)}
    total = secure_sum(parts, bound=10**19 + made.reach(0))
    assert total.integers == [sum(column) for column in zip(*parts.values(), strict=True)]
    assert min(abs(n - 3 * 10**19) for n in total.integers) > 2**32


def test_a_sum_of_too_few_is_refused():
    made = plan("skellam", [ONE], 1.0, 1e-6, 10, dropouts=3)
    made.check(7)
    with pytest.raises(ThresholdError, match=r"too few contributors.*\(6 of at least 7\)"):
        made.check(6)
    with pytest.raises(ThresholdError, match="nobody would be left"):
        plan("skellam", [ONE], 1.0, 1e-6, 4, colluding=2, dropouts=2)
    with pytest.raises(ThresholdError, match="nobody would be left"):
        plan("skellam", [ONE], 1.0, 1e-6, 1)


def masked_until_vectors(minimum, names, gone, made):
    """Run masking up to the survivors; `gone` clients never send their vector."""
    carrier = LocalCarrier()
    protocol = Masking().requiring(minimum, len(names))
    session = protocol.session(carrier, Layout(1, 5 + made.reach(0)), names)
    clients = {name: Client(session, name, carrier.identity(name)) for name in names}
    server = Server(session, "server", carrier.identity("server"))
    for client in clients.values():
        server.receive(client.advertise())
    messages = server.close()
    for name, client in clients.items():
        server.receive(client.share(messages[name]))
    messages = server.close()
    for name, client in clients.items():
        data = client.mask(messages[name], np.array(made.add(0, [5]), np.int64))
        if name not in gone:
            server.receive(data)
    return session, clients, server


def test_masking_opens_nothing_below_the_noise_that_was_promised():
    """The threshold of secrecy alone would allow 5 of 8; the noise needs 7."""
    names = tuple(f"site {i}" for i in range(8))
    made = plan("skellam", [ONE], 1.0, 1e-6, 8, dropouts=1)
    assert made.needed == 7
    _, _, server = masked_until_vectors(made.needed, names, names[:1], made)
    assert set(server.close()) == set(names[1:])
    _, _, server = masked_until_vectors(made.needed, names, names[:2], made)
    with pytest.raises(ThresholdError, match="nothing was revealed"):
        server.close()


def test_masking_clients_refuse_a_server_that_goes_on_with_too_few():
    names = tuple(f"site {i}" for i in range(8))
    made = plan("skellam", [ONE], 1.0, 1e-6, 8, dropouts=1)
    _, clients, server = masked_until_vectors(made.needed, names, names[:2], made)
    server.parameters = replace(server.parameters, minimum=5)
    messages = server.close()
    for name in names[2:]:
        with pytest.raises(ThresholdError, match="too few survivors to hide among"):
            clients[name].unmask(messages[name])


def test_masking_never_goes_below_what_secrecy_needs():
    carrier = LocalCarrier()
    names = tuple(f"site {i}" for i in range(8))
    session = Masking().requiring(3, 8).session(carrier, Layout(1, 5), names)
    assert session.terms["minimum"] == 5
    with pytest.raises(ThresholdError, match="too few clients"):
        Masking().requiring(2, 2)


@each_case(
    "arguments, message",
    [
        (("uniform", [ONE], 1.0, 1e-6, 3), "noise is one of skellam"),
        (("skellam", [ONE], 0.0, 1e-6, 3), "epsilon is a positive finite"),
        (("skellam", [ONE], -1.0, 1e-6, 3), "epsilon is a positive finite"),
        (("skellam", [ONE], math.nan, 1e-6, 3), "epsilon is a positive finite"),
        (("skellam", [ONE], math.inf, 1e-6, 3), "epsilon is a positive finite"),
        (("skellam", [ONE], 1.0, 0.0, 3), "cannot keep delta 0"),
        (("discrete-gaussian", [ONE], 1.0, 0.0, 3), "cannot keep delta 0"),
        (("skellam", [ONE], 1.0, 1.0, 3), "delta is from 0 to below 1"),
        (("skellam", [ONE], 1.0, math.nan, 3), "delta is from 0 to below 1"),
        (("skellam", [], 1.0, 1e-6, 3), "at least one block"),
    ],
)
def test_bad_plans(arguments, message):
    with pytest.raises(ParameterError, match=message):
        plan(*arguments)
    with pytest.raises(ParameterError, match="colluding must be from 0"):
        plan("skellam", [ONE], 1.0, 1e-6, 3, colluding=-1)


def test_bad_changes():
    for bad in ((0, 1, 1.0), (1, 0, 0.0), (1, 1, 2.0), (1, 1, 0.0), (1, 1, math.nan)):
        with pytest.raises(ParameterError, match="a unit changes"):
            UnitChange(*bad)


# Vectors.

SEED = bytes(range(32))


def test_vectors_come_back_within_rounding(replay):
    rng = np.random.default_rng(1)
    encoding = Encoding(100, clip=3.0, scale=1000.0, seed=SEED)
    rows = rng.normal(size=(20, 100))
    rows *= (rng.uniform(0.5, 2.9, 20) / np.linalg.norm(rows, axis=1))[:, None]
    total = encoding.decode(encoding.encode(rows, replay(1)))
    assert total.shape == (100,)
    # Rounding: 20 units of variance at most 1/4 on 128 coordinates, turned back.
    assert np.abs(total - rows.sum(axis=0)).max() < 6 * math.sqrt(20 / 4) / 1000


def test_long_vectors_are_clipped_and_short_ones_are_not(replay):
    encoding = Encoding(8, clip=2.0, scale=1e6, seed=SEED)
    long = np.full((1, 8), 1e300)
    clipped = encoding.decode(encoding.encode(long, replay(1)))
    assert math.isclose(np.linalg.norm(clipped), 2.0, rel_tol=1e-4)
    assert np.allclose(clipped, 2 / math.sqrt(8), rtol=1e-4)
    assert np.allclose(encoding.decode(encoding.encode(np.zeros((1, 8)), replay(2))), 0, atol=1e-5)


def test_no_unit_changes_more_than_the_encoding_says(replay):
    """Also the worst: all of the length in one coordinate, and rounding that lengthens most."""
    for scale in (0.3, 1.0, 10.0):
        encoding = Encoding(60, clip=1.0, scale=scale, seed=SEED)
        change = encoding.change()
        rows = [np.eye(60)[i] for i in range(60)] + [np.full(60, 1 / math.sqrt(60))]
        for i, row in enumerate(rows):
            integers = np.array(encoding.encode([row], replay(i)))
            assert np.linalg.norm(integers) <= change.l2 * (1 + 1e-12)
            assert np.abs(integers).sum() <= change.l1
            assert np.abs(integers).max() <= encoding.bound(1)


def test_the_inflated_sensitivity_is_the_papers():
    """Proposition 22 with beta = e^-1/2."""
    encoding = Encoding(1000, clip=2.0, scale=100.0, seed=SEED)
    c, d = 200.0, 1024
    first, second = (c + 32) ** 2, c * c + d / 4 + (c + 16)
    assert encoding.square == math.floor(min(first, second))
    twice = encoding.change("replace-one")
    assert twice.l2 == 2 * encoding.change().l2
    with pytest.raises(ParameterError, match="relation is"):
        encoding.change("none")


def test_the_rotation_spreads_a_spike(replay):
    encoding = Encoding(1024, clip=1.0, scale=1e6, seed=SEED)
    spike = encoding.encode([np.eye(1024)[3]], replay(1))
    assert max(map(abs, spike)) < 1e6 / 32 + 2
    flat = np.full((1, 1024), 1 / 32)
    other = replace(encoding, seed=bytes(32))
    assert encoding.encode(flat, replay(1)) != other.encode(flat, replay(1))


def test_rounding_is_right_on_average():
    encoding = Encoding(4, clip=1.0, scale=2.3, seed=SEED)
    row = np.array([[0.3, -0.2, 0.5, 0.1]])
    totals = np.mean([encoding.decode(encoding.encode(row)) for _ in range(3000)], axis=0)
    assert np.abs(totals - row[0]).max() < 0.05


def test_a_noised_vector_sum_is_as_far_off_as_said(replay):
    rng = np.random.default_rng(3)
    encoding = Encoding(200, clip=1.0, scale=200.0, seed=SEED)
    made = plan("skellam", [encoding.change()], 2.0, 1e-5, 4)
    rows = {f"site {i}": rng.normal(size=(5, 200)) / 40 for i in range(4)}
    parts = {
        name: made.add(0, encoding.encode(part, replay(name)), replay(f"noise {name}"))
        for name, part in rows.items()
    }
    total = secure_sum(parts, bound=encoding.bound(5) + made.reach(0))
    error = encoding.decode(total.integers) - sum(part.sum(axis=0) for part in rows.values())
    expected = math.hypot(made.deviation(0), math.sqrt(20 / 4)) / encoding.scale
    assert 0.85 * expected < error.std() < 1.15 * expected
    assert stats.normaltest(error).pvalue > 1e-6


@each_case(
    "arguments, message",
    [
        ((0, 1.0, 1.0), "at least one element"),
        ((4, 0.0, 1.0), "clip is a positive"),
        ((4, math.inf, 1.0), "clip is a positive"),
        ((4, 1.0, math.nan), "scale is a positive"),
        ((4, 1e10, 1e10), "beyond 2\\^52"),
    ],
)
def test_bad_encodings(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Encoding(*arguments, seed=SEED)


def test_bad_vectors():
    encoding = Encoding(4, 1.0, 10.0, SEED)
    with pytest.raises(ParameterError, match="shape"):
        encoding.encode([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(RangeError, match="row 2 has a NaN"):
        encoding.encode([[1, 2, 3, 4], [1, math.nan, 3, 4]])
    with pytest.raises(ParameterError, match="a total has 4"):
        encoding.decode([1, 2])


def test_the_discrete_gaussian_calibration_is_the_analytic_one_when_noise_is_wide():
    """Against the analytic Gaussian solved here: sensitivity 500, so that the grid is fine."""

    def delta(sigma, epsilon):
        a, b = 1 / (2 * sigma), epsilon * sigma
        return stats.norm.cdf(a - b) - math.exp(epsilon) * stats.norm.cdf(-a - b)

    for epsilon, published in ((0.5, 7.031827), (1.0, 3.730632), (4.0, 1.081162)):
        root = optimize.brentq(lambda s, e=epsilon: delta(s, e) - 1e-5, 0.1, 100)
        assert math.isclose(root, published, rel_tol=1e-6)
        change = UnitChange(1, 500, 500.0, one=True)
        sigma = (
            math.sqrt(noise_distributions.gaussian_variances((change,), epsilon, 1e-5, 1)[0]) / 500
        )
        assert math.isclose(sigma, root, rel_tol=3e-4)
