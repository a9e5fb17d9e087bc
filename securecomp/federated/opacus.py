"""PyTorch models under the same terms: Opacus clips and adds noise, we sample, account and pay.

Opacus (Yousefpour et al. 2021) computes each row's gradient of any network, which our trainer does
not. Around it, this is ours: batches are exact Poisson samples from AES-256, and there are as many
as were paid for; noise is as small as the promise allows, by the tightest accountant; the ledger
reserves before the first step.

What is weaker than in our own trainer, and told in the guarantee: Opacus' noise and its sums are
floating-point numbers, and the noise is PyTorch's, of a Mersenne Twister with a seed of 64 bits.
Its `secure_mode` would take the torchcsprng package, which is kept no longer, and hide the least
significant bits in part. So the promise is that of real numbers and true randomness: it does not
hold against who sees all digits of the weights and looks for the holes in floating-point noise
(Mironov 2012), or reconstructs the generator's state.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import BackendUnavailableError, BudgetError, ParameterError, RangeError
from securecomp.federated.dp_config import DPTerms, agreed
from securecomp.federated.dpsgd import Schedule
from securecomp.federated.poisson import batches, check_rate
from securecomp.privacy.accounting import Sampled, TotalCost, total
from securecomp.privacy.guarantee import Guarantee
from securecomp.privacy.policy import Budget

try:
    import torch
    from opacus import GradSampleModule
    from opacus.accountants import RDPAccountant
    from opacus.optimizers import DPOptimizer
    from opacus.validators import ModuleValidator
    from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
    from torch.utils._pytree import tree_map
    from torch.utils.data import DataLoader, default_collate
except ImportError as error:
    raise BackendUnavailableError(
        "PyTorch models need torch and opacus; pip install 'securecomp[torch]'"
    ) from error

_NOISE = "floating-point noise (by Opacus, of a generator that is not cryptographic)"


class _WholeBatches(DPOptimizer):  # type: ignore[misc]
    """A step takes a batch as it was drawn: parts that add up could hold a row twice."""

    def signal_skip_step(self, do_skip: bool = True) -> None:
        """Refuse to put steps together."""
        if do_skip:
            raise ParameterError("a step is one batch, and none is skipped; take a smaller batch")


class PrivateTraining:
    """A training that is paid for; iterate over it to get its batches, and step once for each.

    Attributes:
        model: The model to call: it keeps each row's gradient.
        optimizer: The optimizer to step: it clips, adds noise, and divides by the expected batch.
        schedule: Rate, steps, clip and noise multiplier.
        guarantee: What is promised; None without noise.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        data: Any,
        schedule: Schedule,
        guarantee: Guarantee | None,
        entropy: Entropy,
    ) -> None:
        """Wrap what the user brought; `private_training` does it."""
        _check_parts(model, optimizer)
        generator = torch.Generator().manual_seed(int.from_bytes(entropy(8), "big"))
        self.schedule = schedule
        self.guarantee = guarantee
        try:
            self.model = GradSampleModule(model)
        except (NotImplementedError, ValueError) as error:
            raise ParameterError(f"Opacus cannot train this model: {error}") from None
        self.optimizer = _WholeBatches(
            optimizer,
            noise_multiplier=schedule.noise,
            max_grad_norm=schedule.clip,
            expected_batch_size=schedule.expected,
            generator=generator,
        )
        self.optimizer.attach_step_hook(self._count)
        self._guard = optimizer.register_step_pre_hook(self._check_noised)
        self._noised = False
        self._accountant = RDPAccountant()
        self._data = data
        self._drawn, self._size = 0, 0
        self._batches = batches(len(data), schedule.rate, schedule.steps, entropy)

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches that are left; some may be empty, and are steps as all others.

        Raises:
            ParameterError: No step was made on a batch.
        """
        for batch in self._batches:
            self._drawn, self._size = self._drawn + 1, len(batch)
            if len(batch):
                yield default_collate([self._data[int(place)] for place in batch])
            else:
                yield tree_map(lambda part: part[:0], default_collate([self._data[0]]))
            if self._drawn != self.steps:
                raise ParameterError(
                    "no step was made on a batch; each gets one, also an empty one, whose noise "
                    "hides that it is empty"
                )

    def close(self) -> None:
        """Take from the model what training kept of rows: their gradients, and their sums."""
        self._guard.remove()
        model = self.model.to_standard_module()
        for parameter in model.parameters():
            parameter.grad = None
            vars(parameter).pop("summed_grad", None)
        for module in model.modules():
            vars(module).pop("activations", None)

    @property
    def steps(self) -> int:
        """Number of steps that were made."""
        return sum(count for _, _, count in self._accountant.history)

    def spent(self, delta: float) -> TotalCost:
        """Return what the steps so far cost, by our accountants."""
        history = self._accountant.history
        return total([(Sampled(rate, noise), count) for noise, rate, count in history], delta)

    def opacus_epsilon(self, delta: float) -> float:
        """Return what Opacus says that the steps so far cost."""
        return float(self._accountant.get_epsilon(delta))

    def _count(self, optimizer: Any) -> None:
        """Count a step before it is made; refuse one that is not paid for, or not accounted so."""
        if self.steps >= self.schedule.steps:
            raise BudgetError(
                f"{self.schedule.steps} steps were paid for, and all were made; this one was not"
            )
        if optimizer.accumulated_iterations != 1:
            raise ParameterError(
                "a step is one batch; call optimizer.zero_grad() before each, and step after each"
            )
        if self._drawn != self.steps + 1 or len(optimizer.grad_samples[0]) != self._size:
            raise ParameterError(
                "a step takes the batch that was drawn for it, whole and once: iterate over the "
                "training, and step once for each batch"
            )
        _check_rows_alone(self.model)
        if not all(bool(torch.isfinite(p.grad).all()) for p in optimizer.params):
            raise RangeError(
                "a row's gradient is NaN or infinite, or the weights are; look for such rows in "
                "the data, or take a smaller learning rate; this step was not made"
            )
        noise, rate = self.schedule.noise, self.schedule.rate
        self._accountant.step(noise_multiplier=noise, sample_rate=rate)
        self._noised = True

    def _check_noised(self, *_: Any) -> None:
        """Refuse a step of the user's own optimizer, which would take gradients as they are."""
        if not self._noised:
            raise ParameterError(
                "this optimizer knows neither clip nor noise; step training.optimizer instead"
            )
        self._noised = False


def _check_parts(model: Any, optimizer: Any) -> None:
    """Refuse what cannot be wrapped, before it is."""
    problems = ModuleValidator.validate(model, strict=False)
    if problems:
        raise ParameterError(f"Opacus cannot train this model: {problems[0]}")
    _check_rows_alone(model)
    if isinstance(optimizer, DPOptimizer):
        raise ParameterError("give the plain optimizer; Opacus' own is put around it here")
    own = {id(parameter) for parameter in model.parameters()}
    trained = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    if not trained or not all(id(parameter) in own for parameter in trained):
        raise ParameterError("the optimizer trains parameters of this model, and no others")


def _check_rows_alone(model: Any) -> None:
    """Refuse layers that mix rows or keep what they saw of them, also where nothing is trained."""
    for name, module in model.named_modules():
        kept = isinstance(module, _NormBase) and module.track_running_stats
        if module.training and (kept or isinstance(module, _BatchNorm)):
            raise ParameterError(
                f"layer {name!r} ({type(module).__name__}) mixes the rows of a batch, or keeps "
                "their means, without noise; take GroupNorm or LayerNorm, or freeze it by .eval()"
            )


@contextmanager
def private_training(
    model: Any,
    optimizer: Any,
    data: Any,
    *,
    clip: float,
    ledger: Budget | None = None,
    units: int | None = None,
    entropy: Entropy = entropy_.system,
    **terms: Any,
) -> Iterator[PrivateTraining]:
    """Train a PyTorch model under a promise.

    ```
    with private_training(model, optimizer, data, epsilon=2, delta=1e-5, clip=1) as training:
        for rows, labels in training:
            training.optimizer.zero_grad()
            loss(training.model(rows), labels).backward()
            training.optimizer.step()
    print(training.guarantee)
    ```

    Args:
        model: A module whose loss is a mean over the rows of a batch, and whose layers and loss
            treat each row by itself: no batch normalisation, and no mean that is divided by what
            the batch has, such as a sum of class weights. A model is wrapped for the block only;
            nothing of a row is left in it afterwards but what the noised steps taught it.
        optimizer: Over its parameters; within the block it takes no steps of its own.
        data: A data set with `len` and tensors by index, and no DataLoader: batches are drawn here.
        clip: The largest norm of a row's gradient.
        ledger: What it is paid from: reserved on entering, settled on leaving; an error within
            spends all of it.
        units: How many rows there are, a public number; by default the exact one.
        entropy: Source of batches, and of the seed of Opacus' noise.
        **terms: As of `DPLogisticRegression`: epsilon, delta, noise_multiplier, rate or batch,
            steps or epochs, unit ("record" alone), relation, sampling.

    Raises:
        ParameterError: A DataLoader, a model that Opacus cannot train, or terms that promise
            nothing.
        BudgetError: The ledger does not have what it costs, or a step was made that nobody paid.
        RangeError: A gradient is not finite, at a step; that this was so is told, without noise.
    """
    if isinstance(data, DataLoader):
        raise ParameterError(
            "a DataLoader shuffles its rows, or takes them in order, and the promise is accounted "
            "for Poisson samples; give its data set (loader.dataset), and the batch's expected "
            "size as batch="
        )
    try:
        asked = DPTerms(**terms)
    except TypeError as error:
        raise ParameterError(f"terms: {error}") from None
    if asked.unit != "record":
        raise ParameterError(
            "Opacus clips each row by itself; for patients with several rows use "
            "DPLogisticRegression, or make each patient one row"
        )
    count = len(data) if units is None else units
    plan = agreed(asked, count, sum(p.numel() for p in model.parameters() if p.requires_grad))
    # The optimizer has the learning rate.
    schedule = Schedule(plan.rate, plan.steps, clip, plan.noise, 1.0, plan.rate * count)
    check_rate(plan.rate, len(data))
    guarantee = plan.guarantee(clip, count, ledger is not None, _NOISE)
    training = PrivateTraining(model, optimizer, data, schedule, guarantee, entropy)
    with closing(training), plan.paying(f"{type(model).__name__} by Opacus", ledger):
        yield training
