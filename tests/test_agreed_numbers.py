"""Every agreed number is checked for what it is, where it is taken, before it is compared.

A comparison with NaN is false, so that a minimum of NaN guards nothing; `True` counts as 1; numpy's
integers wrap. What cannot be agreed on is refused by one of this package's errors.
"""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from cases import named

from securecomp import Column, Privacy, Study, secure_sum
from securecomp.errors import SecureCompError
from securecomp.mpc import Computation, division, functions, selection
from securecomp.paillier import keys, packing, sum_session, threshold_key, vectors
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.privacy import (
    accounting,
    calibration,
    distributed,
    guarantee,
    local_dp,
    rotation,
    samplers,
    sensitivity,
)
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout, Session
from securecomp.secagg.masked_sum import Masking
from securecomp.secagg.parameters import Parameters, modulus_bits
from securecomp.sharing import additive, shamir
from securecomp.sharing.additive_sum import Sharing
from securecomp.statistics.codebook.agreed_codebook import Codebook
from securecomp.statistics.codebook.entries import Entry
from securecomp.statistics.disclosure.suppression import Rule

ROWS = pd.DataFrame({"x": [1, 2, 3] * 10, "g": list("ab") * 15})
KEY = keys.PrivateKey.generate(256, insecure_for_tests=True)
ONE = sensitivity.count(sensitivity.Neighbours())
SMALL = {"insecure_for_tests": True}
NONE = [math.nan, math.inf, -math.inf, "ten", [3], 1j, np.bool_(True), np.float64("nan")]
NONE += [Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")]
NO_COUNT = [*NONE, 3.5, np.float64(3), True, -7]
NO_REAL = [*NONE, True, 10**400]
NO_TRUTH = [*NONE, 0, 1, 3.5, "", np.bool_(False)]


def session(layout=Layout(2, 5), limit=1000, minimum_servers=1, terms=None):  # noqa: B008
    carrier, names = LocalCarrier(), ("north", "south")
    return Session.create(
        "test/1",
        contributors=names,
        servers=("server",),
        receivers=names,
        keys={name: carrier.identity(name).public for name in (*names, "server")},
        layout=layout,
        limit=limit,
        minimum_servers=minimum_servers,
        terms=terms,
    )


def altered(session, **facts):
    return Session(**{n: getattr(session, n) for n in session.__struct_fields__} | facts)


def parameters(**facts):
    good = {"clients": 5, "degree": 4, "threshold": 4, "minimum": 4, "bits": 20, "max_weight": 0}
    return Parameters(**good | {"active": True} | facts).check(10)


def added(**options):
    return secure_sum({"a": [1], "b": [2]}, **{"bound": 5, **options})


def shared(**options):
    return Computation(["a", "b"], LocalCarrier()).share("a", [1, 2], **{"bound": 5, **options})


def number(**facts):
    return Codebook("n", "1", {"x": Entry("number", **{"lower": -9, "upper": 9, **facts})})


def patient(**facts):
    return Privacy(1, 1e-6, unit="patient", identifier="g", **facts)


def noised(step, times=1, delta=1e-6):
    return accounting.total([(step, times)], delta, accountant="plain")


def checked(step):
    """What `total` does first, with no library behind it."""
    accounting._check([(step, 1)])


def planned(**facts):
    good = {"epsilon": 1, "delta": 1e-6, "parties": 5, "colluding": 1, "dropouts": 1}
    return distributed.plan("skellam", [UnitChange(2, 1, 1.0)], **good | facts)


def elements():
    return np.zeros(2, np.uint64)


# What takes a number, and one that is good.
COUNTS = {
    "layout's length": (lambda v: Layout(v, 5), 2),
    "layout's bound": (lambda v: Layout(2, v), 5),
    "session's round": (lambda v: altered(session(), round=v), 1),
    "session's limit": (lambda v: session(limit=v), 100),
    "session's servers": (lambda v: session(minimum_servers=v), 1),
    "masking's clients": (lambda v: Parameters.choose(v, 5), 5),
    "masking's bound": (lambda v: Parameters.choose(5, v), 5),
    "masking's weight": (lambda v: Parameters.choose(5, 5, max_weight=v), 3),
    "masking's chosen minimum": (lambda v: Parameters.choose(5, 5, minimum=v), 4),
    **{
        f"masking's {name}": (lambda v, name=name: parameters(**{name: v}), good)
        for name, good in (
            ("clients", 5),
            ("degree", 4),
            ("threshold", 4),
            ("minimum", 4),
            ("bits", 20),
            ("max_weight", 0),
        )
    },
    "masking's least": (lambda v: Masking(minimum=v), 4),
    "masking's required": (lambda v: Masking().requiring(v, 5), 4),
    "masking's contributors": (lambda v: Masking().requiring(4, v), 5),
    "modulus": (lambda v: modulus_bits(v, 5, 0), 5),
    "servers": (Sharing, 3),
    "servers of a sum": (lambda v: added(servers=v), 3),
    "shares": (lambda v: additive.split([1], v), 2),
    "threshold of shares": (lambda v: shamir.split(elements(), v, [1, 2, 4]), 2),
    "point of a share": (lambda v: shamir.split(elements(), 2, [1, v, 4]), 2),
    "decimals": (lambda v: added(decimals=v), 2),
    "bits": (lambda v: added(bits=v), 2),
    "modulus of a key": (lambda v: keys.PublicKey(v, **SMALL), int(KEY.public.n)),
    "base of a key": (
        lambda v: keys.PublicKey(int(KEY.public.n), v, **SMALL),
        int(KEY.public.h_s),
    ),
    "factor of a key": (lambda v: keys.PrivateKey(v, int(KEY._q), **SMALL), int(KEY._p)),
    "length of a key": (lambda v: keys.PrivateKey.generate(v, **SMALL), 128),
    "length of a sum's key": (lambda v: Paillier(bits=v, **SMALL), 128),
    "holders": (lambda v: threshold_key.deal(v, 2, 64, **SMALL), 3),
    "threshold of a key": (lambda v: threshold_key.deal(3, v, 64, **SMALL), 2),
    "length of a shared key": (lambda v: threshold_key.deal(3, 2, v, **SMALL), 64),
    "bound of a slot": (lambda v: packing.Packing.plan(KEY.public, v, 4), 5),
    "additions": (lambda v: packing.Packing.plan(KEY.public, 5, v), 4),
    "memory": (lambda v: vectors.encrypt(KEY.public, [1], bound=5, memory=v), 1 << 20),
    "contributors": (lambda v: sum_session.terms(v), 4),
    "minimum of a sum": (lambda v: sum_session.terms(4, minimum=v), 3),
    "threshold of a sum": (lambda v: sum_session.terms(4, threshold=v), 2),
    "decimals of shares": (lambda v: shared(decimals=v), 1),
    "bits of shares": (lambda v: shared(bits=v), 8),
    "limit": (lambda v: functions.clamp(shared(), v), 3),
    "bits of a quotient": (lambda v: division.divide(shared(bits=8), 2, v), 4),
    "decimals of a column": (lambda v: Column(decimals=v), 2),
    "bits of a column": (lambda v: Column(bits=v), 2),
    "rows of a site": (lambda v: Study({"a": ROWS, "b": ROWS}, rows=v), 50),
    "minimum of a count": (Rule, 11),
    "minimum of sites": (lambda v: Rule(11, v), 2),
    "decimals in a codebook": (lambda v: number(decimals=v), 2),
    "records": (lambda v: patient(records=v), 2),
    "records of neighbours": (lambda v: sensitivity.Neighbours(unit="patient", records=v), 2),
    "sites of a patient": (lambda v: patient(sites=v), 2),
    "colluding": (lambda v: Privacy(1, 1e-6, colluding=v), 2),
    "dropouts": (lambda v: Privacy(1, 1e-6, dropouts=v), 2),
    "parties of a plan": (lambda v: planned(parties=v), 5),
    "colluding of a plan": (lambda v: planned(colluding=v), 2),
    "dropouts of a plan": (lambda v: planned(dropouts=v), 2),
    "records of a mean": (
        lambda v: sensitivity.mean(
            sensitivity.Bounds(0, 1), v, sensitivity.Neighbours("replace-one")
        ),
        9,
    ),
    "size of a change": (lambda v: UnitChange(v, 1, 1.0), 2),
    "change": (lambda v: UnitChange(2, v, 1.0), 1),
    "length of a vector": (lambda v: rotation.Encoding(v, 1.0, 9.0, bytes(32)), 4),
    "answers": (lambda v: local_dp.Response(1.0, v), 3),
    "times": (lambda v: noised(accounting.LaplaceNoise(1.0), v), 2),
    "squared sensitivity": (lambda v: checked(accounting.DiscreteGaussian(2, v)), 2),
    "persons": (lambda v: guarantee.check_delta(1e-6, v), 9),
    "draws": (lambda v: samplers.discrete_laplace(1, v), 2),
    "range of draws": (lambda v: samplers.uniform(v, 2), 9),
}  # fmt: skip
REALS = {
    "rate of corruption": (lambda v: Parameters.choose(50, 5, corrupt=v), 0.1),
    "rate of dropout": (lambda v: Parameters.choose(50, 5, dropout=v), 0.1),
    "bound of a sum": (lambda v: added(bound=v), 5),
    "bound of shares": (lambda v: shared(bound=v), 5),
    "quantile": (lambda v: selection.quantile(shared(), v), 0.5),
    "bound of a column": (lambda v: Column(bound=v), 3.5),
    "lower": (lambda v: number(lower=v), -3.5),
    "upper": (lambda v: number(upper=v), 3.5),
    "typical": (lambda v: number(typical=(v, 5)), 3.5),
    "code": (lambda v: number(missing=(v,)), 99),
    "epsilon": (lambda v: Privacy(v, 1e-6), 3.5),
    "delta": (lambda v: Privacy(1, v), 1e-6),
    "bound of values": (lambda v: Privacy(1, 1e-6, bounds={"x": (0, v)}), 3.5),
    "cost": (lambda v: PrivacyCost.of(v), 3.5),
    "delta of a cost": (lambda v: PrivacyCost.of(1, v), 1e-6),
    "sensitivity": (lambda v: sensitivity.Sensitivity(v, 1), 3.5),
    "factor": (ONE.scaled, 3.5),
    "epsilon of Laplace noise": (lambda v: calibration.laplace_scale(ONE, v), 3.5),
    "epsilon of Gaussian noise": (lambda v: calibration.gaussian_scale(ONE, v, 1e-6), 3.5),
    "delta of Gaussian noise": (lambda v: calibration.gaussian_scale(ONE, 1, v), 1e-6),
    "ratio": (lambda v: calibration.gaussian_delta(v, 1), 3.5),
    "ratio at a delta": (lambda v: calibration.gaussian_epsilon(v, 1e-6), 3.5),
    "scale": (calibration.laplace_error, 3.5),
    "confidence": (lambda v: calibration.gaussian_error(1, v), 0.5),
    "ratio of Laplace noise": (lambda v: noised(accounting.LaplaceNoise(v)), 3.5),
    "ratio of Gaussian noise": (lambda v: noised(accounting.GaussianNoise(v)), 3.5),
    "sigma": (lambda v: checked(accounting.DiscreteGaussian(v)), 3.5),
    "sampling rate": (lambda v: noised(accounting.Sampled(v, 1.0)), 0.5),
    "ratio of samples": (lambda v: noised(accounting.Sampled(0.5, v)), 3.5),
    "promised epsilon": (lambda v: noised(accounting.Promised(v)), 3.5),
    "promised delta": (lambda v: noised(accounting.Promised(1.0, v)), 1e-9),
    "delta of a total": (lambda v: noised(accounting.GaussianNoise(1.0), 1, v), 1e-6),
    "epsilon of a plan": (lambda v: planned(epsilon=v), 3.5),
    "delta of a plan": (lambda v: planned(delta=v), 1e-6),
    "norm of a change": (lambda v: UnitChange(2, 3, v), 1.5),
    "clip": (lambda v: rotation.Encoding(4, v, 9.0, bytes(32)), 3.5),
    "scale of a vector": (lambda v: rotation.Encoding(4, 1.0, v, bytes(32)), 3.5),
    "epsilon of answers": (lambda v: local_dp.Response(v, 3), 3.5),
    "epsilon in words": (guarantee.explain, 3.5),
    "false alarms": (lambda v: guarantee.best_detection(1, 0, v), 0.01),
    "scale of draws": (lambda v: samplers.discrete_laplace(v, 2), np.int64(3)),
    "variance of draws": (lambda v: samplers.discrete_gaussian(v, 2), np.float32(3.5)),
    "probability": (lambda v: samplers.bernoulli(v, 2), np.int64(1)),
}
TRUTHS = {
    "masking against an active server": lambda v: parameters(active=v),
    "complete": lambda v: Parameters.choose(5, 5, complete=v),
    "short keys": lambda v: keys.PublicKey(int(KEY.public.n), insecure_for_tests=v),
    "short private keys": lambda v: keys.PrivateKey.generate(128, insecure_for_tests=v),
    "blind": lambda v: sum_session.terms(4, blind=v),
    "blind sum": lambda v: Paillier(blind=v),
    "dealer": lambda v: Computation(["a", "b", "c"], LocalCarrier(), dealer=v),
    "required": lambda v: number(required=v),
    "clamp": lambda v: Privacy(1, 1e-6, clamp=v),
    "one": lambda v: UnitChange(2, 1, 1.0, one=v),
}
# Any size is a good one of these; or text is, as in amounts that are written.
ENDLESS = {"bound of a sum", "bound of a column", "bound of values", "sensitivity", "factor"}
ENDLESS |= {"epsilon of Laplace noise"}
WRITTEN = {"code"}


def refused(take, value):
    with pytest.raises(SecureCompError):
        take(value)


def test_every_agreed_number_is_checked_for_what_it_is():
    for numbers, wrong in ((COUNTS, NO_COUNT), (REALS, NO_REAL)):
        for name, (take, good) in numbers.items():
            with named(name, good):
                take(good)
            for value in wrong:
                endless = name in ENDLESS and type(value) is int and value > 1
                if not endless and not (name in WRITTEN and isinstance(value, str)):
                    with named(name, value):
                        refused(take, value)
    for name, take in TRUTHS.items():
        with named(name):
            take(True)
        for value in NO_TRUTH:
            with named(name, value):
                refused(take, value)


def test_what_must_be_there_may_not_be_left_out():
    optional = {"masking's chosen minimum", "masking's least", "servers of a sum", "decimals"}
    optional |= {"bits", "base of a key", "minimum of a sum", "decimals of shares"}
    optional |= {"bits of shares", "bits of a quotient", "decimals of a column", "rows of a site"}
    optional |= {"bits of a column", "bound of a column"}
    for numbers in (COUNTS, REALS):
        for name, (take, _) in numbers.items():
            with named(name):
                if name in optional:
                    take(None)
                else:
                    refused(take, None)


def test_a_secret_factor_is_not_shown():
    with pytest.raises(SecureCompError) as caught:
        keys.PrivateKey(float(int(KEY._p)), int(KEY._q), **SMALL)
    assert str(caught.value) == "a factor of the private key is an integer, not a float"
