"""The server computes probabilities: roles, estimator, refusals, and processes that fork."""

import multiprocessing
import warnings

import msgspec
import numpy as np
import pytest
from cases import each_case
from ckks.parties import linear_model, stream, table
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from securecomp.ckks import (
    EncryptedLogisticRegression,
    InferenceClient,
    InferenceServer,
    PrecisionWarning,
    planner,
)
from securecomp.ckks.inference_messages import Columns, EncryptedScores
from securecomp.ckks.native.ring_parameters import Sigmoid
from securecomp.ckks.seal.sigmoid_scores import ScoreClient, ScoreServer
from securecomp.errors import (
    DecodeError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.models import probabilities
from securecomp.protocol import wire

pytest.importorskip("tenseal")
# Degrees of 3 are fast.
pytestmark = pytest.mark.filterwarnings("ignore::securecomp.ckks.PrecisionWarning")

CHOICES = {"activation": "server", "domain": 8.0, "degree": 3, "precision": 1e-3}


@pytest.fixture(scope="module")
def sides():
    server = InferenceServer.create(linear_model(4), **CHOICES)
    client = InferenceClient.create(server.offer)
    server.register(client.registration.encode())
    return client, server


def test_the_whole_way(sides):
    client, server = sides
    rows = table(5, 4)
    found = client.decrypt(server.predict(client.encrypt(rows)))
    expected = probabilities(linear_model(4).logits(rows), "sigmoid")
    assert np.abs(found.probabilities - expected).max() <= client.offer.plan.precision
    assert found.labels.tolist() == ["yes" if p > 0.5 else "no" for p in expected[:, 1]]
    with pytest.raises(ParameterError, match='activation="client"'):
        found.logits.sum()


def test_several_batches(sides):
    client, server = sides
    slots = client.offer.plan.sigmoid.rows
    rows = table(slots + 3, 4)
    found = client.decrypt(server.predict(client.encrypt(rows))).values[:, 0]
    expected = probabilities(linear_model(4).logits(rows), "sigmoid")[:, 1]
    assert np.abs(found - expected).max() <= client.offer.plan.precision


def test_the_key_comes_back_from_its_file(sides):
    client, server = sides
    request = client.encrypt(table(2, 4))
    again = InferenceClient.from_json(client.to_json())
    answer = server.predict(request)
    one, other = client.decrypt(answer), again.decrypt(answer, request)
    assert np.array_equal(one.values, other.values)


def test_one_against_the_rest():
    model = msgspec.structs.replace(linear_model(3, 3), link="ovr")
    ours = EncryptedLogisticRegression(model, **CHOICES)
    rows = table(6, 3)
    found = ours.predict_proba(rows)
    assert found.sum(axis=1) == pytest.approx(np.ones(6))
    assert np.abs(found - probabilities(model.logits(rows), "ovr")).max() < 0.2  # of degree 3
    assert ours.traffic_.requests == 1


def test_rows_outside_the_domain_are_finished_and_flagged():
    """Of the second batch, and with the others of the batch as good as ever."""
    model = linear_model(4, scale=10.0)
    server = InferenceServer.create(model, **CHOICES)
    client = InferenceClient.create(server.offer)
    server.register(client.registration.encode())
    slots = client.offer.plan.sigmoid.rows
    rows = np.zeros((slots + 9, 4))
    rows[slots + 5] = np.sign(model.weights[0])
    found = client.decrypt(server.predict(client.encrypt(rows)))
    assert np.flatnonzero(found.outside).tolist() == [slots + 5]
    expected = probabilities(model.logits(rows), "sigmoid")
    assert np.abs(found.probabilities - expected).max() <= client.offer.plan.precision


class TestDefaults:
    def test_any_rows_of_the_demonstrations_model_have_the_stated_precision(self):
        """Degree and domain follow from the model; nothing is refused and nothing is far off."""
        rows, ill = load_breast_cancer(return_X_y=True)
        fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, ill)
        ours = EncryptedLogisticRegression(fitted, activation="server")
        plan, found = ours.plan_, ours.predict_proba(rows)
        assert plan.precision == 1e-2
        assert plan.sigmoid.domain == 8.0
        assert np.abs(found - fitted.predict_proba(rows)).max() <= 1e-2
        # Bytes are as planned.
        for planned, real in zip(
            plan.bytes_per_row(len(rows)), (ours.traffic_.sent, ours.traffic_.received), strict=True
        ):
            assert real == pytest.approx(planned * len(rows), rel=0.04)

    def test_the_degree_follows_from_the_precision(self):
        plans = [
            planner.plan(linear_model(4, scale=3), activation="server", precision=p)
            for p in (0.1, 1e-2, 1e-3)
        ]
        degrees = [plan.sigmoid.degree for plan in plans]
        assert degrees == sorted(set(degrees))
        assert all(plan.error <= plan.precision / 2 for plan in plans)

    def test_a_large_error_is_a_warning(self):
        with pytest.warns(PrecisionWarning, match=r"off by 0\.1.* leave out the degree"):
            planner.plan(linear_model(4), activation="server", degree=3, domain=9.0)

    def test_a_domain_that_no_polynomial_covers(self):
        with pytest.raises(ParameterError, match=r"no polynomial up to .* smaller domain"):
            planner.plan(linear_model(4), activation="server", precision=1e-6, domain=100.0)


class TestRefusals:
    def test_an_intercept_that_leaves_no_row_in_the_domain(self):
        """Every row would be refused, so nothing is published."""
        for model in (
            linear_model(4, intercept=40.0),
            linear_model(4, intercept=-40.0),
            msgspec.structs.replace(linear_model(4, 3), link="ovr", intercepts=(0.0, 0.0, 40.0)),
        ):
            with pytest.raises(ParameterError, match=r"leave no row in a domain of 4; plan a la"):
                planner.plan(model, **(CHOICES | {"domain": 4.0}))
        # A row at a corner of the bounds is within it.
        total = sum(map(abs, linear_model(4).weights[0]))
        model = linear_model(4, intercept=8.0 + total * 0.99)
        plan = planner.plan(model, **CHOICES)
        ScoreServer(plan, model)
        beyond = msgspec.structs.replace(model, intercepts=(8.0 + total * 1.01,))
        assert plan.logit_bound == 16.0
        with pytest.raises(ParameterError, match="leave no row in a domain of 8"):
            ScoreServer(plan, beyond)

    @each_case(
        "choices",
        [{"protect_model": True}, {"encrypted": True}, {"shareable_rows": 5}],
    )
    def test_what_does_not_go_together(self, choices):
        with pytest.raises(ParameterError, match='use activation="client"'):
            planner.plan(linear_model(4), activation="server", **choices)

    def test_a_softmax(self):
        with pytest.raises(ParameterError, match="two classes or one against the rest"):
            planner.plan(linear_model(4, 3), activation="server")

    def test_another_models_plan(self, sides):
        _, server = sides
        for model in (linear_model(4, scale=100.0), linear_model(3)):
            with pytest.raises(ParameterError, match="the plan is for"):
                ScoreServer(server.offer.plan, model)
        with pytest.raises(ParameterError, match="needs the model"):
            ScoreServer(server.offer.plan, None)

    def test_a_plan_that_is_insecure(self, sides):
        circuit = sides[0].offer.plan.sigmoid
        facts = {name: getattr(circuit, name) for name in circuit.__struct_fields__}
        for change in (
            {"ring": 4096},
            {"domain": 1e6},
            {"degree": 4},
            {"scale_bits": 0},
            {"weight_bound": -1.0},
            {"numeric_error": 0.0},
            {"special": circuit.moduli[0]},
        ):
            with pytest.raises(ParameterError):
                Sigmoid(**(facts | change))

    def test_messages_that_lie(self, sides):
        client, server = sides
        ours, theirs = client._circuit, server._clients[client._engagement.id].account
        good = msgspec.structs.asdict(_decoded(ours.encrypt(table(2, 4), b"r" * 16), Columns))
        for batches in ([], good["batches"] * 2, [good["batches"][0][:3]], [[b"x"] * 4]):
            with pytest.raises(DecodeError):
                theirs.answer(Columns(**(good | {"batches": batches})), memoryview(b""))
        with pytest.raises(DecodeError):
            theirs.answer(Columns(**good), memoryview(bytes(8)))
        body = theirs.answer(Columns(**good), memoryview(b""))
        answer = msgspec.structs.asdict(_decoded(body, EncryptedScores))
        for batches in ([], answer["batches"] * 2, [answer["batches"][0][:1]], [[b"x", b"y"]]):
            with pytest.raises(DecodeError):
                ours.decrypt(EncryptedScores(**(answer | {"batches": batches})), memoryview(b""), 2)

    def test_a_request_that_was_changed(self, sides):
        client, server = sides
        for place in (100, 5000, -1):
            request = bytearray(client.encrypt(table(1, 4)))
            request[place] ^= 1
            with pytest.raises(Exception, match=r"changed on the way|not made|another|is for|none"):
                server.predict(bytes(request))
        with pytest.raises(RemoteProtocolError, match="which it may not send here"):
            server.predict(_sealed(client, EncryptedScores(b"r" * 16, 1, [])))


def _decoded(body, kind):
    return wire.decode_body(memoryview(body), kind)[0]


def _sealed(client, message):
    from securecomp.protocol import identity

    e = client._engagement
    header = e.header(message.KIND, client.name, client.offer.server, e.agreement)
    return identity.seal(client._identity, e, header, wire.encode_body(message), stream("s"))


def _score(pipe, plan, secret, public):
    client = ScoreClient(plan, secret)
    server = ScoreServer(plan, linear_model(4)).admit(type("Registered", (), {"public": public}))
    query = _decoded(client.encrypt(table(2, 4), b"r" * 16), Columns)
    answer = _decoded(server.answer(query, memoryview(b"")), EncryptedScores)
    pipe.send(client.decrypt(answer, memoryview(b""), 2).values.tolist())


def test_a_process_that_forks_goes_on(sides):
    """SEAL was used here already; a child computes with it too, and nothing hangs."""
    client, _ = sides
    circuit = client._circuit
    ours, theirs = multiprocessing.Pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside other tests' threads
        child = multiprocessing.get_context("fork").Process(
            target=_score, args=(theirs, client.offer.plan, circuit.secret, circuit.public()[1])
        )
        child.start()
    assert ours.poll(60), "the child hangs"
    expected = probabilities(linear_model(4).logits(table(2, 4)), "sigmoid")[:, 1:]
    assert np.abs(np.array(ours.recv()) - expected).max() <= client.offer.plan.precision
    child.join(10)
    assert child.exitcode == 0
