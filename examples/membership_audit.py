"""Who was this model trained on? Three models of 569 patients' tumours, attacked by their owner.

Half of the patients, drawn at random, are the members. A tree knows them by heart; a smaller tree
and a logistic regression do not. Somebody claims that the tree was trained with epsilon .5.

python examples/membership_audit.py
"""

from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from securecomp.audit import Claim, LikelihoodRatio, Strength, membership_inference
from securecomp.cli.report_page import exhibition
from securecomp.errors import RefutedError

MODELS = {
    "tree": DecisionTreeClassifier(random_state=0),
    "tree of 4 leaves": DecisionTreeClassifier(max_leaf_nodes=4, random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}


def main() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    inside, outside, yes, no = train_test_split(x, y, test_size=0.5, random_state=0)
    members, holdout = (inside, yes), (outside, no)
    fitted = {name: estimator.fit(*members) for name, estimator in MODELS.items()}
    by_loss = {
        name: membership_inference(model, members, holdout) for name, model in fitted.items()
    }
    print(Strength(by_loss))

    tree = MODELS["tree"]
    stronger = membership_inference(
        tree, members, holdout, attack=LikelihoodRatio(tree, shadows=64)
    )
    print(f"\nthe tree, by {stronger.attack}: AUC {stronger.area.value:.2f}")

    claim = Claim(epsilon=0.5, delta=1e-5, unit="record")
    shown = by_loss["tree"].against(claim)
    Path("audit.html").write_text(exhibition([shown], "The tree", "569 tumours"), encoding="utf-8")
    try:
        shown.check(claim)
    except RefutedError as error:
        print(f"\n{error}")


if __name__ == "__main__":
    main()
