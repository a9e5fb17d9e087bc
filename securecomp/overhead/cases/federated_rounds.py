"""A round of federated averaging over secure sums, against the same round in the clear."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from securecomp.federated.checkpoints import begin
from securecomp.federated.config import TrainingTerms
from securecomp.federated.local_update import ScaledRows
from securecomp.federated.losses import Loss
from securecomp.federated.plaintext_sum import PlaintextSum
from securecomp.federated.trainer import Model, Trainer
from securecomp.overhead.cases.synthetic_data import Synthetic
from securecomp.overhead.job import Case, Communication, Job, WrongResultError
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.local_carrier import LocalCarrier

_SITES = (4, 54, 500)
_ROWS, _COLUMNS = 50, 20
_NAMES = (*(f"x{i}" for i in range(_COLUMNS)), "Intercept")


def _rows(sites: int) -> dict[str, ScaledRows]:
    draw = Synthetic(7)
    effects = draw.normal(0, 0.5, _COLUMNS)
    found = {}
    for i in range(sites):
        values = draw.normal(0, 1, (_ROWS, _COLUMNS))
        ill = draw.random(_ROWS) < 1 / (1 + np.exp(-values @ effects))
        features = np.column_stack([values, np.ones(_ROWS)])
        found[f"hospital {i}"] = ScaledRows(features, ill[:, None].astype(np.float64))
    return found


def averaged(protocol: str, sites: int) -> Job:
    """Return the job of one round: a local epoch in batches, and one sum."""
    rows = _rows(sites)
    terms = TrainingTerms(rounds=1, batch_size=10, max_rows=1 << 12)
    model = Model(Loss("sigmoid"), _NAMES, 1, True)
    # The seed of the batches is public, and the same for both sides.
    start = begin(len(_NAMES), _COLUMNS, lambda size: bytes(size))

    def run(scheme: sums.SumProtocol, carrier: LocalCarrier) -> Trainer:
        carrier.start()
        trainer = Trainer(terms, model, rows, scheme, carrier, start, sites=tuple(rows))
        trainer.train()
        return trainer

    def setup() -> tuple[sums.SumProtocol, LocalCarrier]:
        scheme, carrier = sums.protocol(protocol), LocalCarrier()
        for name in rows:
            carrier.identity(name)
        if isinstance(scheme, Paillier):
            scheme.key(carrier)
        return scheme, carrier

    clear = LocalCarrier()

    def check(plain: Trainer, secure: Trainer) -> float:
        if plain.state.weights != secure.state.weights:
            raise WrongResultError("the weights are not the same bits as in the clear")
        return 0.0

    return Job(
        sizes={"sites": sites, "rows": sites * _ROWS, "columns": _COLUMNS},
        plain=lambda: run(PlaintextSum(), clear),
        secure=lambda ready: run(*ready),
        check=check,
        setup=setup,
        cost=lambda ready, _: Communication.of(ready[1].transcript, rows),
        note=(
            "One round: an epoch in batches of 10 at every site, one sum, and the total to "
            "every site. Plaintext: the same in the clear. Long-term keys are drawn before; "
            "masking agrees on new keys in every round."
        ),
    )


def for_developers() -> Iterator[Case]:
    """Yield a round by each protocol, over growing numbers of sites."""
    for protocol in sums.PROTOCOLS:
        for sites in _SITES:
            yield Case(
                f"training/round/{protocol}/{sites}",
                f"A round of federated averaging, {sites} sites, {_COLUMNS} columns, {protocol}",
                partial(averaged, protocol),
                size=sites,
                quick=min(sites, 54 if protocol != "paillier" else 4),
                tiny=4,
                series="sites",
                scheme=protocol,
                rounds=0 if sites < 500 else 3,
            )
