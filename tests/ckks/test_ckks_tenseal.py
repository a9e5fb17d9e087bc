"""A TenSEAL user's own vectors are answered as such."""

import numpy as np
import pytest
from cases import altered
from ckks.parties import linear_model, table

from securecomp.ckks import VectorServer
from securecomp.errors import DecodeError, KeyMismatchError, ParameterError

tenseal = pytest.importorskip("tenseal")
MODEL = linear_model(5, 3)


@pytest.fixture(scope="module")
def context():
    """As in TenSEAL's tutorials."""
    made = tenseal.context(tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40, 60])
    made.global_scale = 2.0**40
    made.generate_galois_keys()
    return made


@pytest.fixture(scope="module")
def server(context):
    return VectorServer(MODEL, context.serialize(save_secret_key=False))


def test_a_row_in_a_vector(context, server):
    for row, expected in zip(table(3, 5), MODEL.logits(table(3, 5)), strict=True):
        answers = server.predict_row(tenseal.ckks_vector(context, row.tolist()).serialize())
        found = [tenseal.ckks_vector_from(context, answer).decrypt()[0] for answer in answers]
        assert np.abs(np.array(found) - expected).max() < 1e-5


def test_a_column_in_a_vector(context, server):
    rows = table(100, 5)
    sent = [tenseal.ckks_vector(context, column).serialize() for column in rows.T.tolist()]
    answers = server.predict_columns(sent)
    found = [tenseal.ckks_vector_from(context, answer).decrypt() for answer in answers]
    assert np.abs(np.array(found).T - MODEL.logits(rows)).max() < 1e-5


def test_what_is_no_vector_of_the_client_is_refused(context, server):
    vector = tenseal.ckks_vector(context, [1.0] * 4).serialize()
    with pytest.raises(DecodeError, match="has 4 numbers, and the model 5 features"):
        server.predict_row(vector)
    with pytest.raises(DecodeError, match="1 columns, and the model has 5"):
        server.predict_columns([vector])
    longer = tenseal.ckks_vector(context, [1.0] * 5).serialize()
    with pytest.raises(DecodeError, match="different lengths"):
        server.predict_columns([vector] * 4 + [longer])
    with pytest.raises(DecodeError, match="not a vector of this context"):
        server.predict_row(b"no vector")
    with pytest.raises(DecodeError, match="not a context of TenSEAL"):
        VectorServer(MODEL, b"no context")
    with pytest.raises(KeyMismatchError, match="draw a new key"):
        VectorServer(MODEL, context.serialize(save_secret_key=True))
    with pytest.raises(ParameterError, match="no weight but 0"):
        VectorServer(altered(linear_model(2), weights=((0.0, 0.0),)), b"")
    public = context.serialize(save_secret_key=False, save_galois_keys=False)
    with pytest.raises(ParameterError, match="needs Galois keys"):
        VectorServer(MODEL, public).predict_row(longer)
