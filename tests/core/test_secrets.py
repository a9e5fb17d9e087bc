"""Types that hold secrets: found in the source and in running protocols, and all of one policy."""

import ast
import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import re
import textwrap
import types
from collections.abc import Collection, Mapping

import msgspec
import numpy as np
import pytest
from ckks.parties import Parties, table
from mpc.computers import computation
from rich.pretty import pretty_repr
from secagg.cohort import Cohort
from sharing.cast import Cast

import securecomp
from securecomp.core import prg
from securecomp.core.secret import Secret
from securecomp.errors import BackendUnavailableError
from securecomp.paillier import PrivateKey, encrypt, threshold_key
from securecomp.protocol.identity import Identity
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.sharing import split

SECRET_NAME = re.compile(
    r"(^|_)(secret|secrets|seed|seeds|share|shares|key|keys|private|masks?|nonce|coins|identity"
    r"|identities|ciphers?|signing)($|_)"
)
NOT_SECRET = {
    "audit.reconstruction.observed_messages._Watched": "an attacker's tap, of a simulated sum",
    "audit.seeded_random.SeededRandom": "its seed is published with the report",
    "ckks.enrolment.Offer": "public keys",
    "ckks.enrolment.Registration": "public keys, and the seed of a public polynomial",
    "ckks.enrolment.ClientSession": "public keys",
    "ckks.native.encryption.RingPublicKey": "a public key",
    "ckks.native.linear._Request": "masks that a request's seed gives, public by themselves",
    "ckks.seal.chebyshev.Encrypted": "relinearisation keys, which are public",
    "federated.checkpoints.Checkpoint": "a public seed of participants and batches",
    "federated.protection.Protection": "a public seed of a rotation",
    "mpc.roles.ComputingSession": "public keys",
    "net.relay.Relay": "public keys, and nonces of requests",
    "net.study_messages.StudyTalk": "public keys",
    "overhead.cases.masking_steps.Cohort": "a measured cohort of drawn identities",
    "paillier.encrypted_sum.Paillier": "a copy draws a key of its own",
    "paillier.vectors.EncryptedVector": "a public key",
    "privacy.rotation.Encoding": "a public seed",
    "protocol.session.Session": "public keys",
    "sharing.additive_sum.Sharing": "whether it computes on shares, no share",
    "statistics.study.Study": "names of columns",
}


def modules():
    for found in pkgutil.walk_packages(securecomp.__path__, "securecomp."):
        if not found.name.endswith("__main__"):
            try:
                yield importlib.import_module(found.name)
            except BackendUnavailableError:  # an extra that is not installed here
                continue


def classes():
    return {
        cls
        for module in modules()
        for cls in vars(module).values()
        if inspect.isclass(cls) and cls.__module__ == module.__name__
    }


def called(cls):
    return f"{cls.__module__}.{cls.__qualname__}".removeprefix("securecomp.")


def attributes(cls):
    """What a class's instances have: fields, and what its methods assign to `self`."""
    found = set()
    if dataclasses.is_dataclass(cls) or issubclass(cls, msgspec.Struct):
        found |= set(getattr(cls, "__annotations__", {}))
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except OSError:
        return found
    for node in ast.walk(tree):
        stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if stored and isinstance(node.value, ast.Name) and node.value.id == "self":
            found.add(node.attr)
    return found


def test_a_type_with_an_attribute_that_sounds_secret_has_the_base_or_a_reason():
    sounding = {}
    for cls in classes():
        secret = sorted(name for name in attributes(cls) if SECRET_NAME.search(name))
        if secret and not issubclass(cls, Secret):
            sounding[called(cls)] = secret
    unknown = {name: why for name, why in sounding.items() if name not in NOT_SECRET}
    assert not unknown, f"give these types the base core.secret.Secret, or a reason: {unknown}"
    assert not set(NOT_SECRET) - set(sounding), "these reasons are about nothing any more"


def test_every_type_with_the_base_keeps_its_policy():
    holding = [cls for cls in classes() if issubclass(cls, Secret) and cls is not Secret]
    assert len(holding) > 40
    for cls in holding:
        name = called(cls)
        for method in ("__copy__", "__deepcopy__", "__replace__", "__reduce__", "__reduce_ex__"):
            assert getattr(cls, method) is getattr(Secret, method), f"{name} has its own {method}"
        assert cls.__rich_repr__ is Secret.__rich_repr__, f"{name} shows itself to rich"
        shown = getattr(cls.__repr__, "__module__", "")
        generated = getattr(cls.__repr__, "__code__", None)
        assert shown.startswith("securecomp."), f"{name} shows all of its fields in a repr"
        assert generated.co_filename.endswith(".py"), f"{name} needs @dataclass(repr=False)"


class Taint:
    """Secrets as they arise: what is drawn with 32 bytes, and every key that is derived."""

    def __init__(self, monkeypatch):
        self.secrets = set()
        real = prg.derive

        def derive(secret, *rest, **options):
            key = real(secret, *rest, **options)
            self.secrets |= {bytes(secret), key}
            return key

        monkeypatch.setattr(prg, "derive", derive)

    def texts(self):
        for secret in self.secrets:
            yield secret.hex() if isinstance(secret, bytes) else str(secret)
            yield repr(secret)[2:-1] if isinstance(secret, bytes) else hex(secret)


def inside(thing):
    """What an object holds directly."""
    if isinstance(thing, Mapping):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, Collection) and not isinstance(thing, str | bytes | np.ndarray):
        return list(thing)
    if not type(thing).__module__.startswith("securecomp."):
        return []
    names = {n for cls in type(thing).__mro__ for n in getattr(cls, "__slots__", ())}
    names |= set(getattr(thing, "__struct_fields__", ())) | set(getattr(thing, "__dict__", ()))
    return [getattr(thing, name) for name in names if hasattr(thing, name)]


def reachable(roots):
    seen, waiting = {}, list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | types.FunctionType):
            continue
        seen[id(thing)] = thing
        waiting += inside(thing)
    return list(seen.values())


def held(thing):
    """The bytes and numbers that an object holds itself, also in containers of its own."""
    found, waiting = [], inside(thing)
    while waiting:
        value = waiting.pop()
        if isinstance(value, bytes) or type(value).__name__ in ("int", "mpz"):
            found.append(value)
        elif not type(value).__module__.startswith("securecomp."):
            waiting += inside(value)
    return found


def sharing(taint):
    cast = Cast()
    roles = [cast.contributor("north"), cast.server("one"), cast.receiver("south")]
    for messages in cast.deals().values():
        roles[1].receive(messages["one"])
    return [cast.identities, roles, split([1, 2, 3], 3)]


def secagg(taint):
    cohort = Cohort(5)
    cohort.reach("unmask")
    return [cohort.clients, cohort.server]


def shares(taint):
    run = computation(3, integrity="mac")
    x = run.share("north", [1, 2, 3], bound=3)
    (x * x).reveal()
    return [run.engine]


def inference(taint):
    parties = Parties(protect_model=True)
    parties.ask(table(3))
    return [parties.clients, parties.server]


def paillier(taint):
    key = PrivateKey.generate(256, insecure_for_tests=True)
    encrypt(key.public, [1, 2, 3], bound=3, owner=key)
    dealt = threshold_key.deal(3, 2, 256, insecure_for_tests=True)
    taint.secrets |= {key._p, key._q, key._p2, key._q2}
    return [key, dealt]


PROTOCOLS = (sharing, secagg, shares, inference, paillier)
PUBLIC = {"Registration", "RingPublicKey", "Query"}
"""Types of which a derived key is the public seed of a polynomial."""


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.__name__)
def test_what_holds_a_secret_in_a_running_protocol_does_not_show_it(protocol, monkeypatch):
    taint = Taint(monkeypatch)
    things = [x for x in reachable(protocol(taint)) if type(x).__module__.startswith("securecomp.")]
    holders = {type(x) for x in things if not taint.secrets.isdisjoint(held(x))}
    assert holders, "no type that holds a secret was found: look where they went"
    for cls in holders:
        assert issubclass(cls, Secret) or cls.__name__ in PUBLIC, f"{called(cls)} holds a secret"
    texts = [text for text in taint.texts() if len(text) >= 32]
    for thing in things:
        shown = repr(thing) + str(thing) + pretty_repr(thing, max_depth=4)
        told = [text for text in texts if text in shown]
        assert not told or type(thing).__name__ in PUBLIC, f"{called(type(thing))} shows a secret"
        if isinstance(thing, Secret):
            for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="holds secrets and cannot be copied or pickle"):
                    duplicate(thing)


def test_a_secret_shows_its_type_and_what_it_chooses():
    class Kept(Secret):
        def __init__(self):
            self.seed = bytes(32)

    assert repr(Kept()) == str(Kept()) == "Kept(...)"
    assert pretty_repr(Kept()) == "Kept()"
    identity = Identity(bytes(32))
    assert repr(identity) == f"Identity(public={identity.public.hex()[:16]}...)"
    assert pretty_repr(identity) == "Identity()"


def test_a_copy_of_the_paillier_protocol_draws_its_own_key():
    from securecomp.paillier.encrypted_sum import Paillier

    carrier = LocalCarrier()
    scheme = Paillier(bits=256, insecure_for_tests=True)
    key = scheme.key(carrier)
    for other in (copy.copy(scheme), copy.deepcopy(scheme), pickle.loads(pickle.dumps(scheme))):  # noqa: S301
        assert other.key(carrier).public != key.public
        assert (other.bits, other.blind) == (256, False)
    assert scheme.key(carrier) is key
