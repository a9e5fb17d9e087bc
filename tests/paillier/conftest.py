"""Keys, drawn once from entropy that is replayed."""

import pytest

from securecomp.paillier import PrivateKey, threshold_key


@pytest.fixture(scope="session")
def private(replay):
    """The key of most tests, 512 bits."""
    return PrivateKey.generate(512, insecure_for_tests=True, entropy=replay("a key"))


@pytest.fixture(scope="session")
def public(private):
    return private.public


@pytest.fixture(scope="session")
def stranger(replay):
    """Somebody else's key, of the same length."""
    return PrivateKey.generate(512, insecure_for_tests=True, entropy=replay("another key"))


@pytest.fixture(scope="session")
def real(replay):
    """A key of 2048 bits, which needs no permission."""
    return PrivateKey.generate(2048, entropy=replay("a key of 2048 bits"))


@pytest.fixture(scope="session")
def dealt(replay):
    """A threshold key, 3 of 5, and the shares."""
    return threshold_key.deal(5, 3, 256, insecure_for_tests=True, entropy=replay("a dealer"))
