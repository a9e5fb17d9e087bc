"""Encrypted logits in IBM HElayers: `python helayers_logit.py THREADS ELEMENTS RUNS`.

Executed by the Python of an environment that has pyhelayers and numpy; it imports nothing of ours.
ELEMENTS rows of 30 encrypted features, a plain model on the server, no activation. Full batches are
timed and scaled to ELEMENTS. Two ways, whose phases are named after them: `model`, the library's
own logistic regression as its optimiser sets it up; `tiles`, the fastest program that we found in
its ciphertexts. The bindings hold the interpreter's lock, so a thread is a process of its own, with
a batch of its own. Prints one JSON object, with BATCHES entries a run.
"""

import json
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from threading import BrokenBarrierError

os.environ["OMP_NUM_THREADS"] = "1"  # before the library reads it

import numpy as np
import pyhelayers

THREADS, ELEMENTS, RUNS = map(int, sys.argv[1:4])
BATCHES = 5
FEATURES = 30
SLOTS = 4096
TOLERANCE = 1e-3

FORK = multiprocessing.get_context("fork")
READY = FORK.Barrier(THREADS, timeout=120.0)

# One prime of 60 bits: no rescaling. What is left above both scales holds logits below 2^9.
INPUT_SCALE = 31
WEIGHT_SCALE = 19
PRIME = 60


class Model:
    """The class for logistic regression, one row a slot; the optimiser chooses the parameters."""

    rows = SLOTS

    def __init__(self, weights, intercept):
        parameters = pyhelayers.PlainModelHyperParams()
        parameters.number_of_features = FEATURES
        parameters.logistic_regression_activation = pyhelayers.LRActivation.NONE
        # The form in which the library reads scikit-learn's models.
        text = {
            "meta": "lr",
            "classes_": [0, 1],
            "coef_": [weights.tolist()],
            "intercept_": [intercept],
            "n_iter_": [1],
            "params": {"C": 1.0},
        }
        plain = pyhelayers.PlainModel.create(parameters, [json.dumps(text).encode()], ["m.json"])
        wanted = pyhelayers.HeRunRequirements()
        wanted.set_he_context_options([pyhelayers.SealCkksContext()])
        wanted.set_model_encrypted(False)
        wanted.set_fixed_num_slots(SLOTS)
        wanted.optimize_for_batch_size(SLOTS)
        profile = pyhelayers.HeModel.compile(plain, wanted)
        self.context = pyhelayers.HeModel.create_context(profile)
        self._model = plain.get_empty_he_model(self.context)
        self._model.encode(plain, profile)
        self._encoder = self._model.create_model_io_encoder()

    def encrypt(self, rows):
        """Encode and encrypt a full batch."""
        data = pyhelayers.EncryptedData(self.context)
        self._encoder.encode_encrypt(data, [rows])
        return data

    def save(self, data):
        """Return the bytes of inputs or results."""
        return [data.save_to_buffer()]

    def load(self, buffers):
        """Read inputs, as the server does."""
        return self._model.load_encrypted_data(buffers[0])

    def predict(self, data):
        """Return the encrypted logits."""
        result = pyhelayers.EncryptedData(self.context)
        self._model.predict(result, data)
        return result

    def open(self, buffers):
        """Read the results, as the client does."""
        return pyhelayers.load_encrypted_data(self.context, buffers[0])

    def decrypt(self, result):
        """Decrypt and decode the logits."""
        return np.asarray(self._encoder.decrypt_decode_output(result)).ravel()


class Tiles:
    """A ciphertext a feature, two rows a slot (real and imaginary part), weights as integers."""

    rows = 2 * SLOTS

    def __init__(self, weights, intercept):
        self.context = pyhelayers.SealCkksContext()
        needed = pyhelayers.HeConfigRequirement(SLOTS, 0, PRIME - 28, 28)
        functions = pyhelayers.PublicFunctions()
        functions.clear()  # no relinearisation, no rotation
        functions.encrypt = True
        needed.public_functions = functions
        self.context.init(needed)
        self._encoder = pyhelayers.Encoder(self.context)
        self._weights = [round(weight * 2**WEIGHT_SCALE) for weight in weights.tolist()]
        self._encoder.set_default_scale(2.0 ** (INPUT_SCALE + WEIGHT_SCALE))
        self._intercept = self._encoder.encode(complex(intercept, intercept), 0)
        self._encoder.set_default_scale(2.0**INPUT_SCALE)

    def encrypt(self, rows):
        """Encode and encrypt a full batch."""
        pairs = (rows[:SLOTS] + 1j * rows[SLOTS:]).T
        return [self._encoder.encode_encrypt(column, 0) for column in np.ascontiguousarray(pairs)]

    def save(self, tiles):
        """Return the bytes of inputs or results."""
        return [tile.save_to_buffer() for tile in tiles]

    def load(self, buffers):
        """Read inputs, as the server does."""
        return [pyhelayers.load_ctile(self.context, buffer) for buffer in buffers]

    def predict(self, tiles):
        """Return the encrypted logits; the inputs are used up."""
        for tile, weight in zip(tiles, self._weights, strict=True):
            tile.multiply_scalar(weight)
        total = tiles[0]
        for tile in tiles[1:]:
            total.add_raw(tile)
        total.set_scale(2.0 ** (INPUT_SCALE + WEIGHT_SCALE))
        total.add_plain_raw(self._intercept)
        return [total]

    def open(self, buffers):
        """Read the results, as the client does."""
        return self.load(buffers)

    def decrypt(self, tiles):
        """Decrypt and decode the logits."""
        pairs = self._encoder.decrypt_decode_complex(tiles[0])
        return np.concatenate([pairs.real, pairs.imag])


WAYS = {"model": Model, "tiles": Tiles}


def run(name, way, generator):
    """Return start, end, CPU seconds, bytes by client and by server, of every phase; the error."""
    phases = {}

    def clocked(phase, work, *arguments):
        READY.wait()
        cpu, start = time.process_time(), time.perf_counter()
        result = work(*arguments)
        end, used = time.perf_counter(), time.process_time()
        phases[f"{name}_{phase}"] = [start, end, used - cpu, 0, 0]
        return result

    rows = generator.normal(size=(way.rows, FEATURES)).clip(-8, 8)
    weights, intercept = generator.normal(size=FEATURES).clip(-3, 3), 0.25
    made = clocked("setup", way, weights, intercept)
    data = clocked("encrypt", made.encrypt, rows)
    upload = clocked("save", made.save, data)
    data = clocked("load", made.load, upload)
    result = clocked("predict", made.predict, data)
    download = clocked("reply", made.save, result)
    result = clocked("open", made.open, download)
    logits = clocked("decrypt", made.decrypt, result)
    error = float(np.abs(logits - (rows @ weights + intercept)).max())
    if not error <= TOLERANCE:
        raise ValueError(f"wrong logits by {name}: off by {error}")
    phases[f"{name}_encrypt"][3] = sum(map(len, upload))
    phases[f"{name}_predict"][4] = sum(map(len, download))
    return phases, error


def work(index):
    """One process: every phase starts when all processes are ready for it."""
    generator = np.random.default_rng(index)
    try:
        found = [
            [run(name, way, generator) for name, way in WAYS.items()]
            for _ in range(1 + BATCHES * RUNS)
        ]
    except Exception:
        READY.abort()
        raise
    return found[1:]  # the first warms up


def together(name, way, processes):
    """Return what each phase of one run of one way took for ELEMENTS rows, of all processes."""
    error = max(error for _, error in processes)
    phases = {}
    for phase in processes[0][0]:
        each = zip(*(timed[phase] for timed, _ in processes), strict=True)
        started, ended, cpu, up, down = each
        scale = 1.0 if phase == f"{name}_setup" else ELEMENTS / (way.rows * THREADS)
        phases[phase] = {
            "seconds": (max(ended) - min(started)) * scale,
            "cpu": sum(cpu) * scale,
            "bytes_sent": [round(sum(up) * scale), round(sum(down) * scale)],
            "error": error,
        }
    return phases


def main():
    with ProcessPoolExecutor(THREADS, FORK) as pool:
        futures = [pool.submit(work, index) for index in range(THREADS)]
        errors = [error for error in (future.exception() for future in futures) if error]
    if errors:
        errors.sort(key=lambda error: isinstance(error, BrokenBarrierError))  # the cause first
        sys.exit(f"{type(errors[0]).__name__}: {errors[0]}")
    measured = []
    for runs in zip(*(future.result() for future in futures), strict=True):
        phases = {}
        for (name, way), processes in zip(WAYS.items(), zip(*runs, strict=True), strict=True):
            phases |= together(name, way, processes)
        measured.append(phases)
    versions = {name: version(name) for name in ("pyhelayers", "numpy")}
    print(json.dumps({"versions": versions, "elements": ELEMENTS, "runs": measured}))


main()
