"""A hospital asks a model owner for predictions; the two only exchange bytes.

python examples/encrypted_inference.py
"""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from securecomp.ckks import InferenceClient, InferenceServer, LogisticModel, Offer

ROWS, LABELS = load_breast_cancer(return_X_y=True, as_frame=True)


class ModelOwner:
    """Has the model. Publishes an offer, registers clients, answers requests."""

    def __init__(self) -> None:
        fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS[:300], LABELS[:300])
        self.server = InferenceServer.create(LogisticModel.from_sklearn(fitted), "model owner")
        self.offer = self.server.offer.to_json()

    def register(self, registration: bytes) -> None:
        # Compare the fingerprint with the hospital's by phone first.
        self.server.register(registration)

    def predict(self, request: bytes) -> bytes:
        return bytes(self.server.predict(request))


class Hospital:
    """Has the patients, and the only key that reads requests and answers."""

    def __init__(self, offer: str) -> None:
        self.client = InferenceClient.create(Offer.from_json(offer), "hospital")
        self.registration = self.client.registration.encode()

    def ask(self) -> bytes:
        return bytes(self.client.encrypt(ROWS[300:]))

    def read(self, answer: bytes) -> None:
        predictions = self.client.decrypt(answer)
        right = (predictions.labels == LABELS[300:]).mean()
        print(f"{len(predictions.labels)} patients, {right:.1%} of the labels are right")
        print("probabilities of the first three:", predictions.probabilities[:3, 1].round(3))


def main() -> None:
    owner = ModelOwner()
    hospital = Hospital(owner.offer)
    owner.register(hospital.registration)
    request = hospital.ask()
    answer = owner.predict(request)
    hospital.read(answer)
    print(f"{len(request):,} bytes there, {len(answer):,} back; the owner could read none of them")


if __name__ == "__main__":
    main()
