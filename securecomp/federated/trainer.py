"""Training in rounds: each opens the totals of what the sites propose, and nothing of a site.

In a round every site that is asked computes its change of the weights, and one secure sum adds the
changes, each times the site's number of rows, and the numbers of rows: who sees the totals can
average, and sees neither a site's change nor how many rows it has. With privacy `protection` says
what is added instead.

What parties learn: the model after each round, hence the averaged changes; over how many rows; who
took part. Numbers of rows over different sets of sites give away how many a site has: with a
fraction of the sites in each round, or with sites that are late, divide by a public number instead
(`TrainingTerms.examples`), and no number of rows is opened in a round. An average over few sites,
or many rounds of it, says something of each of them: only noise bounds how much.

Against crashes: where the training stands is written down after each round. A round that began and
has no end on record may have been opened. With noise it is never opened again, since two sums of
the same with different noise have less noise than was paid for; nor without, where sites may drop
out, since the difference of two sums could be one site's change. Else it is done again exactly as
it was, over the same sites.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from securecomp.core import prg
from securecomp.core.limbs import Limbs
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.federated import local_update
from securecomp.federated.checkpoints import Checkpoint, CheckpointFile, Round, floats, numbers
from securecomp.federated.config import TrainingTerms
from securecomp.federated.local_update import ScaledRows
from securecomp.federated.losses import Floats, Loss
from securecomp.federated.payment import Payment
from securecomp.federated.plaintext_sum import PlaintextSum
from securecomp.federated.protection import Protection
from securecomp.federated.round_sum import START, Gone, RoundSum
from securecomp.privacy.policy import Privacy
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.carrier import Carrier, agreed_bounds
from securecomp.protocol.session import Layout
from securecomp.statistics.adder import IntegerBlock, RealBlock

Absent = Callable[[int, tuple[str, ...]], Gone]
"""Takes a round and who is asked; returns who does not answer, by step."""
Progress = Callable[[int, int], None]
_LARGEST_LOSS = 1024.0  # of a row, on average over a site
_LOSS_BITS = 20
_ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Model:
    """Description of the model that is trained.

    Attributes:
        loss: Of a row.
        names: Of the columns of features; the intercept's, if there is one, is last.
        outputs: Rows of weights.
        intercept: Whether the last column is one of ones.
    """

    loss: Loss
    names: tuple[str, ...]
    outputs: int
    intercept: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The weights' shape."""
        return self.outputs, len(self.names)

    def labels(self) -> list[str]:
        """Name the totals of changes."""
        marks = [""] if self.outputs == 1 else [f" (output {i + 1})" for i in range(self.outputs)]
        return [f"rows * change of {name}{mark}" for mark in marks for name in self.names]


class Trainer:
    """Runs a training to its end, from wherever a checkpoint says it stands.

    Attributes:
        terms: What was agreed.
        protection: The noise; None without.
        state: Where it stands.
        opener: Counts the sums, and names what was opened.
    """

    def __init__(
        self,
        terms: TrainingTerms,
        model: Model,
        rows: Mapping[str, ScaledRows],
        protocol: sums.SumProtocol,
        carrier: Carrier,
        state: Checkpoint,
        *,
        sites: Sequence[str],
        resumed: bool = False,
        privacy: Privacy | None = None,
        record: CheckpointFile | None = None,
        absent: Absent | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Check all that can be checked before anything is sent or spent.

        Args:
            terms: What was agreed.
            model: What is trained.
            rows: Those of each site that is here.
            protocol: Who adds, and how.
            carrier: Brings messages.
            state: Where it stands.
            sites: Names of all sites.
            resumed: Whether that was on record.
            privacy: What noise promises; None for none.
            record: Where it is kept how the training stands; by default nowhere.
            absent: Who does not answer, for simulations; by default everybody answers.
            progress: Is told the rounds that are done, and how many there will be.

        Raises:
            ParameterError: Terms that do not fit each other or a site's rows.
            ThresholdError: Too few sites.
            LocalProtocolError: Its rounds are not paid for.
        """
        if privacy is not None and isinstance(protocol, PlaintextSum):
            raise ParameterError(
                "noise in parts protects nobody whose sum is in the clear: each part alone is too "
                "little; take sharing, masking or paillier"
            )
        self.sites = tuple(sites)
        for site, own in rows.items():
            terms.check_rows(site, own.count, noised=privacy is not None)
        self.terms = terms if privacy is None else _with_dropouts(terms, privacy)
        self.model = model
        self._rows = rows
        self._carrier = carrier
        self._record = record or CheckpointFile(None, b"")
        size = model.shape[0] * model.shape[1]
        self.state = state
        self._resumed = resumed
        least = self.terms.fewest(len(self.sites), protocol.fewest)
        self.protection: Protection | None = None
        if privacy is not None:
            self.protection = Protection.of(privacy, terms, self.sites, self.state.seed, size)
        colluding = 0 if privacy is None else privacy.colluding
        self.opener = RoundSum(
            protocol, carrier, self.sites, least, colluding, dict.fromkeys(state.opened)
        )
        self.opener.scheme(self.terms.per_round(len(self.sites)))
        self._room: list[int] = []
        if self.protection is not None:
            self._room = self._rooms(self.protection)
            self._check_room(self.protection)
        self._payment = Payment.of(privacy, self._record, self.terms)
        self._payment.check(self.state, resumed=resumed)
        self._absent = absent or (lambda _number, _sites: {})
        self._progress = progress or (lambda _done, _total: None)

    def _check_room(self, protection: Protection) -> None:
        """Refuse, before the ledger pays, names and sizes that no sum would take."""
        scheme, many = self.opener.scheme(len(self.sites)), len(self.sites)
        for room in self._room:
            Limbs.plan(room, many, scheme.limit)
        protection.guarantee(paid=False)
        agree = getattr(scheme, "session", None)
        if agree is not None:
            agree(self._carrier, Layout(1, 1), self.sites)

    def _rooms(self, protection: Protection) -> list[int]:
        """Return the largest integers of a site: its noised number of units, and in a round."""
        return [self.terms.max_rows + protection.plan.reach(0), protection.bound]

    @property
    def weights(self) -> Floats:
        """The model's weights now, shape (K, d)."""
        return numbers(self.state.weights).reshape(self.model.shape)

    def train(self) -> None:
        """Run the rounds that are left.

        Raises:
            RangeError: The training diverges.
            ThresholdError: Too few sites are left; it can go on from its checkpoint.
            BudgetError: The ledger does not cover all rounds; nothing was sent.
        """
        if self._room:
            self._room = agreed_bounds(self._carrier, "the noise's reach", self._room)
        if not self._resumed:
            self._save(reserved=self._payment.pay(self.state))
        if self.protection is not None and self.protection.counted and self.state.units is None:
            self._count_units(self.protection)
        total = self.terms.rounds
        self._progress(len(self.state.rounds), total)
        while len(self.state.rounds) < total:
            self._round(len(self.state.rounds) + 1)
            self._progress(len(self.state.rounds), total)
        self._payment.settle(self.state)

    def _round(self, number: int) -> None:
        asked = self.terms.participants(self.sites, self.state.seed, number)
        gone = self._absent(number, asked) or {}
        self.opener.check(gone)
        there = [name for name in asked if name not in gone.get(START, ())]
        if not self._payment.first(self.state, f"round {number}"):
            self._finished(Round(number, (), None, None, 0.0), self.weights)
            return
        while True:
            try:
                moved, done = self._opened(number, there, gone)
                break
            except ThresholdError as error:
                vanished = {name for names in gone.values() for name in names}
                others = [name for name in there if name not in vanished]
                if len(others) == len(there) or len(others) < self.opener.least:
                    self._save(attempt=self.state.attempt + 1)
                    raise ThresholdError(
                        self.opener.least,
                        len(others),
                        f"round {number}: too few sites are left for the sum that was agreed, and "
                        f"nothing was opened ({error.args[2]}); the training can go on from its "
                        "checkpoint when they are back, or begin with more dropouts",
                    ) from None
                there, gone = others, {}
        weights = self.weights + moved
        if not np.isfinite(weights).all():
            raise RangeError(
                f"the weights after round {number} are not finite: the training diverges; lower "
                f"learning_rate (now {self.terms.learning_rate:g}) or l2"
            )
        self._finished(done, weights)

    def _opened(self, number: int, there: list[str], gone: Gone) -> tuple[Floats, Round]:
        """Run one sum; return the change of the weights, and what is known of the round."""
        if self.protection is None:
            moved, names, examples, loss = self._averaged(number, there, gone)
        else:
            moved, names, examples, loss = self._noised(self.protection, number, there, gone)
        with np.errstate(all="ignore"):
            moved = self.terms.server_rate * moved
            size = float(np.linalg.norm(moved))
        return moved, Round(number, names, examples, loss, size)

    def _averaged(
        self, number: int, there: list[str], gone: Gone
    ) -> tuple[Floats, tuple[str, ...], float | None, float | None]:
        terms, weights = self.terms, self.weights
        here = self._here(there)
        counts = {name: self._rows[name].count for name in here}
        changes = {name: counts[name] * self._change(number, name) for name in here}
        bound = terms.bound * terms.max_rows
        blocks: list[IntegerBlock | RealBlock] = [
            RealBlock(self.model.labels(), bound, terms.bits, changes),
        ]
        if terms.examples is None:
            own = {name: [n] for name, n in counts.items()}
            blocks.append(IntegerBlock([_ROWS], terms.max_rows, own))
        if terms.track_loss:
            losses = {name: self._loss(number, name, weights) for name in here}
            bound = _LARGEST_LOSS * terms.max_rows
            blocks.append(RealBlock(["loss"], bound, _LOSS_BITS, losses))
        totals, names = self.opener.add(there, blocks, gone)
        rows = float(totals[1][0]) if terms.examples is None else self._units()
        loss = float(totals[-1][0]) / rows if terms.track_loss else None
        return np.asarray(totals[0] / rows).reshape(weights.shape), names, rows, loss

    def _noised(
        self, protection: Protection, number: int, there: list[str], gone: Gone
    ) -> tuple[Floats, tuple[str, ...], float | None, None]:
        weights, terms, model = self.weights, self.terms, self.model
        parts = {}
        for name in self._here(there):
            if protection.of_sites:
                vectors = iter([self._proposed(number, name).reshape(1, -1)])
            else:
                vectors = local_update.unit_gradients(model.loss, self._rows[name], weights)
            parts[name] = protection.integers(number, vectors, self._carrier.entropy)
        block = IntegerBlock(protection.labels(), self._room[1], parts)
        totals, names = self.opener.add(there, [block], gone)
        total = protection.decoded(number, totals[0]).reshape(weights.shape)
        if protection.of_sites:
            return total / len(names), names, None, None
        examples = self._units()
        with np.errstate(all="ignore"):
            gradient = total / examples + local_update.penalised(weights, terms.l2, model.intercept)
            return -terms.learning_rate * gradient, names, examples, None

    def _here(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self._rows]

    def _change(self, number: int, name: str) -> Floats:
        """Return a site's change; refuse one that is beyond what was agreed."""
        found = self._proposed(number, name)
        if not np.isfinite(found).all() or np.abs(found).max() > self.terms.bound:
            raise RangeError(
                f"{name}: its change of the weights in round {number} is not finite, or beyond the "
                f"agreed bound {self.terms.bound:g}: the training diverges; lower learning_rate "
                f"(now {self.terms.learning_rate:g}), or agree on a larger bound"
            )
        return found

    def _proposed(self, number: int, name: str) -> Floats:
        order = prg.derive(self.state.seed, "federated order", number, name)
        model = self.model
        return local_update.change(
            self.terms, model.loss, self._rows[name], self.weights, model.intercept, order
        )

    def _loss(self, number: int, name: str, weights: Floats) -> Floats:
        own = self._rows[name]
        found = local_update.total_loss(self.model.loss, own, weights)
        if not np.isfinite(found) or abs(found) > _LARGEST_LOSS * own.count:
            raise RangeError(
                f"{name}: its mean loss in round {number} is not finite, or above "
                f"{_LARGEST_LOSS:g}; lower learning_rate, scale the response, or leave out "
                "track_loss"
            )
        return np.array([found])

    def _count_units(self, protection: Protection) -> None:
        """Sum the number of units with noise, once, over the sites of the first round."""
        asked = self.terms.participants(self.sites, self.state.seed, 1)
        if not self._payment.first(self.state, "count"):
            raise ParameterError(
                "the training was interrupted while it counted the units, which is not done twice; "
                "begin anew, with a public number of them as examples"
            )
        entropy = self._carrier.entropy
        parts = {
            name: protection.plan.add(0, [self._rows[name].unit_count], entropy)
            for name in self._here(asked)
        }
        block = IntegerBlock([f"noised number of {protection.privacy.unit}s"], self._room[0], parts)
        totals, names = self.opener.add(asked, [block], {})
        # Of the others there may be as many a site; it only scales the steps.
        found = totals[0][0] * len(self.sites) / len(names)
        if found <= protection.plan.half_width(0):
            raise ParameterError(
                f"the noised number of units, {found:.0f}, is lost in its noise of "
                f"{protection.plan.half_width(0)}; the budget is spent; raise epsilon, take fewer "
                "rounds, or give a public number of units as examples"
            )
        opened = tuple(self.opener.opened)
        self._save(units=float(found), opened=opened)

    def _units(self) -> float:
        """Return the units of a round, by a public or a noised number of all."""
        known = self.terms.examples if self.state.units is None else self.state.units
        if known is None:
            raise ParameterError("the number of units is not known")
        return float(known) * self.terms.per_round(len(self.sites)) / len(self.sites)

    def _finished(self, done: Round, weights: Floats) -> None:
        rounds = (*self.state.rounds, done)
        opened = tuple(self.opener.opened)
        self._save(rounds=rounds, weights=floats(weights), attempt=0, opened=opened)

    def _save(self, **changes: object) -> None:
        new = msgspec.structs.replace(self.state, **changes)
        self._record.save(new)
        self.state = new


def _with_dropouts(terms: TrainingTerms, privacy: Privacy) -> TrainingTerms:
    return replace(terms, dropouts=privacy.dropouts)
