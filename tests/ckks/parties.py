"""A model, a server and clients of it, and what somebody with their keys can say and read."""

import numpy as np
from sharing.cast import bug, stream

from securecomp.ckks import InferenceClient, InferenceServer, LogisticModel, ModelOwner
from securecomp.ckks.inference_messages import EncryptedLogits, EncryptedWeights, Query
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity

__all__ = ["KINDS", "Parties", "bug", "changed", "linear_model", "stream", "table"]

KINDS = {kind.KIND: kind for kind in (Query, EncryptedLogits, EncryptedWeights)}


def linear_model(features=3, outputs=1, *, scale=1.0, bound=1.0, intercept=0.5, seed=0):
    """Weights all over [-scale, scale]."""
    weights = np.random.default_rng(seed).uniform(-scale, scale, (outputs, features))
    return LogisticModel(
        weights=tuple(map(tuple, weights.tolist())),
        intercepts=tuple(intercept - k for k in range(outputs)),
        classes=("no", "yes") if outputs == 1 else tuple(f"c{k}" for k in range(outputs)),
        features=tuple(f"x{j}" for j in range(features)),
        bounds=(bound,) * features,
        link="sigmoid" if outputs == 1 else "softmax",
    )


def table(rows, features=3, bound=1.0, seed=1):
    """Rows all over the bounds, one corner included."""
    x = np.random.default_rng(seed).uniform(-bound, bound, (rows, features))
    x[0] = bound
    return x


class Parties:
    """A server with its clients; all keys are known here, and all randomness is replayed.

    `choices` are for the plan: precision, protect_model, max_rows; or encrypted=True. The backend
    is the native one, whose randomness can be replayed.
    """

    def __init__(self, model=None, *, seed="parties", clients=("ann",), ledger=None, **choices):
        self.model = model or linear_model()
        self.seed = seed
        names = ("server", "owner", *clients)
        self.identities = {n: Identity(stream(f"{seed}/identity of {n}")(32)) for n in names}
        self.encrypted = choices.pop("encrypted", False)
        entropy = stream(f"{seed}/server")
        identity = self.identities["server"]
        if self.encrypted:
            self.owner = ModelOwner(
                self.model,
                "owner",
                "server",
                identity.public,
                identity=self.identities["owner"],
                entropy=stream(f"{seed}/owner"),
                **choices,
            )
            self.server = InferenceServer(
                self.owner.offer, identity, None, ledger=ledger, entropy=entropy
            )
        else:
            choices = {"backend": "native"} | choices
            self.server = InferenceServer.create(
                self.model, identity=identity, ledger=ledger, entropy=entropy, **choices
            )
        self.offer, self.plan = self.server.offer, self.server.offer.plan
        self.ring = self.plan.linear.ring if self.plan.backend == "native" else None
        self.clients = {name: self.join(name) for name in clients}
        self.entropy = stream(f"{seed}/liar")

    def join(self, name, key=""):
        """Register a client with a new key."""
        client = self.client(name, key)
        registration = client.registration.encode()
        assert self.server.register(registration) == name
        if self.encrypted:
            assert self.server.load_model(self.owner.encrypt(registration)) == name
        return client

    def client(self, name="ann", key="", **choices):
        """A client that is not registered; `key` gives another key of its ciphertexts."""
        return InferenceClient.create(
            self.offer,
            name,
            identity=self.identities[name],
            entropy=stream(f"{self.seed}/{name}/{key}"),
            **choices,
        )

    @property
    def ann(self):
        return self.clients["ann"]

    def ask(self, rows, name="ann"):
        """All the way."""
        client = self.clients[name]
        return client.decrypt(self.server.predict(client.encrypt(rows)))

    def read(self, data, client=None):
        """Open any message: (message, residues); needs no role."""
        engagement = (client or self.ann)._engagement
        header = wire.split_header(data)[0]
        body = identities.open_sealed(
            self.identities[header.recipient],
            engagement,
            engagement.agreement,
            data,
            header.recipient,
        )[1]
        message, payload = wire.decode_body(body, KINDS[header.kind])
        vector = message.residues
        residues = wire.unpack(vector, payload, vector.length, vector.bits)
        return message, residues.copy()

    def say(
        self, message, residues, sender="ann", recipient="server", *, client=None, kind=None, **head
    ):
        """Seal a message of one's choice with a party's own key."""
        engagement = (client or self.ann)._engagement
        residues = np.asarray(residues, np.uint64)
        bits = head.pop("bits", self.ring.bits)
        body = wire.encode_body(message, residues.size, lambda a, b: residues[a:b], bits)
        header = engagement.header(
            message.KIND if kind is None else kind,
            sender,
            recipient,
            head.get("agreement", engagement.agreement),
        )
        return identities.seal(self.identities[sender], engagement, header, body, self.entropy)


def changed(message, **fields):
    """A copy of a message with some fields replaced."""
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    return type(message)(**(values | fields))
