"""Hospitals' networks: a proxy is the only way out, a private authority, TLS that ends early."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
import threading

import pytest
from consortium import Consortium, rows
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from securecomp.net import programs, simulation, sum_server
from securecomp.net.relay_client import RelayError
from securecomp.statistics import Study

ONE = '[[analyses]]\nask = "mean"\ncolumn = "los"\n'
SITES = ("north", "south")


def certificates(folder, name="authority"):
    """Draw a private authority, and a certificate of it for 127.0.0.1; return three files."""
    now = datetime.datetime.now(datetime.UTC)

    def signed(subject, public, issuer, key, extension):
        named = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n)]) for n in (subject, issuer)]
        builder = x509.CertificateBuilder(named[1], named[0], public, x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1))
        for each, critical in extension:
            builder = builder.add_extension(each, critical)
        return builder.sign(key, hashes.SHA256())

    root, leaf = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    own = x509.SubjectKeyIdentifier.from_public_key(root.public_key())
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key())
    authority = signed(
        name,
        root.public_key(),
        name,
        root,
        [(x509.BasicConstraints(True, None), True), (usage, True), (own, False)],
    )
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    relay = signed("relay", leaf.public_key(), name, root, [(here, False), (above, False)])
    files = [folder / f"{name}.{what}" for what in ("authority.pem", "pem", "key")]
    files[0].write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(relay.public_bytes(serialization.Encoding.PEM))
    files[2].write_bytes(
        leaf.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


class Proxy:
    """A proxy in a thread: forwards bytes, counts them, and can cut every connection."""

    def __init__(self, target=None, tls=None):
        """Forward to a port; without one, to where CONNECT says."""
        self.target, self.tls, self.port = target, tls, simulation._free_port()
        self.asked, self.carried = [], 0
        self._writers = set()

    @contextlib.contextmanager
    def running(self):
        started = threading.Event()

        async def serve():
            self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
            server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)
            started.set()
            await self._end.wait()
            server.close()
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.sleep(0.1)

        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        started.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._end.set)
            thread.join(10)

    def cut(self):
        """Cut all connections, as proxies do with those that are silent for long."""
        self._loop.call_soon_threadsafe(lambda: [w.transport.abort() for w in self._writers])

    async def _serve(self, reader, writer):
        port = self.target
        if port is None:
            line = await reader.readline()
            while (await reader.readline()).strip():
                pass
            self.asked.append(line.decode().split()[:2])
            port = int(self.asked[-1][1].rpartition(":")[2])
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with contextlib.suppress(OSError):
            inner, outer = await asyncio.open_connection("127.0.0.1", port)
            self._writers |= {writer, outer}
            await asyncio.gather(self._copy(reader, outer), self._copy(inner, writer))

    async def _copy(self, reader, writer):
        with contextlib.suppress(OSError, ssl.SSLError):
            while data := await reader.read(1 << 16):
                self.carried += len(data)
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError, ssl.SSLError):
            writer.close()


def run(consortium, connection, meanwhile=lambda: None):
    """Run all parties with a connection of each one's name; return the sites' results."""
    found = {}

    def work(name):
        try:
            member = programs.ConnectedParty(
                consortium.path, name, consortium.key(name), connection(name)
            )
            try:
                if name in consortium.servers:
                    sum_server.serve(member)
                else:
                    ((_, result),) = programs.join(member, name, rows(name))
                    found[name] = result.to_json()
            finally:
                member.close()
        except Exception as error:
            found[name] = error

    threads = [
        threading.Thread(target=work, args=(n,)) for n in (*consortium.sites, *consortium.servers)
    ]
    for thread in threads:
        thread.start()
    meanwhile()
    for thread in threads:
        thread.join(100)
    return found


@pytest.fixture
def wanted():
    return Study({site: rows(site) for site in SITES}).mean("los").to_json()


def test_a_connect_proxy_is_the_only_way_out_and_the_authority_is_private(tmp_path, wanted):
    consortium = Consortium(tmp_path, ONE, sites=SITES)
    authority, certificate, key = certificates(tmp_path)
    tls = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    with consortium.relay(**tls), Proxy().running() as proxy:
        url = consortium.url.replace("http:", "https:")

        def connection(name):
            through = f"http://127.0.0.1:{proxy.port}" if name == "south" else None
            return programs.Connection(url, proxy=through, authority=str(authority))

        found = run(consortium, connection)
    assert found == {"north": wanted, "south": wanted}
    assert {tuple(asked) for asked in proxy.asked} == {("CONNECT", f"127.0.0.1:{consortium.port}")}
    assert proxy.carried > 2000


def test_a_relay_of_an_unknown_authority_is_refused_at_once(tmp_path):
    consortium = Consortium(tmp_path, ONE, sites=SITES)
    _, certificate, key = certificates(tmp_path)
    other, _, _ = certificates(tmp_path, "other")
    tls = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    with consortium.relay(**tls):
        url = consortium.url.replace("http:", "https:")
        connection = programs.Connection(url, authority=str(other))
        member = programs.ConnectedParty(
            consortium.path, "north", consortium.key("north"), connection
        )
        with pytest.raises(RelayError, match=r"certificate.*--ca"):
            list(programs.join(member, "north", rows("north")))
        member.close()


def test_a_proxy_that_ends_tls_and_cuts_long_polls_does_no_harm(tmp_path, wanted):
    consortium = Consortium(tmp_path, ONE, sites=SITES)
    authority, certificate, key = certificates(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    with consortium.relay(), Proxy(consortium.port, tls).running() as proxy:
        url = f"https://127.0.0.1:{proxy.port}"

        def meanwhile():
            for _ in range(3):
                threading.Event().wait(0.3)
                proxy.cut()

        found = run(
            consortium, lambda _: programs.Connection(url, authority=str(authority)), meanwhile
        )
    assert found == {"north": wanted, "south": wanted}
    assert proxy.carried > 5000
