"""What noise does to a model that memorises, and to one that learns; and what is promised for it.

python examples/private_training.py [seeds]

The first table: 500 members and 500 others, 500 features, normal with variance 1/500, so that rows
have a length of about 1. The score of a row is the sum of its first ten features (ten informative
weights of 1), scaled to variance 1; its label is whether the score, with normal label noise of
standard deviation .5, is above 0. A logistic regression with as many weights as members memorises
them: an attacker who says "member" where the loss is small is often right. Noise makes it forget.

The second: scikit-learn's breast cancer, features scaled by public numbers.
"""

import sys
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from securecomp.federated.dp_models import DPLogisticRegression
from securecomp.federated.promise import simple_epsilon
from securecomp.privacy.guarantee import PrivacyWarning

ROWS, FEATURES, INFORMATIVE, LABEL_NOISE = 500, 500, 10, 0.5
RATE, STEPS, CLIP, LEARNING_RATE = 0.1, 1000, 1.0, 4.0
DELTA = 1e-5


@dataclass(frozen=True)
class Outcome:
    """What one training came to: accuracies on members and others, the attack's AUC, epsilon."""

    train: float
    test: float
    attack: float
    epsilon: float


def population(generator):
    """Return the rows and labels of 500 members, and of 500 others."""
    rows = generator.normal(size=(2 * ROWS, FEATURES)) / np.sqrt(FEATURES)
    score = rows[:, :INFORMATIVE].sum(axis=1) / np.sqrt(INFORMATIVE / FEATURES)
    labels = score + LABEL_NOISE * generator.normal(size=2 * ROWS) > 0
    return (rows[:ROWS], labels[:ROWS]), (rows[ROWS:], labels[ROWS:])


def losses(model, rows, labels):
    """Return each row's loss, by which the attacker decides."""
    chances = model.predict_proba(rows)[np.arange(len(rows)), labels.astype(int)]
    return -np.log(np.maximum(chances, 1e-300))


def memorise(noise, seed, **options):
    """Train on members with this noise multiplier, and attack."""
    members, others = population(np.random.default_rng(seed))
    model = DPLogisticRegression(
        delta=DELTA,
        clip=CLIP,
        rate=RATE,
        steps=STEPS,
        learning_rate=LEARNING_RATE,
        fit_intercept=False,
        noise_multiplier=noise,
        **options,
    ).fit(*members)
    told = losses(model, *members), losses(model, *others)
    attack = roc_auc_score([1] * ROWS + [0] * ROWS, -np.concatenate(told))
    return Outcome(model.score(*members), model.score(*others), attack, model.epsilon_)


def breast_cancer(epsilon):
    """Return the accuracy on other patients of a model with this epsilon, and its noise."""
    rows, benign = load_breast_cancer(return_X_y=True)
    # Public numbers: what the first 50 patients would look like in a paper; they are left out.
    middle, spread = rows[:50].mean(axis=0), rows[:50].std(axis=0)
    rows = (rows[50:] - middle) / spread
    train, test, known, asked = train_test_split(rows, benign[50:], random_state=0)
    model = DPLogisticRegression(epsilon, DELTA, rate=1.0, steps=50).fit(train, known)
    return model.score(test, asked), model.noise_multiplier_


def main(seeds=3):
    print(f"a model that memorises: {seeds} populations, means")
    print(f"{'noise':>6}{'members':>9}{'others':>8}{'attack AUC':>12}{'epsilon':>9}{'simple':>8}")
    for noise in (0, 1, 2, 4):
        found = [memorise(noise, seed) for seed in range(seeds)]
        train, test, attack = (
            np.mean([getattr(one, name) for one in found]) for name in ("train", "test", "attack")
        )
        simple = f"{simple_epsilon(noise, RATE, STEPS, DELTA):.1f}" if noise else "inf"
        epsilon = f"{found[0].epsilon:.1f}"
        print(f"{noise:>6}{train:>9.2f}{test:>8.2f}{attack:>12.2f}{epsilon:>9}{simple:>8}")
    print(f"epsilon at delta {DELTA:g}; simple: by Renyi divergences of integer orders alone\n")

    print("breast cancer, accuracy on patients who were not in training, 5 trainings")
    for epsilon in (0.5, 2, 8):
        shares, noises = zip(*(breast_cancer(epsilon) for _ in range(5)), strict=True)
        print(f"epsilon {epsilon:>3}: {np.mean(shares):.3f}, noise multiplier {noises[0]:.2f}")


if __name__ == "__main__":
    warnings.simplefilter("error", PrivacyWarning)
    main(*map(int, sys.argv[1:2]))
