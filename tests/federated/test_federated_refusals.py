"""What a training refuses, before anything is sent: which site, which row, and what to do."""

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from federated.cohort import Mortal, model, sites

from securecomp import Column, Privacy, Study
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.federated import FederatedLinearRegression, FederatedLogisticRegression
from securecomp.federated.config import TrainingTerms
from securecomp.federated.plaintext_sum import PlaintextSum
from securecomp.privacy.ledger import Ledger
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout


def changed(site, place, value, what=0):
    data = sites()
    array = data[site][what].astype(float) if what == 0 else data[site][what].astype(object)
    array[place] = value
    data[site] = (array, data[site][1]) if what == 0 else (data[site][0], array)
    return data


def refused(data, error, message, **arguments):
    asked = Mortal()
    with pytest.raises(error, match=message):
        model(asked, **arguments).fit(data)
    assert asked.calls == 0


@each_case("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none(value):
    data = changed("east", (7, 1), value)
    refused(data, RangeError, "east: row 8, column 'x1' is missing or infinite; fill it in")
    refused(data, RangeError, "east: row 8, column 'x1' is missing", bounds=None)


def test_a_number_beyond_its_bound():
    data = changed("west", (0, 2), -5)
    refused(data, RangeError, "west: row 1, column 'x2' is beyond its bound")


def test_a_site_without_rows():
    data = sites()
    data["south"] = (np.zeros((0, 3)), np.zeros(0, int))
    asked = Mortal()
    with pytest.raises(ParameterError, match="south: has no rows to train on; leave the site out"):
        model(asked).fit(data)
    assert asked.calls == 0


def test_one_class_at_one_site_is_fine():
    data = sites()
    data["south"] = (data["south"][0], np.zeros(25, int))
    assert model().fit(data).classes_.tolist() == [0, 1]


@each_case("classes", [None, [0, 1]])
def test_one_class_at_all_sites(classes):
    data = {name: (x, np.zeros(len(x), int)) for name, (x, _) in sites().items()}
    reason = "are of one class" if classes else "all labels of all sites are 0; a classifier needs"
    with pytest.raises(ParameterError, match=reason):
        model(classes=classes).fit(data)


def test_no_rows_at_all():
    """The fault: it said "all labels are of one class: ()"."""
    data = {name: (x[:0], y[:0]) for name, (x, y) in sites().items()}
    with pytest.raises(ParameterError, match="no site has a row; a classifier needs rows of at"):
        model().fit(data)


def test_a_class_that_was_not_declared():
    data = changed("north", 4, 2, what=1)
    refused(data, RangeError, "north: row 5 has a label that is none of the agr", classes=[0, 1])
    refused(changed("north", 4, "ill", 1), ParameterError, "labels are all text or all numbers")


def test_classes_that_are_numbers():
    rows = pd.DataFrame({"x": [0.5, 1, 2] * 10, "n": [0, 3, 1] * 10})
    asked, fit = Study({"north": rows, "south": rows}), FederatedLogisticRegression(rounds=1)
    text = r"row 2 \(and 9 more\) is not 0 or 1, as a classifier reads numbers; .* write C\(n\) for"
    with pytest.raises(RangeError, match=f"north: response n: {text}"):
        fit.fit(asked, "n ~ x")
    assert fit.fit(asked, "C(n) ~ x").classes_.tolist() == [0, 1, 3]
    assert fit.fit(asked, "I(n == 3) ~ x").classes_.tolist() == [0, 1]


def test_columns_that_differ():
    data = sites()
    data["east"] = (data["east"][0][:, :2], data["east"][1])
    refused(data, ParameterError, "east: X has 2 columns, and that of north has 3")
    data = {n: (pd.DataFrame(x, columns=list("abc")), y) for n, (x, y) in sites().items()}
    data["west"] = (data["west"][0].rename(columns={"b": "d"}), data["west"][1])
    refused(data, ParameterError, "west: the columns of X are not named as those of north")


@each_case(
    "own, message",
    [
        ((np.zeros((3, 3)), [0, 1]), r"north: X has 3 rows and y the shape \(2,\)"),
        ((np.zeros((2, 3)), [[0], [1]]), r"y the shape \(2, 1\)"),
        ((np.zeros(3), [0, 1, 0]), r"X has rows and columns, not the shape \(3,\)"),
        ((np.array([["a"] * 3]), [0]), "X is not numbers"),
        ((np.zeros((2, 3)),), r"give \(X, y\)"),
        (5, r"give \(X, y\)"),
        ((np.zeros((2, 3)), [0, 1], [1]), "each has one patient"),
    ],
)
def test_shapes_that_do_not_fit(own, message):
    refused(sites() | {"north": own}, ParameterError, message)


def test_a_batch_that_is_larger_than_a_site():
    with pytest.raises(ParameterError, match="south: fewer rows than batch_size 26; lower it"):
        model(batch_size=26).fit(sites())
    with pytest.raises(ParameterError, match="east: more rows than the 60 that were agreed"):
        model(max_rows=60).fit(sites())


@each_case("protocol, fraction", [("masking", 0.5), ("sharing", 0.25)])
def test_a_fraction_of_too_few_sites(protocol, fraction):
    with pytest.raises(ThresholdError, match="of 4 sites leaves too few in a round; raise fracti"):
        model(protocol, fraction=fraction).fit(sites())


def test_too_few_sites():
    data = sites()
    with pytest.raises(ThresholdError, match="needs others to hide among"):
        model().fit({"north": data["north"]})
    with pytest.raises(ThresholdError):
        model("masking").fit({name: data[name] for name in ("north", "south")})
    assert model().fit({name: data[name] for name in ("north", "south")}).n_iter_ == 4


@each_case("rate", [1e3, 1e200, 1e308])
@each_case("strategy", ["sgd", "averaging"])
def test_a_learning_rate_that_diverges(rate, strategy):
    epochs = 1 if strategy == "sgd" else 4
    with pytest.raises(
        RangeError, match=r"its change of the weights in round 1 .* diverges; lower learning_rate"
    ):
        model(strategy=strategy, learning_rate=rate, local_epochs=epochs).fit(sites())


def test_least_squares_that_diverge():
    data = {name: (x, x[:, 0] * 3) for name, (x, _) in sites().items()}
    with pytest.raises(RangeError, match=r"north: its change of the weights in round .* diverges"):
        FederatedLinearRegression(rounds=200, learning_rate=3.0, scaling="none").fit(data)
    far = {name: (x, y * 1e9) for name, (x, y) in data.items()}
    with pytest.raises(RangeError, match="its mean loss in round 1 is not finite, or above 1024"):
        FederatedLinearRegression(learning_rate=1e-9, track_loss=True).fit(far)


def test_a_change_within_the_bound_is_not_clipped():
    """One unit below the bound passes unchanged; one above is refused."""
    largest = np.abs(model(rounds=1, strategy="sgd").fit(sites()).coef_).max()
    for name, (x, y) in sites().items():
        step = 0.5 * np.abs(x.T @ (0.5 - y) / len(y)).max()
        step = max(step, 0.5 * abs((0.5 - y).mean()))
        alone = sites()
        others = {n: (np.zeros_like(v[0]), np.resize([0, 1], len(v[1]) // 2 * 2)) for n, v in
                  alone.items() if n != name}  # fmt: skip
        others = {n: (x_[: len(y_)], y_) for n, (x_, y_) in others.items()}
        model(rounds=1, strategy="sgd", bound=step * 1.001).fit(others | {name: (x, y)})
        with pytest.raises(RangeError, match=f"{name}: its change"):
            model(rounds=1, strategy="sgd", bound=step * 0.999).fit(others | {name: (x, y)})
    assert largest > 0


@each_case(
    "arguments, message",
    [
        ({"strategy": "adam"}, "strategy is one of"),
        ({"rounds": 0}, "rounds is an integer from 1"),
        ({"rounds": 2.5}, "rounds is an integer"),
        ({"rounds": True}, "rounds is an integer"),
        ({"local_epochs": 0}, "local_epochs is an integer"),
        ({"batch_size": 0}, "batch_size is an integer"),
        ({"dropouts": -1}, "dropouts is an integer"),
        ({"bits": 60}, "bits is an integer from 8 to 52"),
        ({"fraction": 0}, "fraction is a finite number above 0"),
        ({"fraction": 1.5}, "fraction is at most 1"),
        ({"learning_rate": -1}, "learning_rate is a finite number above 0"),
        ({"learning_rate": np.nan}, "learning_rate is a finite"),
        ({"server_rate": "1"}, "server_rate is a finite"),
        ({"l2": -1}, "l2 is a finite number at least 0"),
        ({"bound": np.inf}, "bound is a finite"),
        ({"clip": 0}, "clip is a finite"),
        ({"strategy": "sgd", "local_epochs": 2}, 'local_epochs are for strategy="averaging"'),
        ({"scaling": "z"}, "scaling is one of bounds, moments, none"),
        ({"privacy": 3}, "privacy is a Privacy"),
        ({"bounds": [1, 2]}, "largest absolute values of 3 columns"),
        ({"bounds": {"x0": 1}}, "one each of x0, x1, x2"),
        ({"bounds": [4, (4, -4), 4]}, "bounds of column 'x1' are its largest absolute value"),
        ({"bounds": [4, 4, (1, 2, 3)]}, "bounds of column 'x2' are"),
        ({"bounds": [4, 4, (0, 4)]}, "column 'x2' is beyond its bound"),
        ({"bounds": -1}, "bounds of column 'x0' are"),
        ({"classes": [0, 0]}, "a class is named twice"),
        ({"classes": [0]}, "classes: a classifier needs at least two labels, not 1"),
        ({"classes": []}, "classes: a classifier needs at least two labels, not 0"),
    ],
)
def test_arguments_that_cannot_be(arguments, message):
    refused(sites(), (ParameterError, RangeError), message, **arguments)


@each_case("protocol", ["secret", "Clear", 5])
def test_a_protocol_that_is_none(protocol):
    with pytest.raises(ParameterError, match="protocol"):
        model(protocol).fit(sites())


def test_what_is_no_data():
    for data in (None, [1], 5):
        with pytest.raises(ParameterError, match="a Study and a formula, or a mapping"):
            model().fit(data)
    with pytest.raises(ParameterError, match="a formula is for a Study"):
        model().fit(sites(), "y ~ x")
    with pytest.raises(ParameterError, match="server"):
        model().fit(dict(zip(["server 1", "b", "c", "d"], sites().values(), strict=True)))
    with pytest.raises(ParameterError, match="server"):
        model("clear").fit(dict(zip(["server", "b", "c", "d"], sites().values(), strict=True)))


def frames():
    return {
        name: pd.DataFrame({"a": x[:, 0].round(2), "b": x[:, 1].round(2), "y": y})
        for name, (x, y) in sites().items()
    }


def test_a_studys_bad_rows():
    bad = frames()
    bad["east"].loc[3, "b"] = np.nan
    fit = FederatedLogisticRegression(rounds=2)
    with pytest.raises(RangeError, match="east: column 'b': 1 empty or NaN cell, the first in row"):
        fit.fit(Study(bad), "y ~ a + b")
    fit.fit(Study(bad, missing="drop"), "y ~ a + b")
    bad = frames()
    bad["west"].loc[5, "y"] = 3
    with pytest.raises(RangeError, match=r"west: .*row 6"):
        fit.fit(Study(bad), "y ~ a + b")
    bad = frames()
    del bad["north"]["a"]
    with pytest.raises(ParameterError, match="north: there is no column 'a'"):
        fit.fit(Study(bad), "y ~ a + b")


def test_a_studys_arguments():
    study = Study(frames())
    with pytest.raises(ParameterError, match="a study needs a formula"):
        FederatedLogisticRegression().fit(study)
    with pytest.raises(ParameterError, match="classes of a study are its response's levels"):
        FederatedLogisticRegression(classes=[0, 1]).fit(study, "y ~ a")
    with pytest.raises(ParameterError, match="bounds of a study map factors"):
        FederatedLogisticRegression(bounds=5).fit(study, "y ~ a")
    with pytest.raises(ParameterError, match="there is no column to train on"):
        FederatedLogisticRegression().fit(study, "y ~ 1")
    with pytest.raises(ParameterError, match="has no bound by the columns"):
        FederatedLogisticRegression().fit(study, "y ~ exp(exp(2 * a))")


def test_with_privacy_nothing_of_a_study_is_taken_from_the_data():
    terms = Privacy(1, 1e-5)
    fit = FederatedLogisticRegression(privacy=terms, strategy="sgd", rounds=2)
    with pytest.raises(ParameterError, match="with privacy nothing is taken from the data; decl"):
        fit.fit(Study(frames()), "y ~ a")
    columns = {n: Column(bound=4, decimals=2) for n in "ab"} | {"y": Column(bound=1, decimals=0)}
    other = Study(frames(), columns=columns, privacy=Privacy(2, 1e-5))
    with pytest.raises(ParameterError, match="other terms of privacy than the model"):
        fit.fit(other, "y ~ a")
    texts = {n: f.assign(c=np.where(f.a > 0, "u", "v")) for n, f in frames().items()}
    with pytest.raises(ParameterError, match="levels of c"):
        fit.fit(Study(texts, columns=columns), "y ~ a + c")


def test_a_study_answers_nothing_of_whole_sites():
    columns = {"y": Column(bound=1, decimals=0)}
    study = Study(frames(), columns=columns, privacy=Privacy(1, 1e-5, unit="site"))
    with pytest.raises(ParameterError, match='unit="site" is for training'):
        study.count()
    with pytest.raises(ParameterError, match="a site is at one site"):
        Privacy(1, 1e-5, unit="site", sites=2)


def test_the_sum_in_the_clear_refuses_what_the_others_do():
    add, carrier = PlaintextSum(), LocalCarrier()
    with pytest.raises(ParameterError, match="the vector's shape"):
        add.run(carrier, Layout(2, 5), {"a": lambda: [1], "b": lambda: [1, 2]})
    with pytest.raises(RangeError, match="b: a value is beyond the bound 5"):
        add.run(carrier, Layout(1, 5), {"a": lambda: [1], "b": lambda: [6]})
    with pytest.raises(RangeError, match="do not fit"):
        add.run(carrier, Layout(1, 1 << 62), {"a": lambda: [1], "b": lambda: [6]})
    assert add.run(carrier, Layout(1, 5), {"a": lambda: [1], "b": lambda: [-4]}).tolist() == [-3]


def test_terms_of_a_round():
    with pytest.raises(ThresholdError):
        TrainingTerms(fraction=0.1).fewest(10, 3)
    assert TrainingTerms(fraction=0.5, dropouts=2).fewest(10, 2) == 3
    assert TrainingTerms(fraction=0.5, dropouts=4).fewest(10, 3) == 3


@each_case("value", [None, np.nan, pd.NaT, 1j, b"a", pd.NA])
def test_a_label_that_is_none(value):
    refused(changed("south", 3, value, 1), RangeError, "south: row 4 of y is missing, or no label")


@each_case("kind", ["complex128", "datetime64[s]", "U5"])
def test_columns_that_are_no_numbers(kind):
    """numpy would take the real part, the seconds, or read the text."""
    data = {name: (x.astype(int).astype(kind), y) for name, (x, y) in sites().items()}
    refused(data, ParameterError, "north: X is not numbers")


def test_two_sites_of_one_name():
    one, two, three, _ = sites().values()
    refused({1: one, "1": two, "2": three}, ParameterError, "two sites have the same name")


@each_case("value", [np.nan, None])
def test_a_row_that_is_nobodys(value):
    """Each would be a patient of its own, of whom there may be one."""
    data = {}
    for name, (x, y) in sites().items():
        keys = np.arange(len(y)).astype(object)
        if name == "east":
            keys[4] = value
        data[name] = (x, y, keys)
    privacy = Privacy(2, 1e-5, unit="patient", identifier="id")
    how = {"privacy": privacy, "classes": [0, 1], "strategy": "sgd"}
    refused(data, RangeError, "east: of row 5 it is missing whose it is; fill it in", **how)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"absent": 5}, "absent is a function, not 5"),
        ({"progress": "bar"}, "progress is a function"),
        ({"entropy": None}, "entropy is a function, not None"),
        ({"checkpoint": 5}, "checkpoint is a file's path, not 5"),
        ({"fit_intercept": "no"}, "fit_intercept is True or False, not 'no'"),
        ({"track_loss": "no"}, "track_loss is True or False"),
        ({"bound": 1e300}, "bound is at most 2"),
        ({"classes": "ab"}, "classes are labels, in order, not 'ab'"),
        ({"classes": 2}, "classes are labels"),
        ({"bounds": object()}, "bounds are the largest absolute values of 3 columns"),
    ],
)
def test_arguments_of_wrong_types_before_anything_is_paid(arguments, message, tmp_path):
    ledger = Ledger.create(tmp_path / "budget", "sites", 5, "1e-4")
    privacy = Privacy(2, 1e-5, ledger=ledger)
    how = {"privacy": privacy, "classes": [0, 1], "strategy": "sgd"} | arguments
    refused(sites(), ParameterError, message, **how)
    assert ledger.state().spent.epsilon == 0


def test_bounds_of_a_study_for_matrices():
    privacy = Privacy(2, 1e-5, bounds={"x0": (0, 1)})
    how = {"privacy": privacy, "classes": [0, 1], "strategy": "sgd"}
    refused(sites(), ParameterError, "bounds of privacy are for a Study's columns", **how)
