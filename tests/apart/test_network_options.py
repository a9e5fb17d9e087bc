"""The commands' options for hospitals' networks."""

import contextlib
import json
import sys

import pytest
from consortium import SITES, Consortium, rows
from test_hospital_networks import ONE, Proxy, certificates

from securecomp.net import simulation


@pytest.mark.slow
def test_commands_reach_a_relay_with_tls_by_proxy_and_authority(tmp_path):
    """By their options, in processes of their own; the proxy sees all of it."""
    consortium = Consortium(tmp_path, ONE, "masking", SITES)
    authority, certificate, key = certificates(tmp_path)
    url = consortium.url.replace("http:", "https:")
    with contextlib.ExitStack() as stack:
        command = [
            sys.executable, "-m", "securecomp", "relay", str(consortium.path),
            "--store", str(tmp_path / "relay.db"), "--port", str(consortium.port),
            "--tls-cert", str(certificate), "--tls-key", str(key),
        ]  # fmt: skip
        stack.enter_context(simulation.started(command, tmp_path / "relay.out"))
        proxy = stack.enter_context(Proxy().running())
        through = ("--proxy", f"http://127.0.0.1:{proxy.port}", "--ca", str(authority))
        running = {}
        for name in (*SITES, "server"):
            identity, data = (tmp_path / f"{name}.{end}" for end in ("identity", "csv"))
            if name == "server":
                words = simulation.server_command(consortium.path, name, identity, url, *through)
            else:
                rows(name).to_csv(data, index=False)
                words = simulation.join_command(
                    consortium.path, name, data, identity, url, "--json", *through
                )
            out = tmp_path / f"{name}.out"
            running[name] = stack.enter_context(simulation.started(words, out))
        for name, process in running.items():
            assert process.wait(120) == 0, (tmp_path / f"{name}.out.errors").read_text()
    (text,) = {(tmp_path / f"{site}.out").read_text() for site in SITES}
    assert json.loads(text)["results"][0]["ask"] == "mean(column='los')"
    assert {tuple(asked) for asked in proxy.asked} == {("CONNECT", f"127.0.0.1:{consortium.port}")}
