"""Every result of a study on fixed data, as JSON: behaviour that a re-organisation may not change.

`python tests/golden/capture.py` says which documents differ from the committed ones, `--numbers`
whether anything but wording does, and `--write` takes the new ones.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from click.testing import CliRunner

from securecomp import Column, Study, secure_sum
from securecomp.cli.main import main
from securecomp.federated import FederatedLinearRegression, FederatedLogisticRegression

FOLDER = Path(__file__).parent
ROWS = 60
COLUMNS = {
    "los": Column(bound=60, decimals=0),
    "age": Column(bound=110, decimals=0),
    "died": Column(bound=1, decimals=0),
    "days": Column(bound=400, decimals=0),
    "lab": Column(bound=20, decimals=2),
}


def frame(site: int) -> pd.DataFrame:
    """Return a site's rows, by plain arithmetic: the same everywhere and for ever."""
    rows = []
    for i in range(ROWS):
        n = 7919 * (site + 1) * (i + 1) % 10007
        los, age = n % 37 + 1, 20 + n // 7 % 70
        died = int((n // 3 + los + age) % 5 < 2)
        rows.append(
            {
                "los": los,
                "age": age,
                "died": died,
                "days": n % 389 + 1,
                "lab": (n % 1900) / 100,
                "ward": "abc"[n // 11 % 3],
                "sex": "fm"[n // 13 % 2],
                "drug": int((n // 17 + died) % 3 < 1),
                "patient": f"p{n % 200}",
                "rare": "xy"[int(i == 3 and site < 2)],
            }
        )
    return pd.DataFrame(rows)


def frames() -> dict[str, pd.DataFrame]:
    """Return four sites."""
    return {name: frame(i) for i, name in enumerate(["north", "south", "east", "west"])}


def plain(document: Any) -> Any:
    """Drop times, which differ each time, and give everything JSON's own types."""
    if isinstance(document, dict):
        return {
            str(k): plain(v)
            for k, v in document.items()
            if "seconds" not in str(k) and str(k) != "equal"
        }
    if isinstance(document, list | tuple):
        return [plain(v) for v in document]
    if hasattr(document, "item"):
        return plain(document.item())
    return document


def analyses(study: Study) -> dict[str, Any]:
    """Return all analyses of a study."""
    asked = {
        "count": study.count(),
        "count by ward": study.count(by="ward"),
        "count by rare": study.count(by="rare"),
        "sum": study.sum("los", by="sex"),
        "mean": study.mean("lab", by="ward"),
        "variance": study.variance("los", by="ward"),
        "variance of all": study.variance("lab"),
        "histogram": study.histogram("los", [0, 7, 14, 21, 40]),
        "crosstab": study.crosstab("ward", "died"),
        "crosstab, small": study.crosstab("rare", "sex"),
        "median": study.median("los", by="ward"),
        "quantiles": study.quantiles("lab", [0.1, 0.5, 0.9]),
        "extremes": study.extremes("age"),
        "winner": study.winner("los"),
        "glm": study.glm("died ~ los + C(ward)"),
        "glm, linear": study.glm("lab ~ los + age", "linear"),
        "glm, poisson": study.glm("los ~ age + sex", "poisson"),
        "kaplan_meier": study.kaplan_meier("days", "died", by="sex", times=range(0, 400, 40)),
        "logrank": study.logrank("days", "died", "sex", times=range(0, 400, 20)),
        "cox": study.cox("days", "died", ["los", "drug"], times=range(0, 400, 20), ties="breslow"),
        "cox, by formula": study.cox(
            "days", "died", "~ los + C(ward) * drug", times=range(0, 400, 20)
        ),
        "covariance": study.covariance(["los", "age"]),
        "correlation": study.correlation(["los", "age", "lab"]),
        "standardisation": study.standardisation(["los", "lab"]),
        "t_test": study.t_test("los", by="sex"),
        "t_test, paired": study.t_test("los", paired="age"),
        "t_test, one sample": study.t_test("lab", mu=9),
        "anova": study.anova("los", "ward"),
        "chi_square": study.chi_square("ward", "died"),
        "fisher": study.fisher("drug", "died"),
        "odds_ratio": study.odds_ratio("drug", "died"),
        "relative_risk": study.relative_risk("drug", "died"),
        "risk_difference": study.risk_difference("drug", "died"),
        "mantel_haenszel": study.mantel_haenszel("drug", "died"),
        "mantel_haenszel, strata": study.mantel_haenszel("drug", "died", "ward"),
        "roc_auc": study.roc_auc("lab", "died", bins=20),
    }
    return {name: result.to_json() for name, result in asked.items()}


def other_protocols() -> dict[str, Any]:
    """Return a few analyses by masking, and the arrays of `secure_sum`."""
    study = Study(frames(), columns=COLUMNS, protocol="masking")
    vectors = {name: f["lab"].to_numpy() for name, f in frames().items()}
    return {
        "mean": study.mean("lab", by="ward").to_json(),
        "glm": study.glm("died ~ los + C(ward)").to_json(),
        "secure_sum": secure_sum(vectors, bound=20, decimals=2).values.tolist(),
    }


def training() -> dict[str, Any]:
    """Return trained coefficients."""
    study = Study(frames(), columns=COLUMNS)
    averaged = FederatedLogisticRegression("sharing", rounds=3).fit(study, "died ~ los + age")
    steps = FederatedLogisticRegression("masking", strategy="sgd", rounds=3)
    linear = FederatedLinearRegression("sharing", rounds=3).fit(study, "lab ~ los")
    return {
        name: [m.coef_.tolist(), m.intercept_.tolist()]
        for name, m in {
            "averaging": averaged,
            "sgd": steps.fit(study, "died ~ los + age"),
            "linear": linear,
        }.items()
    }


def command_line() -> dict[str, Any]:
    """Return what `securecomp stats --json` prints."""
    options = [
        "--count --by ward",
        "--sum los --mean lab --variance los --by sex",
        "--histogram los --edges 0,10,20,40",
        "--crosstab ward died",
        "--count --by rare --min-count 0",
        "--median los",
        "--t-test los sex",
        "--chi-square ward died",
        "--odds-ratio drug died",
    ]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, rows in frames().items():
            files.append(str(Path(folder) / f"{name}.csv"))
            rows.to_csv(files[-1], index=False)
        for line in options:
            done = CliRunner().invoke(main, ["stats", *files, *line.split(), "--json"])
            text = done.stdout.replace(folder, "")
            found[line] = json.loads(text) if done.exit_code == 0 else done.stderr
    return found


DOCUMENTS = {
    "analyses": lambda: analyses(Study(frames(), columns=COLUMNS)),
    "undeclared": lambda: analyses(Study(frames())),
    "protocols": other_protocols,
    "training": training,
    "command_line": command_line,
}


def document(name: str) -> Any:
    """Return a document as JSON would read it."""
    return json.loads(json.dumps(plain(DOCUMENTS[name]())))


def committed(name: str) -> Any:
    """Return the committed document."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def differences(was: Any, now: Any, place: str = "", *, words: bool = True) -> list[str]:
    """Return where two documents differ; floats may in their last digits, as BLAS kernels do."""
    if isinstance(was, dict) and isinstance(now, dict):
        keys = [k for k in {**was, **now} if words or (k in was) == (k in now)]
        return [
            line
            for k in keys
            for line in (
                differences(was[k], now[k], f"{place}/{k}", words=words)
                if k in was and k in now
                else [f"{place}/{k}: only {'before' if k in was else 'now'}"]
            )
        ]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [
            line
            for i, (a, b) in enumerate(zip(was, now, strict=True))
            for line in differences(a, b, f"{place}/{i}", words=words)
        ]
    if isinstance(was, float) and isinstance(now, float):
        close = was == now or abs(was - now) <= 1e-8 * max(abs(was), abs(now), 1e-6)
        return [] if close else [f"{place}: {was!r} is now {now!r}"]
    if isinstance(was, str) and isinstance(now, str) and not words:
        return []
    return [] if was == now else [f"{place}: {was!r} is now {now!r}"]


if __name__ == "__main__":
    for title in DOCUMENTS:
        made = document(title)
        if "--write" in sys.argv:
            text = json.dumps(made, indent=1, ensure_ascii=False)
            (FOLDER / f"{title}.json").write_text(text + "\n", encoding="utf-8")
            continue
        for line in differences(committed(title), made, title, words="--numbers" not in sys.argv):
            print(line)
