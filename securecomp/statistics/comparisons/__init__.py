"""Tests and measures of association: means, tables, risks, strata and ROC curves."""
