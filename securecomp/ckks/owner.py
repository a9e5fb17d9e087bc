"""The owner of a model that the server must not see: it encrypts the model for each client."""

import numpy as np

from securecomp.ckks import planner
from securecomp.ckks.enrolment import SALT_BYTES, ClientSession, Offer, Registration, commit
from securecomp.ckks.inference_messages import EncryptedWeights
from securecomp.ckks.native import linear
from securecomp.ckks.native.encryption import SEED_BYTES
from securecomp.ckks.native.logits import body, integers, public_key
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.models import LogisticModel
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity


class ModelOwner(Secret):
    """Encrypts its model under a client's public key, for a server that computes with neither.

    The server learns the plan, and nothing of rows or weights (ring-LWE), as long as it does not
    collude with the client. The two together open everything. The client can learn the whole
    model: the third part of an answer is the product of its own c_1 with the model's. Use this
    where the client may know the model, or owns it, and the server may not.
    """

    def __init__(
        self,
        model: LogisticModel,
        name: str,
        server: str,
        server_key: bytes,
        *,
        identity: Identity | None = None,
        precision: float | None = None,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Plan, and make the offer. Give the offer to the server too.

        Args:
            model: The model.
            name: The owner's name.
            server: The server's name.
            server_key: The server's public key.
            identity: The owner's key. By default a new one is drawn.
            precision: As for `planner.plan`.
            entropy: Source of keys and noise.
        """
        self._identity = identity or Identity.generate(entropy)
        self._entropy = entropy
        self.name = name
        plan = planner.plan(model, precision=precision, encrypted=True)
        salt = entropy(SALT_BYTES)
        self.offer = Offer(
            server, server_key, plan, commit(model, salt), name, self._identity.public
        )
        self._salt = salt
        self._weights, _ = integers(model, plan)

    @property
    def salt(self) -> bytes:
        """Opens the offer's commitment to the model, as `InferenceServer.salt` does."""
        return self._salt

    def encrypt(self, registration: bytes) -> wire.Buffer:
        """Return the model under a client's key, sealed for the server.

        Raises:
            DecodeError, AuthenticationError, KeyMismatchError: Not a registration for this offer.
        """
        found = Registration.decode(registration, self.offer)
        plan = self.offer.plan
        ring = plan.linear.ring
        public = public_key(ring, found)
        parts = []
        for by_columns in (True, False):
            values = linear.weight_values(plan, self._weights, by_columns)
            flat = values.reshape(ring.levels, -1, ring.degree)
            encrypted = public.encrypt(flat, self._entropy(SEED_BYTES))
            parts.append(encrypted.swapaxes(0, 1).reshape(ring.levels, -1))
        residues = np.concatenate(parts, axis=1)
        vector = wire.Vector(ring.bits, residues.size)
        message = body(EncryptedWeights(vector), residues, ring.bits)
        engagement = ClientSession(self.offer, found)
        header = engagement.header(
            EncryptedWeights.KIND, self.name, self.offer.server, engagement.agreement
        )
        return identity_.seal(self._identity, engagement, header, message, self._entropy)

    def __repr__(self) -> str:
        return f"ModelOwner({self.name!r})"
