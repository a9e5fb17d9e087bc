"""Logits over SEAL, as the native kernels give them: choice, errors, lies, and what is said."""

import math
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from cases import altered, each_case
from ckks.parties import linear_model, stream, table

from securecomp.ckks import (
    EncryptedLogisticRegression,
    InferenceClient,
    InferenceServer,
    LogisticModel,
    Offer,
    planner,
)
from securecomp.ckks.inference_messages import Columns, EncryptedSlots
from securecomp.ckks.native import ring_kernels
from securecomp.ckks.native.ring import ring
from securecomp.ckks.plan import REVIEWERS
from securecomp.ckks.scaled_model import Scaled
from securecomp.ckks.seal import slot_plan
from securecomp.ckks.seal.seal_context import Context, backend
from securecomp.ckks.seal.slot_circuit import MOST_FEATURES, SlotCircuit
from securecomp.ckks.seal.slot_logits import SlotClient, SlotServer, dither
from securecomp.ckks.seal.weighted_columns import weighted_sums
from securecomp.errors import (
    BudgetError,
    DecodeError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.protocol import wire

pytest.importorskip("tenseal")
BACKENDS = ("seal", "native")


def sides(model, **choices):
    """A server, and a client that is registered with it."""
    server = InferenceServer.create(model, **choices)
    client = InferenceClient.create(server.offer)
    server.register(client.registration.encode())
    return client, server


def ask(client, server, rows):
    return client.decrypt(server.predict(client.encrypt(rows)))


class TestBothBackends:
    @each_case("backend", BACKENDS)
    @each_case(
        "features, outputs, bound, rows",
        [
            (3, 1, 1.0, [1, 2, 1024, 1025, 2048, 2049]),
            (30, 1, 8.0, [4096]),
            (5, 4, 300.0, [7]),  # several primes
            (40, 3, 1e4, [3]),
        ],
    )
    def test_logits_are_within_the_plans_error(self, backend, features, outputs, bound, rows):
        model = linear_model(features, outputs, bound=bound)
        client, server = sides(model, backend=backend)
        plan = server.offer.plan
        assert plan.backend == backend
        for count in rows:
            x = table(count, features, bound)
            found = ask(client, server, x)
            assert np.abs(found.logits - model.logits(x)).max() <= plan.precision
            assert found.labels.shape == (count,)

    @each_case("backend", BACKENDS)
    def test_a_key_and_a_server_come_back_from_their_files(self, backend):
        model = linear_model(4)
        client, server = sides(model, backend=backend, max_rows=5)
        again = InferenceClient.from_json(client.to_json())
        restarted = InferenceServer.from_json(server.to_json(), model, ledger=server._ledger)
        restarted.register(again.registration.encode())
        request = client.encrypt(table(3, 4))
        found = again.decrypt(restarted.predict(request), request)
        assert np.abs(found.logits - model.logits(table(3, 4))).max() <= 1e-4
        with pytest.raises(RemoteProtocolError, match="replay"):
            server.predict(request)
        with pytest.raises(BudgetError):
            server.predict(client.encrypt(table(3, 4)))

    @each_case("backend", BACKENDS)
    def test_weights_of_zero(self, backend):
        """SEAL refuses to multiply by 0; a model of zeros has its intercepts as logits."""
        for weights in ((0.0, 0.0), (0.0, 0.7), (1e-12, 0.0)):
            model = altered(linear_model(2), weights=(weights,), intercepts=(0.25,))
            found = ask(*sides(model, backend=backend), table(9, 2))
            assert np.abs(found.logits - model.logits(table(9, 2))).max() <= 1e-4
        model = altered(linear_model(2), weights=((0.0, 0.0),), intercepts=(0.0,))
        assert (ask(*sides(model, backend=backend), table(9, 2)).logits == 0.0).all()


class TestChoice:
    def test_seal_is_the_default_where_it_is_installed(self, monkeypatch):
        assert planner.plan(linear_model()).backend == "seal"
        monkeypatch.setattr(planner, "installed", lambda: False)
        assert planner.plan(linear_model()).backend == "native"

    def test_what_seal_cannot_do_is_native_by_default_and_refused_if_asked_for(self):
        for choices in ({"protect_model": True}, {"encrypted": True}, {"shareable_rows": 9}):
            assert planner.plan(linear_model(), **choices).backend == "native"
            with pytest.raises(ParameterError, match='use backend="native"'):
                planner.plan(linear_model(), backend="seal", **choices)
        wide = linear_model(MOST_FEATURES + 1)
        assert planner.plan(wide).backend == "native"
        with pytest.raises(ParameterError, match='backend="native" can do more'):
            planner.plan(wide, backend="seal")
        with pytest.raises(ParameterError, match="runs on SEAL alone"):
            planner.plan(linear_model(), backend="native", activation="server")
        with pytest.raises(ParameterError, match=r'leave out .*backend="seal"'):
            EncryptedLogisticRegression(linear_model(), model="encrypted", backend="seal")

    @each_case("backend", BACKENDS)
    def test_a_plan_says_who_computes_and_who_has_looked_at_it(self, backend):
        plan = planner.plan(linear_model(), backend=backend)
        facts = dict(plan.describe())
        assert facts["scheme"].startswith("CKKS")
        assert facts["backend"].startswith(f"{backend}:")
        assert facts["reviewed by"] == REVIEWERS[backend]
        assert all(text in str(plan) for text in (facts["backend"], facts["reviewed by"]))


class TestErrors:
    @each_case("degree", [2048, 4096])
    def test_a_dither_is_uniform_in_the_coefficients_that_seal_sees(self, degree):
        """So that SEAL's rounding is up or down, with the value as its mean."""
        context = Context(planner.plan(linear_model(30, bound=8.0)).slots.chain)
        if context.chain.ring != degree:
            context = Context(planner.plan(linear_model(2)).slots.chain)
        words = np.frombuffer(stream("dither")(4 * degree), "<u4")
        scale = 2.0**20
        plain = context.encode(dither(words).tolist(), context.chain.levels, scale)
        r = ring(degree, context.chain.moduli)
        values = np.array([[plain.data(i) for i in range(degree)]], np.uint64)
        r.to_coefficients(values)
        found = r.signed(values).astype(float) / scale
        expected = (words + 0.5) / 2.0**32 - 0.5
        assert np.abs(np.sort(np.abs(found)) - np.sort(np.abs(expected))).max() < 2e-6

    def test_noise_is_what_the_bound_takes_it_for(self):
        """The standard deviation of a slot is that of coefficients with 10.5 + 1/4 at most."""
        model = altered(linear_model(2), weights=((1.0, 0.0),), intercepts=(0.0,))
        client, server = sides(model, backend="seal")
        circuit = server.offer.plan.slots
        rows = np.zeros((circuit.ring, 2))
        rows[:, 0] = np.random.default_rng(3).uniform(-1, 1, circuit.ring)
        body = client._circuit.encrypt(rows, b"r" * 16)
        query = wire.decode_body(memoryview(body), Columns)[0]
        answer = server._circuit.answer(query, memoryview(b""))
        reply = wire.decode_body(memoryview(answer), EncryptedSlots)[0]
        logits = client._circuit.decrypt(reply, memoryview(b""), circuit.ring).values[:, 0]
        deviation = (logits - rows[:, 0]).std() * 2.0**circuit.input_bits
        most = math.sqrt((10.5 + 0.25) * circuit.ring / 2)
        assert 0.9 * most < deviation < 1.05 * most
        assert np.abs(logits - rows[:, 0]).max() < server.offer.plan.error

    def test_fewer_bits_where_less_precision_is_asked_for(self):
        found = [planner.plan(linear_model(9), precision=p) for p in (1e-2, 1e-4, 1e-8)]
        bits = [plan.slots.scale_bits for plan in found]
        assert all(a < b for a, b in pairwise(bits))
        assert all(plan.error <= plan.precision / 2 for plan in found)


class TestLies:
    def test_a_plan_that_promises_too_much(self):
        plan = planner.plan(linear_model(), backend="seal")
        circuit = plan.slots
        for change in (
            {"weight_bits": 2},
            {"input_bits": 60},
            {"input_bits": 0},
            {"ring": 1024},
            {"moduli": (65537,)},
            {"special": circuit.moduli[0]},
        ):
            with pytest.raises(ParameterError):
                altered(plan, circuit=altered(circuit, **change))
        with pytest.raises(ParameterError, match="more than half"):
            altered(plan, error=plan.precision * 0.9)
        for change in ({"protect_model": True, "max_rows": 2}, {"shareable_rows": 3}):
            with pytest.raises(ParameterError, match="only with a plain, unprotected model"):
                altered(plan, **change)

    def test_a_plan_is_read_back_from_an_offer(self):
        server = InferenceServer.create(linear_model(), backend="seal")
        assert Offer.from_json(server.offer.to_json()) == server.offer
        assert isinstance(server.offer.plan.circuit, SlotCircuit)
        for wrong in ("linear", "sigmoid"):
            with pytest.raises(ParameterError):
                getattr(server.offer.plan, wrong)
        with pytest.raises(ParameterError, match="not for logits over SEAL"):
            planner.plan(linear_model(), backend="native").slots  # noqa: B018

    def test_another_models_plan(self):
        plan = planner.plan(linear_model(), backend="seal")
        for other in (linear_model(4), linear_model(outputs=3)):
            with pytest.raises(ParameterError, match="for other features or classes"):
                SlotServer(plan, other)
        for other in (linear_model(scale=1e3), linear_model(intercept=1e3)):
            with pytest.raises(ParameterError, match="for other weights"):
                SlotServer(plan, other)
        with pytest.raises(ParameterError, match="needs the model"):
            SlotServer(plan, None)

    def test_messages_that_are_not_the_plans(self):
        client, server = sides(linear_model(4), backend="seal")
        ours, theirs = client._circuit, server._circuit
        body = ours.encrypt(table(2, 4), b"r" * 16)
        good = msgspec.structs.asdict(wire.decode_body(memoryview(body), Columns)[0])
        for batches in ([], good["batches"] * 2, [good["batches"][0][:3]], [[b"x"] * 4]):
            with pytest.raises(DecodeError):
                theirs.answer(Columns(**(good | {"batches": batches})), memoryview(b""))
        with pytest.raises(DecodeError):
            theirs.answer(Columns(**good), memoryview(bytes(8)))
        body = theirs.answer(Columns(**good), memoryview(b""))
        answer = wire.decode_body(memoryview(body), EncryptedSlots)[0]
        for batches in ([], answer.batches * 2, [answer.batches[0] * 2], [[b"x"]]):
            with pytest.raises(DecodeError):
                ours.decrypt(EncryptedSlots(b"r" * 16, 2, batches), memoryview(b""), 2)
        with pytest.raises(DecodeError, match="not a secret key"):
            SlotClient(server.offer.plan, b"x" * 100, stream("other"))

    def test_a_server_that_answers_beyond_its_bound(self):
        client, server = sides(linear_model(4), backend="seal")
        server._circuit._weights = server._circuit._weights * 2.0**12
        with pytest.raises(RemoteProtocolError, match="row 1 is beyond the plan's bound"):
            ask(client, server, table(3, 4))


def words(ciphertext):
    """The residues of a ciphertext, which must stay alive while they are read."""
    data = ciphertext.dyn_array()
    return np.array([data.at(i) for i in range(data.size())], np.uint64)


def test_seals_ciphertexts_and_the_native_sum_agree():
    """A sum of columns times integers by the native kernels has the residues of SEAL's."""
    model = linear_model(4)
    client, server = sides(model, backend="seal")
    circuit, context = server.offer.plan.slots, server._circuit._context
    scale, level = 2.0**circuit.input_bits, circuit.chain.levels
    body = client._circuit.encrypt(table(9, 4), b"r" * 16)
    (columns,) = wire.decode_body(memoryview(body), Columns)[0].batches
    r, weights = ring(circuit.ring, circuit.moduli), server._circuit._weights
    total = np.zeros((2, level, circuit.ring), np.uint64)
    for column, weight in zip(columns, weights[0], strict=True):
        parts = words(context.load(column, level, scale, seeded=True))
        factor = np.full(circuit.ring, int(weight) % circuit.moduli[0], np.uint64)
        quotient = np.empty_like(factor)
        ring_kernels.precompute(factor, r.moduli[0], quotient)
        for part, polynomial in zip(total[:, 0], parts.reshape(2, -1), strict=True):
            ring_kernels.add_product(part, polynomial, factor, quotient, r.moduli[0])
    (seals,) = weighted_sums(context, columns, scale, weights)
    assert np.array_equal(words(seals), total.reshape(-1))


def test_the_bound_covers_what_rounding_to_integers_costs():
    """The proof's parts, against an exact calculation with the weights as SEAL gets them."""
    model = linear_model(7, 3, bound=3.0)
    plan = planner.plan(model, backend="seal", precision=1e-3)
    scaled = Scaled(model, plan.bounds)
    rounded = np.rint(np.ldexp(scaled.weights, plan.slots.weight_bits))
    left = np.abs(np.ldexp(rounded, -plan.slots.weight_bits) - scaled.weights).sum(axis=1).max()
    assert 0 < left < slot_plan.error(scaled, plan.slots) == plan.error
    assert isinstance(model, LogisticModel)
    assert backend() is not None
