"""Known answers: what every byte of an honest run is, given its randomness."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
from cases import each_case
from sharing.cast import stream
from sharing.reference import Run

from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout
from securecomp.sharing.additive_sum import Sharing

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "sharing.json").read_text())
CASES = {case["name"]: case for case in VECTORS["cases"]}


class Recorder(LocalCarrier):
    """Keeps every message, also those that a party sends to itself."""

    def __init__(self, entropy):
        super().__init__(entropy)
        self.record = []

    def send(self, sender, recipient, data):
        self.record.append((sender, recipient, bytes(data)))
        return super().send(sender, recipient, data)


def inputs(case):
    """Element i of party j, spread over the whole of [-bound, bound]."""
    span = 2 * case["bound"] + 1
    return {
        name: [
            ((j + 1) * 7919 * (i + 1) ** 3) % span - case["bound"] for i in range(case["length"])
        ]
        for j, name in enumerate(case["contributors"])
    }


def reference(case):
    everyone = tuple(case["contributors"])
    servers = everyone if case["servers"] == "all" else tuple(case["servers"])
    receivers = tuple(case["receivers"] or everyone)
    return Run(inputs(case), servers, receivers, case["bound"], stream(case["seed"]))


def library(case):
    carrier = Recorder(stream(case["seed"]))
    total = Sharing("all" if case["servers"] == "all" else len(case["servers"])).run(
        carrier,
        Layout(case["length"], case["bound"]),
        {name: lambda v=v: np.array(v) for name, v in inputs(case).items()},
        tuple(case["receivers"]) if case["receivers"] else None,
    )
    return carrier, total.tolist()


@each_case("name", CASES)
def test_the_library_sends_what_the_reference_says(name):
    case = CASES[name]
    want = reference(case)
    carrier, total = library(case)
    # The carrier sees deliveries, server by server; the reference makes messages, party by party.
    assert sorted(carrier.record) == sorted(want.messages)
    assert total == want.total
    assert total == [sum(column) for column in zip(*inputs(case).values(), strict=True)]


@each_case("name", CASES)
def test_the_transcript_is_the_recorded_one(name):
    case = CASES[name]
    want = reference(case)
    assert want.digest() == case["sha256"]
    assert want.agreement.hex() == case["agreement"]
    shortest = min((data for _, _, data in want.messages), key=len)
    assert shortest.hex() == case["shortest_message"]


@each_case("name", CASES)
def test_other_randomness_gives_other_bytes(name):
    case = CASES[name] | {"seed": "another"}
    assert reference(case).digest() != CASES[name]["sha256"]
    assert [m for _, _, m in library(case)[0].record] != [
        m for _, _, m in library(CASES[name])[0].record
    ]


def test_the_digest_is_over_lengths_and_bytes():
    run = reference(CASES["three servers"])
    parts = b"".join(struct.pack(">Q", len(m)) + m for _, _, m in run.messages)
    assert run.digest() == hashlib.sha256(parts).hexdigest()
