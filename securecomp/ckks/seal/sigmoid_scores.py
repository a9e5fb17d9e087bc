"""Both sides of the probability circuit, on message bodies."""

import numpy as np
import numpy.typing as npt

from securecomp.ckks.decrypted import Decrypted
from securecomp.ckks.enrolment import Kind, Registration
from securecomp.ckks.inference_messages import Columns, EncryptedScores
from securecomp.ckks.model_check import check_model
from securecomp.ckks.plan import InferencePlan
from securecomp.ckks.scaled_model import Scaled
from securecomp.ckks.seal import sigmoid_plan
from securecomp.ckks.seal.sigmoid_circuit import SigmoidCiphertexts, SigmoidClient, SigmoidServer
from securecomp.core.secret import Secret
from securecomp.errors import DecodeError, ParameterError
from securecomp.models import LogisticModel
from securecomp.protocol import wire

Floats = npt.NDArray[np.float64]


class ScoreClient(Secret):
    """Encrypts rows and decrypts probabilities. SEAL draws the randomness of its key.

    Args:
        plan: With a sigmoid circuit.
        secret: The key's bytes. None draws a new key.

    Raises:
        BackendUnavailableError: TenSEAL is not installed.
        DecodeError: `secret` is not a key of this plan.
    """

    QUERY = Columns
    ANSWER = EncryptedScores
    kind: Kind = "sigmoids"

    def __init__(self, plan: InferencePlan, secret: bytes | None) -> None:
        self._plan = plan
        self._client = SigmoidClient(circuit(plan), secret)
        self.secret = self._client.secret()

    def public(self) -> tuple[bytes, bytes]:
        """Return the public part of the key: no seed, and the relinearisation keys."""
        return b"", self._client.evaluation_keys()

    def encrypt(self, array: Floats, request: bytes) -> wire.Bytes:
        """Return the body of a request for rows that were checked, shape (n, d)."""
        scaled = array / np.array(self._plan.bounds)
        slots = self._client.plan.slots
        starts = range(0, len(scaled), slots)
        batches = [self._client.encrypt_columns(scaled[i : i + slots]) for i in starts]
        return wire.encode_body(Columns(request, len(array), batches))

    def decrypt(
        self,
        answer: EncryptedScores,
        payload: memoryview,
        rows: int,
        first: int = 1,  # noqa: ARG002 - no message names a row
    ) -> Decrypted:
        """Return each model's probabilities, shape (n, K), not rounded.

        Raises:
            DecodeError: Another number of batches than asked for, or not results of this plan.
        """
        slots, outputs = self._client.plan.slots, self._plan.outputs
        counts = _counts(rows, slots)
        if len(payload) or [len(batch) for batch in answer.batches] != [2 * outputs] * len(counts):
            raise DecodeError("the answer has another number of batches or results than asked for")
        found, outside = np.empty((rows, outputs)), np.zeros(rows, bool)
        for index, (count, batch) in enumerate(zip(counts, answer.batches, strict=True)):
            for output in range(outputs):
                result = SigmoidCiphertexts(*batch[2 * output : 2 * output + 2])
                place = slice(index * slots, index * slots + count)
                found[place, output], beyond = self._client.decrypt(result, count)
                outside[place] |= beyond
        return Decrypted(found, outside)

    def __repr__(self) -> str:
        return f"ScoreClient({self._client!r})"


class ScoreServer:
    """Computes probabilities with a model that it knows.

    Args:
        plan: With a sigmoid circuit.
        model: The model.

    Raises:
        ParameterError: The plan was not made for this model.
        BackendUnavailableError: TenSEAL is not installed.
    """

    QUERY = Columns
    ANSWER = EncryptedScores

    def __init__(self, plan: InferencePlan, model: LogisticModel | None) -> None:
        if model is None:
            raise ParameterError("the server needs the model to compute probabilities")
        check_model(model, plan)
        self.plan = plan
        self.circuit = circuit(plan)
        scaled = Scaled(model, plan.bounds)
        if max(scaled.totals) > self.circuit.weight_bound or scaled.logit > plan.logit_bound:
            raise ParameterError(
                "the plan is for smaller weights than this model's; plan again for this model"
            )
        scaled.check_domain(self.circuit.domain)
        self.weights = scaled.weights
        self.intercepts = np.array(model.intercepts)

    def admit(self, registration: Registration) -> "ScoreAccount":
        """Return a client's account.

        Raises:
            DecodeError: The client's keys are malformed.
        """
        return ScoreAccount(self, SigmoidServer(self.circuit, registration.public))


class ScoreAccount:
    """One client's evaluation keys and the model, with which requests are answered."""

    ready = True

    def __init__(self, server: ScoreServer, evaluator: SigmoidServer) -> None:
        self._server = server
        self._evaluator = evaluator

    def answer(self, query: Columns, payload: memoryview) -> wire.Bytes:
        """Return the body of an answer.

        Raises:
            DecodeError: Another number of batches or columns, or not ciphertexts of this plan.
        """
        server = self._server
        counts = _counts(query.rows, server.circuit.slots)
        if len(payload) or len(query.batches) != len(counts):
            raise DecodeError("the request has another number of batches than its rows need")
        batches = []
        for columns in query.batches:
            results = self._evaluator.evaluate(columns, server.weights, server.intercepts)
            batches.append([part for result in results for part in result])
        return wire.encode_body(EncryptedScores(query.request, query.rows, batches))


def circuit(plan: InferencePlan) -> sigmoid_plan.SigmoidPlan:
    """Return a plan's circuit for features divided by their bounds.

    Raises:
        ParameterError: The plan is not for probabilities.
    """
    return plan.sigmoid.of(len(plan.features))


def _counts(rows: int, slots: int) -> list[int]:
    """Return the rows of each batch."""
    return [min(slots, rows - start) for start in range(0, rows, slots)]
