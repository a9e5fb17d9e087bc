"""Six hospitals average a model update; one drops out on the way, and the sum still comes out.

Every message below is bytes: between hospitals, put a network where this script has a dict.
"""

import numpy as np

from securecomp.core.fixedpoint import FixedPoint
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import PROTOCOL, Client, Parameters, Server

names = [f"hospital {i}" for i in range(1, 7)]
identities = {name: Identity.generate() for name in [*names, "server"]}

# Agreed beforehand, by everyone: updates have 1000 elements within +-1 on a grid of 2^-16, a
# hospital weighs as much as it has patients, up to 5000, and the server is not trusted.
grid = FixedPoint.binary(bound=1, bits=16)
parameters = Parameters.choose(len(names), grid.limit, security="active", max_weight=5000)
session = Session.create(
    PROTOCOL,
    contributors=names,
    servers=["server"],
    receivers=["server"],
    keys={name: identity.public for name, identity in identities.items()},
    layout=Layout(1000, grid.limit),
    limit=(1 << 62) - 1,
    terms=parameters.terms(),
)

clients = {name: Client(session, name, identities[name]) for name in names}
server = Server(session, "server", identities["server"])

rng = np.random.default_rng(1)
updates = {name: np.tanh(rng.normal(size=1000)) for name in names}
patients = dict(zip(names, [812, 1200, 64, 3100, 450, 990], strict=True))

# Step 1: keys.
for client in clients.values():
    server.receive(client.advertise())
messages = server.close()

# Step 2: the secrets behind the masks, shared among the hospitals.
for name, message in messages.items():
    server.receive(clients[name].share(message))
messages = server.close()

# Step 3: masked updates. One hospital's line breaks.
for name, message in messages.items():
    if name != "hospital 3":
        vector = grid.encode(updates[name], name)
        server.receive(clients[name].mask(message, vector, patients[name]))
messages = server.close()

# Step 4: the survivors sign who survived, and step 5: they help to take the masks off.
for name, message in messages.items():
    server.receive(clients[name].consent(message))
messages = server.close()
for name, message in messages.items():
    server.receive(clients[name].unmask(message))
server.close()

aggregate = server.result()
mean = aggregate.mean() / grid.scale
alive = [name for name in names if name in aggregate.survivors]
expected = np.average([updates[n] for n in alive], axis=0, weights=[patients[n] for n in alive])
print("survivors:", ", ".join(aggregate.survivors))
print("patients: ", aggregate.weight)
print(f"largest difference to the plaintext mean: {np.abs(mean - expected).max():.1e}")
print(f"the grid allows:                          {grid.error:.1e}")
