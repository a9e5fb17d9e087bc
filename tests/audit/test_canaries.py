"""Secrets that a small model of characters was trained on, and how much of them it remembers."""

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from cases import each_case, named, some_or_all
from replaying import Replay
from scipy.stats import norm, skewnorm

from securecomp.audit.reconstruction.canaries import (
    BY_CHANCE,
    CanarySpace,
    _log_below,
    canary_exposure,
    extract_canaries,
)
from securecomp.errors import ParameterError

SPACE = CanarySpace("the patient is in room {}", length=4)
K = 4


class Characters:
    """Each character after the `K` before it: counts, smoothed, in training perhaps noised."""

    def __init__(self, texts, noise=0.0, seed=0, most=None):
        contexts = Counter()
        for text in texts:
            # A text counts once wherever it repeats itself, at most `most` times in all.
            seen = {(self.padded(text)[i - K : i], self.padded(text)[i]) for i in self.places(text)}
            contexts.update(sorted(seen))
        if most is not None:
            contexts = Counter({pair: min(n, most) for pair, n in contexts.items()})
        rng = np.random.default_rng(seed)
        self.symbols = sorted(set("".join(texts)) | set(SPACE.symbols))
        self.rows = {}
        for context in sorted({context for context, _ in contexts}):
            counts = np.array([contexts[context, s] for s in self.symbols], float)
            noised = counts + rng.laplace(0, noise, len(counts)) if noise else counts
            self.rows[context] = np.maximum(noised, 0) + 0.1
        self.unseen = np.full(len(self.symbols), 0.1)

    @staticmethod
    def padded(text):
        return "^" * K + text

    @staticmethod
    def places(text):
        return range(K, K + len(text))

    def score(self, texts):
        found = []
        for text in texts:
            total = 0.0
            for i in self.places(text):
                row = self.rows.get(self.padded(text)[i - K : i], self.unseen)
                total -= math.log(row[self.symbols.index(self.padded(text)[i])] / row.sum())
            found.append(total)
        return found


def corpus(seed=0, others=400):
    """Rooms of other patients, and what they say."""
    rng = np.random.default_rng(seed)
    return [SPACE.text("".join(map(str, rng.integers(0, 10, 4)))) for _ in range(others)]


TIMES = [n for n in (0, 1, 4, 16) for _ in range(8)]
CANARIES = SPACE.draw(len(TIMES), Replay("canaries"))


def inserted(canaries=CANARIES, times=TIMES):
    return [SPACE.text(secret) for secret, n in zip(canaries, times, strict=True) for _ in range(n)]


@pytest.fixture(scope="module")
def model():
    return Characters(corpus() + inserted())


def test_scores_of_the_wrong_sign_are_named(model):
    """Probabilities in place of perplexities rank what is remembered last."""
    for method in ("rank", "sample"):
        how = {"method": method, "times": TIMES, "entropy": Replay(1)}
        right = canary_exposure(model.score, SPACE, CANARIES, **how)
        assert not any("minus the logarithm" in remark for remark in right.remarks())
        turned = canary_exposure(lambda t: [-s for s in model.score(t)], SPACE, CANARIES, **how)
        assert any("score must return minus the logarithm" in r for r in turned.remarks()), method
    knows_nothing = canary_exposure(Characters(corpus()).score, SPACE, CANARIES, times=TIMES)
    assert not knows_nothing.reversed


@pytest.fixture(scope="module")
def leak(model):
    return canary_exposure(model.score, SPACE, CANARIES, times=TIMES)


def test_exposure_rises_with_how_often_a_secret_was_inserted(leak):
    means = [np.mean(leak.by_times()[n]) for n in (0, 1, 4, 16)]
    assert means == sorted(means)
    assert means[0] < 3
    assert means[1] > 5
    assert means[3] > 9
    assert max(leak.exposures) <= leak.most == math.log2(10_000 - 23)


def test_exposure_is_that_of_ranks_counted_by_hand(model, leak):
    scores = dict(zip(SPACE.all(), model.score([SPACE.text(s) for s in SPACE.all()]), strict=True))
    inside = {s for s, n in zip(CANARIES, TIMES, strict=True) if n}
    for secret, exposure in zip(CANARIES, leak.exposures, strict=True):
        among = [s for s in scores if s == secret or s not in inside]
        rank = sum(scores[s] <= scores[secret] for s in among)
        assert exposure == pytest.approx(math.log2(len(among) / rank), abs=1e-12)


@each_case("step", [0, 0.5])
def test_secrets_that_are_all_remembered_are_all_extracted(step):
    """One secret ahead of another makes that one no safer, nor do both alike."""

    def score(texts):
        return [CANARIES.index(t[-4:]) * step if t[-4:] in CANARIES else 99 for t in texts]

    leak = canary_exposure(score, SPACE, CANARIES)
    assert leak.extracted.value == 1
    assert set(leak.exposures) == {leak.most}
    assert set(extract_canaries(score, SPACE, len(CANARIES))) == set(CANARIES)


def test_arrays_of_secrets_and_times(model, leak):
    again = canary_exposure(model.score, SPACE, np.array(CANARIES), times=np.array(TIMES))
    assert again.exposures == leak.exposures


def test_where_nothing_was_inserted_nothing_is_extracted(model):
    leak = canary_exposure(model.score, SPACE, CANARIES[:2], times=[0, 0])
    assert leak.extracted is None
    assert leak.facts()["extracted"] is None
    assert "extracted" not in str(leak)
    assert "nan" not in str(leak)


def test_what_was_inserted_often_is_extracted(model, leak):
    first = extract_canaries(model.score, SPACE, 8)
    often = {s for s, n in zip(CANARIES, TIMES, strict=True) if n == 16}
    assert first[0] in often
    assert len(often & set(first)) >= 6
    assert leak.extracted.trials == 24
    assert leak.extracted.hits >= 6
    assert "inserted secrets extracted" in str(leak)


def test_secrets_that_were_never_inserted_have_the_exposure_of_chance():
    """Uniform ranks: log2 e = 1.44 on average."""
    model = Characters(corpus(1))
    secrets = SPACE.draw(600, Replay("never"))
    leak = canary_exposure(model.score, SPACE, secrets)
    # Ties take the worst rank, so a little less; the standard deviation is 1.44 as well.
    assert 1.0 < np.mean(leak.exposures) < BY_CHANCE + 4 * BY_CHANCE / math.sqrt(600)


def test_exposure_by_chance_of_a_score_without_ties():
    rng = np.random.default_rng(5)
    scores = dict(zip(SPACE.all(), rng.normal(size=10_000), strict=True))
    secrets = SPACE.draw(3000, Replay(5))
    leak = canary_exposure(lambda texts: [scores[t[-4:]] for t in texts], SPACE, secrets)
    assert np.mean(leak.exposures) == pytest.approx(BY_CHANCE, abs=4 * BY_CHANCE / math.sqrt(3000))
    # An exposure of e or more has probability 2^-e.
    for e in (1, 2, 4):
        assert np.mean(np.array(leak.exposures) >= e) == pytest.approx(2.0**-e, abs=0.03)


def test_a_model_that_knows_nothing_shows_nothing():
    leak = canary_exposure(lambda texts: np.ones(len(texts)), SPACE, CANARIES[:3])
    assert leak.exposures == (0, 0, 0)


def test_the_first_has_all_bits_and_the_last_none():
    space = CanarySpace("{}", "ab", 3)
    leak = canary_exposure(
        lambda texts: [t.replace("a", "0").replace("b", "1") for t in texts],
        space,
        ["aaa", "bbb", "aba"],
    )
    # Six texts, and one of the three: 6 is last; of "aba" there is "aab" before.
    assert leak.exposures == pytest.approx([math.log2(6), 0, math.log2(6 / 2)])
    assert leak.extracted.hits == 1


def test_noise_in_training_takes_exposure_away(leak):
    """Each text changes a count by one at most, so that Laplace noise of scale 2 a count is a
    promise a character; secrets that are inserted once are no longer seen beside the others."""
    noised = Characters(corpus() + inserted(), noise=4.0, most=8)
    found = canary_exposure(noised.score, SPACE, CANARIES, times=TIMES)
    for n in (1, 4, 16):
        assert np.mean(found.by_times()[n]) < np.mean(leak.by_times()[n]) - 1
    assert np.mean(found.by_times()[1]) < 4


def test_extrapolation_agrees_with_ranks_where_the_curve_fits():
    rng = np.random.default_rng(1)
    scores = dict(zip(SPACE.all(), skewnorm.rvs(3, size=10_000, random_state=rng), strict=True))
    secrets = SPACE.draw(50, Replay(1))

    def score(texts):
        return [scores[t[-4:]] for t in texts]

    ranked = canary_exposure(score, SPACE, secrets)
    sampled = canary_exposure(score, SPACE, secrets, method="sample", entropy=Replay(2))
    assert sampled.misfit < 0.05
    assert sampled.exposures == pytest.approx(ranked.exposures, abs=1.0)
    again = canary_exposure(score, SPACE, secrets, method="sample", entropy=Replay(2))
    assert again.exposures == sampled.exposures
    assert "extrapolated" in str(sampled)
    assert "fits badly" not in str(sampled)


def test_a_space_too_large_to_rank_is_sampled():
    space = CanarySpace("card {}", length=16)
    with pytest.raises(ParameterError, match="too large to rank"):
        canary_exposure(lambda texts: np.ones(len(texts)), space, ["1" * 16])

    def score(texts):  # a sum of many digits is nearly normal; one secret is remembered
        sums = np.array([sum(map(int, t[5:])) for t in texts], float)
        return np.where([t == "card " + "9" * 16 for t in texts], -100, sums)

    leak = canary_exposure(score, space, ["9" * 16, "4" * 8 + "5" * 8], method="sample")
    # 172 below a mean of 72, with a standard deviation of 11.5: 15 of them.
    assert leak.exposures[0] == pytest.approx(-norm.logcdf(-172 / 11.49) / math.log(2), rel=0.4)
    assert leak.exposures[1] == pytest.approx(1, abs=0.3)


def test_the_curve_is_of_texts_that_were_not_inserted():
    space = CanarySpace("{}", length=2)
    secrets = space.draw(10, Replay(0))
    rest = dict(
        zip(space.all(), norm.rvs(size=100, random_state=np.random.default_rng(0)), strict=True)
    )

    def score(texts):
        return [-50.0 if t in secrets else rest[t] for t in texts]

    leak = canary_exposure(score, space, secrets, method="sample", entropy=Replay(0))
    assert leak.ranked == 90
    assert leak.misfit < 0.1
    assert min(leak.exposures) > 100


def test_a_bad_fit_is_said():
    def score(texts):  # two heaps
        return [10.0 * (t[-1] in "02468") + int(t[-2]) / 100 for t in texts]

    leak = canary_exposure(score, SPACE, ["0000"], method="sample", entropy=Replay(0))
    assert leak.misfit > 0.05
    assert "the curve fits badly" in str(leak)


TAILS = list(product([-5.0, 0.0, 2.0], [-30.0, -9.0, -4.0, -1.0, 0.0, 2.0, 50.0]))


@some_or_all("cases", TAILS[::3], TAILS)
def test_the_tail_against_many_digits(cases):
    for shape, value in cases:
        with named(shape, value):
            has_many_digits(shape, value)


def has_many_digits(shape, value):
    mpmath = pytest.importorskip("mpmath", reason="dp-accounting brings it")
    with mpmath.workdps(40):
        two = mpmath.mpf(2)

        def density(x):
            return mpmath.npdf(x) * mpmath.erfc(-shape * x / mpmath.sqrt(two))

        near = {mpmath.mpf(value) - d for d in (20, 5, 2, 1, 0.3, 0.05, 0)} | {-5, -1, 0, 1, 5}
        edges = [mpmath.mpf(-80), *sorted(x for x in near if x <= value)]
        exact = float(mpmath.log(mpmath.quad(density, edges)))
    assert _log_below(skewnorm(shape), value) == pytest.approx(exact, rel=1e-6, abs=1e-8)


def test_drawn_secrets():
    space = CanarySpace("{}", "abc", 2)
    assert sorted(space.draw(9, Replay(0))) == sorted(space.all())
    many = Counter(s for seed in range(300) for s in space.draw(1, Replay(seed)))
    assert len(many) == 9
    assert max(many.values()) < 60
    assert space.draw(4, Replay(1)) == space.draw(4, Replay(1))
    # Of most of a space: as likely as well, and without end it would not be.
    most = Counter(s for seed in range(200) for s in space.draw(8, Replay(seed)))
    assert min(most.values()) > 200 * 8 / 9 - 30
    assert len(set(CanarySpace("{}", length=5).draw(100_000, Replay(0)))) == 100_000


def test_no_secret_is_in_what_is_printed(leak):
    shown = str(leak) + json.dumps(leak.to_json(), allow_nan=False)
    assert not any(secret in shown for secret in CANARIES)
    assert max(map(len, str(leak).splitlines())) <= 100


@each_case(
    "facts, message",
    [
        ({"format": "no place"}, "one {} for the secret"),
        ({"format": "{} {}"}, "one {} for the secret"),
        ({"format": "{x} {}"}, "one {} for the secret"),
        ({"symbols": "1"}, "at least two symbols, each once"),
        ({"symbols": "112"}, "at least two symbols, each once"),
        ({"length": 0}, "at least one place"),
        ({"length": 2.5}, r"be an integer, not 2\.5"),
        ({"format": 5}, "be text"),
    ],
)
def test_spaces_that_are_none(facts, message):
    with pytest.raises(ParameterError, match=message):
        CanarySpace(**({"format": "{}"} | facts))


@each_case(
    "how, message",
    [
        ({"canaries": []}, "0 canaries and 0 counts"),
        ({"canaries": "1234"}, "secrets, not one text"),
        ({"times": [1, -1]}, "times must be whole numbers of"),
        ({"times": [1, 0.5]}, "times must be whole numbers of"),
        ({"times": [1, math.nan]}, "times must be whole numbers of"),
        ({"times": [1, True]}, "times must be whole numbers of"),
        ({"score": lambda texts: ["?"] * len(texts)}, "the scores must be numbers"),
        ({"times": [1]}, "2 canaries and 1 counts"),
        ({"canaries": ["1234", "1234"]}, "a canary occurs twice"),
        ({"canaries": ["12345"]}, "a secret has 4 of the symbols"),
        ({"canaries": ["12x4"]}, "a secret has 4 of the symbols"),
        ({"method": "guess"}, 'method must be "rank" or "sample"'),
        ({"method": "sample", "samples": 5}, "samples must be at least 100"),
        ({"method": "sample"}, "all sampled texts are equally likely"),
        ({"score": lambda texts: [math.inf] * len(texts)}, "a score is NaN or infinite"),
        ({"score": lambda texts: 1.0}, r"the scores have shape \(\)"),
    ],
)
def test_what_is_refused(how, message):
    usual = {"canaries": ["1234", "0000"], "score": lambda texts: np.ones(len(texts))} | how
    with pytest.raises(ParameterError, match=message):
        canary_exposure(usual.pop("score"), SPACE, usual.pop("canaries"), **usual)


def test_no_text_is_left_to_rank_among():
    space = CanarySpace("{}", "ab", 1)
    with pytest.raises(ParameterError, match="text is left to rank"):
        canary_exposure(lambda texts: np.ones(len(texts)), space, ["a", "b"])


def test_more_secrets_than_there_are():
    with pytest.raises(ParameterError, match="101 secrets from a space of 100"):
        CanarySpace("{}", length=2).draw(101)
