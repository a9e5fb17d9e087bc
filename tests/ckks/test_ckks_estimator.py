"""scikit-learn's own predictions, made on ciphertexts."""

import threading

import numpy as np
import pandas
import pytest
import scipy.sparse
from cases import each_case
from ckks.parties import Parties, linear_model, stream, table
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from securecomp.ckks import EncryptedLogisticRegression, InferenceClient
from securecomp.ckks.plan import MAX_ROWS
from securecomp.errors import BudgetError, ParameterError, RangeError, RemoteProtocolError

PRECISION = 1e-4


def lr():
    return LogisticRegression(max_iter=5000)


def frame(loader):
    data = loader(as_frame=True)
    return data.data, data.target


def cancer():
    rows, target = frame(load_breast_cancer)
    return make_pipeline(StandardScaler(), lr()).fit(rows, target), rows


def digits():
    rows, target = load_digits(return_X_y=True)
    return make_pipeline(MinMaxScaler(), lr()).fit(rows, target), rows


def iris():
    rows, target = frame(load_iris)
    names = np.array(["setosa", "versicolor", "virginica"], object)
    return lr().fit(rows, names[target]), rows


def iris_one_against_the_rest():
    rows, target = load_iris(return_X_y=True)
    return OneVsRestClassifier(lr()).fit(rows, target), rows


CASES = {f.__name__: f for f in (cancer, digits, iris, iris_one_against_the_rest)}


BACKENDS = ("seal", "native")
BOTH = [(build, backend) for build in CASES.values() for backend in BACKENDS]


@pytest.fixture(scope="module", params=BOTH, ids=[f"{f.__name__}, {b}" for f, b in BOTH])
def case(request):
    build, backend = request.param
    fitted, rows = build()
    bounds = np.maximum(np.abs(np.asarray(rows)).max(axis=0), 1.0)
    return (
        fitted,
        rows,
        EncryptedLogisticRegression(
            fitted, bounds=bounds, precision=PRECISION, backend=backend, entropy=stream("estimator")
        ),
    )


class TestAsScikitLearn:
    def test_decision_function(self, case):
        fitted, rows, ours = case
        want, got = fitted.decision_function(rows), ours.decision_function(rows)
        assert got.shape == want.shape
        assert np.abs(got - want).max() <= PRECISION * (1 + 1e-6)

    def test_predict_proba(self, case):
        fitted, rows, ours = case
        want, got = fitted.predict_proba(rows), ours.predict_proba(rows)
        assert got.shape == want.shape
        # a sigmoid moves by a quarter of what its logit does, a share of a sum by no more
        assert np.abs(got - want).max() <= PRECISION
        assert np.allclose(got.sum(axis=1), 1)

    def test_predict(self, case):
        fitted, rows, ours = case
        got = ours.predict(rows)
        decision = fitted.decision_function(rows)
        ordered = np.sort(decision, axis=-1)
        margin = np.abs(decision) if decision.ndim == 1 else ordered[:, -1] - ordered[:, -2]
        clear = margin > 2 * PRECISION
        assert clear.mean() > 0.99
        assert np.array_equal(got[clear], fitted.predict(rows)[clear])
        assert fitted.score(rows, got) == 1.0 or not clear.all()

    def test_attributes(self, case):
        fitted, rows, ours = case
        assert ours.classes_.tolist() == fitted.classes_.tolist()
        assert ours.n_features_in_ == fitted.n_features_in_ == rows.shape[1]
        if hasattr(rows, "columns"):
            assert ours.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
        assert repr(ours).startswith(f"EncryptedLogisticRegression({rows.shape[1]} features")
        assert ours.plan_.precision == PRECISION

    def test_other_forms_of_the_same_rows(self, case):
        fitted, rows, ours = case
        array = np.asarray(rows)[:5]
        want = ours.decision_function(array)
        columns = [str(n) for n in ours.feature_names_in_]
        table_ = pandas.DataFrame(array, columns=columns)[columns[::-1]]
        for other in (array.tolist(), table_):
            assert np.abs(ours.decision_function(other) - want).max() <= 2 * PRECISION
        fitted.decision_function(rows[:5])


class TestTraffic:
    @each_case("backend", BACKENDS)
    def test_counts(self, backend):
        ours = EncryptedLogisticRegression(
            linear_model(), backend=backend, entropy=stream("traffic")
        )
        assert (ours.traffic_.requests, ours.traffic_.rows) == (0, 0)
        sent, received = [], []
        client, server = ours.client_, ours.server_
        encrypt, predict = client.encrypt, server.predict
        client.encrypt = lambda t: sent.append(encrypt(t)) or sent[-1]
        server.predict = lambda r: received.append(predict(r)) or received[-1]
        for rows in (1, 3, 5000):
            ours.predict(table(rows))
        traffic = ours.traffic_
        assert (traffic.requests, traffic.rows) == (3, 5004)
        assert traffic.sent == sum(map(len, sent))
        assert traffic.received == sum(map(len, received))
        up, down = ours.plan_.bytes_per_row(5000)
        # SEAL's compressed bytes are estimated.
        rough = {"rel": 0.04} if backend == "seal" else {"abs": 300}
        assert len(sent[-1]) == pytest.approx(5000 * up, **rough)
        assert len(received[-1]) == pytest.approx(5000 * down, **rough)

    def test_nothing_crosses_for_a_refused_table(self):
        ours = EncryptedLogisticRegression(linear_model())
        for wrong in ([[2.0, 0, 0]], [["a", 0, 0]], [[0.0]], np.zeros((0, 3))):
            with pytest.raises((ParameterError, RangeError)):
                ours.predict(wrong)
        assert (ours.traffic_.requests, ours.traffic_.sent) == (0, 0)


@pytest.fixture(scope="module", params=BACKENDS)
def ours(request):
    return EncryptedLogisticRegression(linear_model(1), precision=1e-2, backend=request.param)


class TestLargeTables:
    @each_case("rows", [MAX_ROWS, MAX_ROWS + 1])
    def test_go_in_several_requests(self, rows, ours):
        x = table(rows, 1)
        before = ours.traffic_.requests
        got = ours.decision_function(x)
        assert np.abs(got - linear_model(1).logits(x)[:, 0]).max() <= 1e-2
        assert ours.traffic_.requests - before == -(-rows // MAX_ROWS)

    def test_nothing_is_encrypted_if_a_late_row_is_bad(self, ours):
        x = table(MAX_ROWS + 2, 1)
        x[-1] = np.nan
        before = ours.traffic_.sent
        with pytest.raises(RangeError):
            ours.predict(x)
        assert ours.traffic_.sent == before

    def test_a_late_row_has_its_own_number(self, ours):
        x = table(MAX_ROWS + 2, 1)
        x[-1] = np.nan
        with pytest.raises(RangeError, match=f"row {MAX_ROWS + 2}:"):
            ours.predict(x)


@each_case("kind", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_sparse_rows(kind):
    ours = EncryptedLogisticRegression(linear_model(), entropy=stream("sparse"))
    rows = table(4)
    got = ours.decision_function(kind(rows))
    assert np.abs(got - linear_model().logits(rows)[:, 0]).max() <= 1e-4


class TestChoices:
    def test_a_protected_model(self):
        ours = EncryptedLogisticRegression(linear_model(4), protect_model=True)
        got = ours.decision_function(table(3, 4))
        assert np.abs(got - linear_model(4).logits(table(3, 4))[:, 0]).max() <= 1e-4
        with pytest.raises(BudgetError):
            ours.predict(table(2, 4, seed=9)[1:].repeat(2, axis=0) * [[1], [0.5]])
        assert ours.traffic_.requests == 1

    def test_rows_of_a_protected_model_cost_its_budget_once(self):
        """Whatever is asked of them, and however often they are in a table."""
        ours = EncryptedLogisticRegression(linear_model(4), protect_model=True)
        rows = table(4, 4)
        probabilities = ours.predict_proba(rows)
        assert np.array_equal(ours.predict_proba(rows[[2, 2, 0]]), probabilities[[2, 2, 0]])
        assert ours.predict(rows[::-1]).tolist() == ours.predict(rows)[::-1].tolist()
        assert (ours.traffic_.requests, ours.traffic_.rows) == (1, 4)
        with pytest.raises(BudgetError):
            ours.predict(-rows[:1])
        assert "a client that deviates" in str(ours.plan_)

    def test_more_rows_than_a_protected_model_answers(self):
        """Nothing is sent, also where the first of several requests would be answered."""
        ours = EncryptedLogisticRegression(linear_model(4), protect_model=True)
        with pytest.raises(ParameterError, match="5 rows, and the plan answers 4"):
            ours.predict(table(5, 4))
        assert ours.traffic_.requests == 0
        ours.predict(table(4, 4))

    def test_an_encrypted_model(self):
        ours = EncryptedLogisticRegression(linear_model(4), model="encrypted")
        got = ours.decision_function(table(3, 4))
        assert np.abs(got - linear_model(4).logits(table(3, 4))[:, 0]).max() <= 1e-4
        assert ours.server_._circuit._weights is None

    def test_both_at_once(self):
        with pytest.raises(
            ParameterError, match="with an encrypted model, leave out protect_model"
        ):
            EncryptedLogisticRegression(linear_model(), model="encrypted", protect_model=True)

    def test_what_is_no_model(self):
        with pytest.raises(ParameterError, match="is not a logistic regression"):
            EncryptedLogisticRegression("model.pkl")
        with pytest.raises(ParameterError, match="is not fitted"):
            EncryptedLogisticRegression(lr()).predict(table(1))

    @each_case("precision", [0.1, 1e-6, 1e-10])
    @each_case("backend", BACKENDS)
    def test_precision(self, precision, backend):
        ours = EncryptedLogisticRegression(linear_model(), precision=precision, backend=backend)
        got = ours.decision_function(table(100))
        want = linear_model().logits(table(100))[:, 0]
        assert np.abs(got - want).max() <= precision
        assert not np.array_equal(got, want)


class TestConventions:
    """What scikit-learn's tools ask of an estimator."""

    def test_a_clone_is_fitted_anew(self):
        fitted, rows = iris()
        ours = EncryptedLogisticRegression(fitted, precision=1e-3, bounds=10.0)
        copy = clone(ours)
        assert copy.get_params()["precision"] == 1e-3
        assert copy.get_params()["estimator__max_iter"] == 5000
        with pytest.raises(NotFittedError):
            check_is_fitted(copy)
        names = fitted.predict(rows)
        copy.fit(rows, names)
        check_is_fitted(copy)
        assert copy.client_ is not ours.client_
        assert copy.score(rows, names) == ours.score(rows, names) == 1.0
        assert is_classifier(copy)
        expected = np.log(copy.estimator_.predict_proba(rows[:9]))
        assert np.abs(copy.predict_log_proba(rows[:9]) - expected).max() < 0.01

    def test_cross_validation_and_a_search(self):
        rows, target = load_iris(return_X_y=True)
        ours = EncryptedLogisticRegression(lr(), bounds=10.0)
        plain = cross_val_score(lr(), rows, target, cv=3)
        assert cross_val_score(ours, rows, target, cv=3) == pytest.approx(plain)
        search = GridSearchCV(ours, {"estimator__C": [1e-3, 1.0]}, cv=3).fit(rows, target)
        assert search.best_params_ == {"estimator__C": 1.0}

    def test_parameters_that_change_plan_again(self):
        ours = EncryptedLogisticRegression(linear_model(), precision=1e-2)
        assert ours.set_params(precision=1e-5).plan_.precision == 1e-5
        with pytest.raises(ParameterError, match="no parameter 'C'; known are"):
            ours.set_params(C=1.0)
        with pytest.raises(ParameterError, match="a LogisticModel cannot be fitted"):
            ours.fit([[1.0]], [1])

    def test_object_columns_of_numbers(self):
        ours = EncryptedLogisticRegression(linear_model())
        frame = pandas.DataFrame(table(4), columns=["x0", "x1", "x2"])
        want = ours.decision_function(frame)
        assert np.abs(ours.decision_function(frame.astype(object)) - want).max() <= 2e-4
        frame = frame.astype(object)
        frame.loc[2, "x1"] = "much"
        with pytest.raises(ParameterError, match="feature 'x1', row 3: is not a number"):
            ours.decision_function(frame)


class TestThreads:
    @each_case("features", [3, 50])
    @each_case("rows", [1, 40, 5000])
    def test_any_number_of_workers_gives_the_same(self, features, rows):
        """With one stream of entropy: bit for bit, as no sum depends on the order."""
        got = []
        for workers in (1, 2, 3):
            ours = EncryptedLogisticRegression(
                linear_model(features, scale=3 / features),
                backend="native",
                precision=1e-9,
                workers=workers,
                entropy=stream("workers"),
            )
            got.append(ours.decision_function(table(rows, features)))
        assert np.array_equal(got[0], got[1])
        assert np.array_equal(got[0], got[2])

    @each_case("choice", [{}, {"encrypted": True}])
    def test_answers_have_equal_bytes(self, choice):
        answers = []
        for workers in (1, 2):
            parties = Parties(linear_model(40, 2 + 1), **choice)
            parties.server._circuit._workers = workers
            request = parties.ann.encrypt(table(3000, 40))
            answers.append(bytes(parties.server.predict(request)))
        assert answers[0] == answers[1]

    @each_case("workers", [0, -1])
    @each_case("backend", BACKENDS)
    def test_no_workers(self, workers, backend):
        with pytest.raises(ParameterError, match="at least 1 worker"):
            EncryptedLogisticRegression(linear_model(), backend=backend, workers=workers)

    def test_many_at_once(self):
        """One server, clients in threads of their own, some of them with one client in common."""
        parties = Parties(linear_model(5), clients=("ann", "bob"))
        failed = []

        def work(i):
            client = parties.clients["ann" if i % 2 else "bob"]
            if i % 3 == 0:
                name = f"client {i}"
                client = InferenceClient.create(parties.offer, name)
                parties.server.register(client.registration.encode())
            for j in range(12):
                rows = table(1 + (i * j) % 90, 5, seed=100 * i + j)
                try:
                    got = client.decrypt(parties.server.predict(client.encrypt(rows)))
                    error = np.abs(got.logits - parties.model.logits(rows)).max()
                    if error > 1e-4:
                        failed.append((i, j, error))
                except Exception as error:
                    failed.append((i, j, error))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert sum(parties.server._ledger._spent.values()) == sum(
            1 + (i * j) % 90 for i in range(8) for j in range(12)
        )
        assert parties.ann._pending == {}

    def test_one_request_at_the_same_time(self):
        """A replay while the first is still being computed: one answer, counted once."""
        parties = Parties(linear_model(6), protect_model=True)
        request = bytes(parties.ann.encrypt(table(6, 6)))
        outcomes = []

        def work():
            try:
                outcomes.append(parties.ann.decrypt(parties.server.predict(request)).kind)
            except (RemoteProtocolError, BudgetError) as error:
                outcomes.append(type(error))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes.count("logits") == 1
        assert outcomes.count(RemoteProtocolError) == 5
        assert parties.server._ledger._spent == {"ann": 6}
