"""The demonstration of encrypted inference, on a data set that scikit-learn brings."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from securecomp.ckks import EncryptedLogisticRegression
from securecomp.errors import BackendUnavailableError

_BATCH = 4096  # rows for the timing: the test patients again and again
_RUNS = 5


@dataclass(frozen=True)
class Inference:
    """The findings of the demonstration. All numbers are of this run.

    Attributes:
        patients: Rows that were predicted.
        trained: Rows that the model was fitted on.
        equal: Labels equal to plaintext's.
        error: Largest difference of a probability from plaintext's.
        promised: Largest error of a logit that the plan promises.
        plain_us: Microseconds of a prediction by scikit-learn.
        matvec_us: Microseconds of numpy's matrix-vector product alone.
        client_us: Microseconds of the client: encryption and decryption.
        server_us: Microseconds of the server.
        sent: Bytes to the server, for each prediction.
        received: Bytes back, for each prediction.
        batch: Rows of the timed batch.
        plan: The plan's lines.
        learned: The client's knowledge afterwards, in words.
    """

    patients: int
    trained: int
    equal: int
    error: float
    promised: float
    plain_us: float
    matvec_us: float
    client_us: float
    server_us: float
    sent: float
    received: float
    batch: int
    plan: str
    learned: str

    def facts(self) -> dict[str, Any]:
        """Return all as plain values."""
        return {**self.__dict__, "plan": self.plan.splitlines()}

    def parts(self) -> Iterator[Any]:
        """Yield the parts to print."""
        yield Text(
            f"Breast tumours: {self.trained} patients to train on, {self.patients} to predict"
        )
        yield Text(self.plan)
        agree = Table(title="against plaintext", title_justify="left", title_style="bold")
        agree.add_column("")
        agree.add_column("found", justify="right")
        agree.add_row("labels equal", f"{self.equal} of {self.patients}")
        agree.add_row("largest error of a probability", f"{self.error:.1e}")
        agree.add_row("largest error of a logit, promised", f"{self.promised:.0e}")
        yield agree
        cost = Table(
            title=f"cost of a prediction, in a batch of {self.batch:,}",
            title_justify="left",
            title_style="bold",
        )
        cost.add_column("")
        cost.add_column("microseconds", justify="right")
        cost.add_column("times plaintext", justify="right")
        for what, number in (
            ("numpy, the matrix-vector product", self.matvec_us),
            ("scikit-learn, plaintext", self.plain_us),
            ("client: encrypt and decrypt", self.client_us),
            ("server: encrypted", self.server_us),
        ):
            cost.add_row(what, f"{number:.3f}", f"{number / self.matvec_us:.0f}x")
        cost.add_row("bytes there, back", f"{self.sent:.0f}, {self.received:.0f}", "")
        yield cost
        yield Text(f"the client learned: {self.learned}")
        yield Text("the server learned: the number of rows")


def run(protect_model: bool = False) -> Inference:
    """Train on half of the patients, and predict the others from encrypted rows.

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
    encrypted = EncryptedLogisticRegression(model, protect_model=protect_model)
    if protect_model:
        test = test[: encrypted.plan_.max_rows]
    client, server = encrypted.client_, encrypted.server_
    predictions = client.decrypt(server.predict(client.encrypt(test)))
    error = np.abs(predictions.probabilities - model.predict_proba(test)).max()
    batch = test
    if not protect_model:
        batch = np.tile(test, (-(-_BATCH // len(test)), 1))[:_BATCH]
    else:
        # A protected model answers few rows: a new client asks for the timing.
        encrypted = EncryptedLogisticRegression(model, protect_model=True)
        client, server = encrypted.client_, encrypted.server_
    request, encrypting = _timed(lambda: client.encrypt(batch), 1 if protect_model else _RUNS)
    requests = [request] + [client.encrypt(batch) for _ in range(0 if protect_model else _RUNS - 1)]
    queue = iter(requests)
    answer, predicting = _timed(lambda: server.predict(next(queue)), len(requests))
    _, decrypting = _timed(lambda: client.decrypt(answer, requests[-1]), 1)
    weights = np.array(model[-1].coef_[0])
    scaled = model[:-1].transform(batch)
    each = 1e6 / len(batch)
    return Inference(
        patients=len(test),
        trained=len(train),
        equal=int((predictions.labels == model.predict(test)).sum()),
        error=float(error),
        promised=encrypted.plan_.precision,
        plain_us=_timed(lambda: model.predict_proba(batch), _RUNS)[1] * each,
        matvec_us=_timed(lambda: scaled @ weights, 20 * _RUNS)[1] * each,
        client_us=(encrypting + decrypting) * each,
        server_us=predicting * each,
        sent=len(request) / len(batch),
        received=len(answer) / len(batch),
        batch=len(batch),
        plan=str(encrypted.plan_),
        learned="its logits, and their consequences for the model; they are too few to determine it"
        if protect_model
        else "its predictions, and from them (and the answers) the model",
    )


def _timed(work: Callable[[], Any], runs: int) -> tuple[Any, float]:
    """Return the last result, and the median seconds of the runs."""
    seconds, result = [], None
    for _ in range(runs):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return result, float(np.median(seconds))
