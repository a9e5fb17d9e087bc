"""The demonstration of encrypted inference, on a data set that scikit-learn brings."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from securecomp.ckks import EncryptedLogisticRegression
from securecomp.ckks.plan import Backend
from securecomp.ckks.seal.seal_context import installed
from securecomp.errors import BackendUnavailableError

_BATCH = 4096  # rows for the timing: the test patients again and again
_RUNS = 5


@dataclass(frozen=True)
class BackendCost:
    """What one backend found and took. All numbers are of this run.

    Attributes:
        backend: Its name.
        equal: Labels equal to plaintext's.
        error: Largest difference of a probability from plaintext's.
        promised: Largest error of a logit that the plan promises.
        client_us: Microseconds of the client: encryption and decryption of a row of the batch.
        server_us: Microseconds of the server, for a row of the batch.
        sent: Bytes to the server, for each row of the batch.
        received: Bytes back, for each row of the batch.
        one_row: Bytes there and back for a request of a single row, as planned.
        plan: The plan's lines.
    """

    backend: str
    equal: int
    error: float
    promised: float
    client_us: float
    server_us: float
    sent: float
    received: float
    one_row: float
    plan: str


@dataclass(frozen=True)
class Inference:
    """The findings of the demonstration. All numbers are of this run.

    Attributes:
        patients: Rows that were predicted.
        trained: Rows that the model was fitted on.
        plain_us: Microseconds of a prediction by scikit-learn.
        matvec_us: Microseconds of numpy's matrix-vector product alone.
        batch: Rows of the timed batch.
        backends: Each backend, the default one first.
        left_out: Why a backend is not here; empty if all are.
        learned: The client's knowledge afterwards, in words.
    """

    patients: int
    trained: int
    plain_us: float
    matvec_us: float
    batch: int
    backends: tuple[BackendCost, ...]
    left_out: str
    learned: str

    def facts(self) -> dict[str, Any]:
        """Return all as plain values."""
        costs = [{**cost.__dict__, "plan": cost.plan.splitlines()} for cost in self.backends]
        return {**self.__dict__, "backends": costs}

    def parts(self) -> Iterator[Any]:
        """Yield the parts to print."""
        yield Text(
            f"Breast tumours: {self.trained} patients to train on, {self.patients} to predict"
        )
        yield Text(self.backends[0].plan)
        yield self._rows(
            "against plaintext",
            ("labels equal", lambda c: f"{c.equal} of {self.patients}"),
            ("largest error of a probability", lambda c: f"{c.error:.1e}"),
            ("largest error of a logit, promised", lambda c: f"{c.promised:.0e}"),
        )
        yield self._rows(
            f"cost of a prediction, in a batch of {self.batch:,}",
            ("client: encrypt and decrypt, us", lambda c: f"{c.client_us:.2f}"),
            ("server: predict, us", lambda c: f"{c.server_us:.2f}"),
            ("server: times numpy's product", lambda c: f"{c.server_us / self.matvec_us:.0f}x"),
            ("bytes there, back", lambda c: f"{c.sent:.0f}, {c.received:.0f}"),
            ("bytes of a single row, both ways", lambda c: f"{c.one_row:,.0f}"),
        )
        yield Text(
            f"plaintext: {self.matvec_us:.3f} us by numpy's matrix-vector product, "
            f"{self.plain_us:.3f} us by scikit-learn"
        )
        if self.left_out:
            yield Text(self.left_out)
        yield Text(f"the client learned: {self.learned}")
        yield Text("the server learned: the number of rows")

    def _rows(self, title: str, *rows: tuple[str, Callable[[BackendCost], str]]) -> Table:
        table = Table(title=title, title_justify="left", title_style="bold")
        table.add_column("")
        for cost in self.backends:
            table.add_column(cost.backend, justify="right")
        for what, tell in rows:
            table.add_row(what, *map(tell, self.backends))
        return table


def run(protect_model: bool = False) -> Inference:
    """Train on half of the patients, and predict the others from encrypted rows, by each backend.

    Raises:
        BackendUnavailableError: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_breast_cancer
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import train_test_split
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise BackendUnavailableError(
            "the demonstration trains with scikit-learn: pip install 'securecomp[ckks]'"
        ) from None
    rows, ill = load_breast_cancer(return_X_y=True)
    train, test, train_y, _ = train_test_split(rows, ill, test_size=0.5, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(train, train_y)
    backends, left_out = _backends(protect_model)
    if protect_model:
        test = test[: test.shape[1]]  # a protected model answers few rows
    batch = test if protect_model else np.tile(test, (-(-_BATCH // len(test)), 1))[:_BATCH]
    weights = np.array(model[-1].coef_[0])
    scaled = model[:-1].transform(batch)
    each = 1e6 / len(batch)
    return Inference(
        patients=len(test),
        trained=len(train),
        plain_us=_timed(lambda: model.predict_proba(batch), _RUNS)[1] * each,
        matvec_us=_timed(lambda: scaled @ weights, 20 * _RUNS)[1] * each,
        batch=len(batch),
        backends=tuple(_cost(model, b, test, batch, protect_model) for b in backends),
        left_out=left_out,
        learned="its logits, and their consequences for the model; they are too few to determine it"
        if protect_model
        else "its predictions, and from them (and the answers) the model",
    )


def _backends(protect_model: bool) -> tuple[list[Backend], str]:
    """Return the backends to run, the default one first, and why one is left out."""
    if protect_model:
        return ["native"], "SEAL is not here: it adds no noise that would hide a model"
    if not installed():
        return ["native"], "SEAL is not here: pip install 'securecomp[ckks]'"
    return ["seal", "native"], ""


def _cost(model: Any, backend: Backend, test: Any, batch: Any, protect_model: bool) -> BackendCost:
    def made() -> EncryptedLogisticRegression:
        return EncryptedLogisticRegression(model, protect_model=protect_model, backend=backend)

    encrypted = made()
    client, server, plan = encrypted.client_, encrypted.server_, encrypted.plan_
    predictions = client.decrypt(server.predict(client.encrypt(test)))
    error = np.abs(predictions.probabilities - model.predict_proba(test)).max()
    if protect_model:  # a new client asks for the timing
        encrypted = made()
        client, server = encrypted.client_, encrypted.server_
    runs = 1 if protect_model else _RUNS
    request, encrypting = _timed(lambda: client.encrypt(batch), runs)
    requests = [request] + [client.encrypt(batch) for _ in range(runs - 1)]
    queue = iter(requests)
    answer, predicting = _timed(lambda: server.predict(next(queue)), len(requests))
    _, decrypting = _timed(lambda: client.decrypt(answer, requests[-1]), 1)
    each = 1e6 / len(batch)
    return BackendCost(
        backend=backend,
        equal=int((predictions.labels == model.predict(test)).sum()),
        error=float(error),
        promised=plan.precision,
        client_us=(encrypting + decrypting) * each,
        server_us=predicting * each,
        sent=len(request) / len(batch),
        received=len(answer) / len(batch),
        one_row=sum(plan.bytes_per_row(1)),
        plan=str(plan),
    )


def _timed(work: Callable[[], Any], runs: int) -> tuple[Any, float]:
    """Return the last result, and the median seconds of the runs."""
    seconds, result = [], None
    for _ in range(runs):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return result, float(np.median(seconds))
