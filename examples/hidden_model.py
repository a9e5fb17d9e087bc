"""A hospital and a model owner: neither shows its part, the hospital gets the risks.

A third party deals random numbers, and sees neither. All three run here, over the real messages.

python examples/hidden_model.py
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from securecomp.mpc import Computation, median, sigmoid
from securecomp.protocol.local_carrier import LocalCarrier

ROWS, LABELS = load_breast_cancer(return_X_y=True)


def main() -> None:
    known, asked = slice(0, 300), slice(300, None)
    scaler = StandardScaler().fit(ROWS[known])
    model = LogisticRegression().fit(scaler.transform(ROWS[known]), LABELS[known])

    carrier = LocalCarrier()
    together = Computation(["hospital", "model owner"], carrier)
    patients = together.share("hospital", scaler.transform(ROWS[asked]), bound=16, bits=16)
    weights = together.share("model owner", model.coef_[0], bound=4, bits=16)
    intercept = together.share("model owner", model.intercept_[0], bound=4, bits=16)

    # Exact on the grid: no rounding on the way, none that grows.
    logits = patients @ weights + intercept.finer(weights.scale * patients.scale)
    risks = sigmoid(logits.truncate(16)).reveal(to="hospital")
    middle = median(logits[:25]).reveal(to="hospital")

    expected = model.predict_proba(scaler.transform(ROWS[asked]))[:, 1]
    print(f"{len(risks)} patients; largest difference to plaintext: ", end="")
    print(f"{np.abs(risks - expected).max():.4f}")
    print(f"labels equal: {((risks > 0.5) == (expected > 0.5)).sum()} of {len(risks)}")
    print(f"median logit of the first 25, and nothing else of them: {middle:.4f}")
    print(f"{carrier.transcript.bytes_sent:,} bytes, {carrier.transcript.messages:,} messages")


if __name__ == "__main__":
    main()
