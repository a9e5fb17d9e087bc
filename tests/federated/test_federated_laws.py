"""What holds for any training: equal bits, bounded differences, files that are refused."""

import numpy as np
import pandas as pd
import pytest
from cases import each_case, examples
from federated.cohort import averaged, model, sites
from hypothesis import given
from hypothesis import strategies as st

from securecomp import Column, Privacy, Study
from securecomp.errors import DecodeError, KeyMismatchError
from securecomp.federated import FederatedLogisticRegression, checkpoints
from securecomp.privacy.distributed import NoisePlan


@examples(25)
@given(
    st.lists(st.integers(2, 30), min_size=3, max_size=6),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["sharing", "masking"]),
    st.floats(0.4, 1),
    st.integers(10, 52),
    st.booleans(),
)
def test_any_training_is_the_same_bits_in_the_clear(
    sizes, columns, epochs, protocol, fraction, bits, batches
):
    data = sites(columns, {f"site {i}": n for i, n in enumerate(sizes)}, seed=sum(sizes))
    fraction = max(fraction, 3 / len(sizes))
    how = {
        "local_epochs": epochs,
        "fraction": min(1, fraction),
        "bits": bits,
        "rounds": 3,
        "batch_size": 2 if batches else None,
        "classes": [0, 1],
        "server_rate": 0.7,
    }
    try:
        clear = model("clear", **how).fit(data)
    except ValueError as error:  # drawn labels of one class
        assert "of one class" in str(error)  # noqa: PT017
        return
    secret = model(protocol, **how).fit(data)
    assert secret.coef_.tobytes() == clear.coef_.tobytes()
    assert secret.history_ == clear.history_
    if how["fraction"] == 1 and not batches:
        w = np.zeros(columns + 1)
        found = model("clear", **(how | {"server_rate": 1.0, "bits": 52})).fit(data)
        w = averaged(data, 3, 0.5, epochs)
        assert np.allclose(np.append(found.coef_[0], found.intercept_), w, atol=1e-10)


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_refused_as_no_checkpoint(tmp_path_factory, data, headed):
    path = tmp_path_factory.mktemp("fuzz") / "training"
    if headed:
        import hashlib

        data = checkpoints._MAGIC + hashlib.sha256(data).digest() + data
    path.write_bytes(data)
    with pytest.raises((DecodeError, KeyMismatchError)):
        checkpoints.load(path, bytes(32), 4, 3)


def test_a_studys_patients_are_units(monkeypatch):
    """The first two rows of each are kept, and a patient's rows are summed before clipping."""
    monkeypatch.setattr(NoisePlan, "draw", lambda self, block, *_: [0] * self.changes[block].size)
    frames = {}
    for name, (x, y) in sites().items():
        patients = np.arange(len(y)) // 3
        frames[name] = pd.DataFrame({"a": x[:, 0].round(2), "y": y, "who": patients})
    agreed = {"a": Column(bound=4, decimals=2), "y": Column(bound=1, decimals=0)}
    terms = Privacy(2, 1e-5, unit="patient", identifier="who", records=2)
    fit = FederatedLogisticRegression(privacy=terms, strategy="sgd", rounds=1, clip=0.3)
    found = fit.fit(Study(frames, columns=agreed), "y ~ a")
    patients, total = 0, np.zeros(2)
    for frame in frames.values():
        kept = frame.groupby("who").head(2)
        x = np.column_stack([kept["a"] / 4, np.ones(len(kept))])
        gradients = pd.DataFrame(x * (0.5 - kept["y"].to_numpy())[:, None]).groupby(
            kept["who"].to_numpy()
        )
        for gradient in gradients.sum().to_numpy():
            total += gradient * min(1, 0.3 / max(np.linalg.norm(gradient), 1e-9))
            patients += 1
    assert found.history_[0].examples == patients
    expected = -0.5 * total / patients
    assert np.allclose([found.coef_[0, 0] * 4, found.intercept_[0]], expected, atol=1e-5)
    assert str(found.guarantee_.neighbours).endswith("one patient with at most 2 records")


@pytest.mark.slow
@each_case("protocol, many", [("sharing", 500), ("masking", 120)])
def test_many_sites(protocol, many):
    data = sites(sizes={f"site {i}": 3 + i % 5 for i in range(many)})
    how = {"rounds": 2, "local_epochs": 2, "dropouts": 5}

    def absent(number, asked):
        return {"start": asked[:2], "mask": asked[5:7]} if number == 1 else {}

    secret = model(protocol, absent=absent, **how).fit(data)
    clear = model(
        "clear", absent=lambda n, s: {"start": [*s[:2], *s[5:7]]} if n == 1 else {}, **how
    )
    assert secret.coef_.tobytes() == clear.fit(data).coef_.tobytes()
    assert len(secret.history_[0].sites) == many - 4
