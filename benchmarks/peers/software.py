"""The peers: how each is used, and the cases that it is compared with."""

from benchmarks.peers.comparing import Comparison, Peer
from securecomp.overhead.cases import computing_on_shares, private_training
from securecomp.overhead.cases.paillier_steps import ASSUMES
from securecomp.overhead.job import Target

_CKKS = {
    "encrypt": ("client encrypts", ("encrypt", "save")),
    "predict": ("server predicts", ("load", "predict", "reply")),
    "decrypt": ("client decrypts", ("open", "decrypt")),
}
_COMPUTING = {case.name for case in computing_on_shares.for_developers()}
_SPU = {
    "semi2k": (
        2,
        "semi-honest, additive shares modulo 2^64, correlations made within the time by the first "
        "party, which SPU trusts (beaver_type TrustedFirstParty, its default)",
        "2",
    ),
    "aby3": (3, "semi-honest, honest majority, replicated shares modulo 2^64, no dealer", "3"),
}
_JOBS = {  # our job: its title, the peer's phase, how many times faster we must be
    "products": ("products", "products", Target("at least 5x faster than SPU", 5)),
    "truncated": (
        "fixed-point products, its probabilistic truncation",
        "truncated",
        Target("at least as fast as SPU", 1),
    ),
    "matmul": ("integer matrix product", "matmul", Target("at least 2x faster than SPU", 2)),
    "matmul-truncated": (
        "fixed-point matrix product, its probabilistic truncation",
        "matmul_truncated",
        Target("at least 2x faster than SPU", 2),
    ),
    "compare": ("comparisons", "compare", Target("at least 4x faster than SPU", 4)),
    "sigmoid": ("sigmoids", "sigmoid", Target("at least 3x faster than SPU", 3)),
}
_MPYC = Target("at least 100x faster than MPyC", 100)
_HELAYERS = Target("at least 1.5x faster than HElayers", 1.5)
_TENSEAL = Target("at least 5,000x faster than TenSEAL's dot", 5000)

PEERS = (
    Peer(
        name="mpyc",
        script="mpyc_sum.py",
        parties=3,
        packages="mpyc==0.11 numpy gmpy2 uvloop",
        how=(
            "3 processes on this machine over loopback TCP without TLS; Shamir sharing with "
            "threshold 1 in the same field, mpc.SecFld(2**61-1) arrays on numpy, its fastest way: "
            "of int64 vectors secfld.array, mpc.input by every party, the sum of the arrays, "
            "mpc.output. A phase ends with the slowest party. Ours: all roles in one process, "
            "sealed messages, no network."
        ),
        comparisons=(
            Comparison(
                "mpyc/one-receiver",
                "MPyC, one party receives",
                "sum/one-receiver",
                ("encode", "input", "output_one", "decode"),
                Target("at least 300x faster than MPyC", 300),
            ),
            Comparison(
                "mpyc/three-receivers",
                "MPyC, every party receives",
                "sum/all-servers",
                ("encode", "input", "output_all", "decode"),
            ),
        ),
    ),
    Peer(
        name="flwr",
        script="flower_secagg.py",
        parties=1,
        packages="flwr==1.42.0",
        arguments=("20",),
        how=(
            "SecAgg+ of Flower's installed package: its clients' own functions, and the loop of "
            "its server's unmask stage over them, without messaging; 20 clients, complete graph, "
            "threshold 11, modulus 2^32."
        ),
        comparisons=(
            Comparison(
                "flwr/client",
                "Flower, a client's key shares and masking",
                "masking/client",
                ("client_share", "client_mask"),
                Target("at least 15x faster than Flower", 15),
            ),
            Comparison(
                "flwr/server",
                "Flower, server unmasking, nobody dropped",
                "masking/server",
                ("server",),
                Target("at least 40x faster than Flower", 40),
            ),
            Comparison(
                "flwr/server-drop",
                "Flower, server unmasking, 10 % dropped",
                "masking/server-drop",
                ("server_drop",),
                Target("at least 40x faster than Flower", 40),
            ),
        ),
    ),
    *(
        Peer(
            name=f"phe{bits}",
            script="phe_values.py",
            parties=1,
            packages="phe==1.5.0 gmpy2",
            arguments=(str(bits),),
            how=(
                f"One value a ciphertext, {bits} bits, on gmpy2; 20 values, scaled. "
                f"It encrypts by {ASSUMES['full']}. Ours: `paillier/encrypt` by "
                f"{ASSUMES['half']}; `paillier/encrypt-full` by r^n, as phe."
            ),
            comparisons=(
                Comparison(
                    f"phe/encrypt/{bits}",
                    f"phe encrypts, {bits} bits, full exponent against our short one",
                    f"paillier/encrypt/{bits}",
                    ("encrypt",),
                    Target(f"at least {faster}x faster than phe", faster),
                ),
                Comparison(
                    f"phe/encrypt-full/{bits}",
                    f"phe encrypts, {bits} bits, full exponents",
                    f"paillier/encrypt-full/{bits}",
                    ("encrypt",),
                    Target("at least 25x faster than phe", 25),
                ),
                Comparison(
                    f"phe/add/{bits}",
                    f"phe adds, {bits} bits",
                    f"paillier/add/{bits}",
                    ("add",),
                    Target("at least 50x faster than phe", 50),
                ),
                Comparison(
                    f"phe/decrypt/{bits}",
                    f"phe decrypts, {bits} bits",
                    f"paillier/decrypt/{bits}",
                    ("decrypt",),
                    Target("at least 25x faster than phe", 25),
                ),
            ),
        )
        for bits, faster in ((2048, 500), (3072, 800))
    ),
    Peer(
        name="lightphe",
        script="lightphe_values.py",
        parties=1,
        packages="lightphe",
        arguments=("2048",),
        how=(
            "One value a ciphertext, 2048 bits; 5 values, scaled. It encrypts by r^n, as "
            "`paillier/encrypt-full` does; `paillier/encrypt` has the short exponent."
        ),
        comparisons=tuple(
            Comparison(
                f"lightphe/{step}/2048",
                f"LightPHE encrypts, 2048 bits, {exponents}",
                f"paillier/{step}/2048",
                ("encrypt",),
            )
            for step, exponents in (
                ("encrypt", "full exponent against our short one"),
                ("encrypt-full", "full exponents"),
            )
        ),
    ),
    *(
        Peer(
            name=f"helayers{threads}",
            script="helayers_logit.py",
            parties=1,
            packages="pyhelayers==1.5.5.4 numpy",
            arguments=(str(threads),),
            how=(
                "30 encrypted features, plain model, logits; "
                f"{threads} process{'es' * (threads > 1)} of one thread, a full batch each, "
                "scaled; SEAL underneath, 4,096 slots, 128 bits of security. "
                "Its logistic regression: parameters by its optimiser for that batch, activation "
                "NONE, one row a slot. Its tiles: a ciphertext a feature, two rows a slot (real "
                "and imaginary part), one prime of 60 bits, weights as integers, no rescaling. "
                "Times from bytes to bytes, as ours. Community edition, for non-commercial use."
            ),
            comparisons=tuple(
                Comparison(
                    f"helayers/{way}-{phase}/{threads}",
                    f"HElayers, {title}: {does}, cores: {threads}",
                    f"ckks/{phase}/{threads}",
                    tuple(f"{way}_{part}" for part in parts),
                    _HELAYERS if phase != "decrypt" else None,
                )
                for way, title in (("model", "its logistic regression"), ("tiles", "its tiles"))
                for phase, (does, parts) in _CKKS.items()
            ),
        )
        for threads in (1, 2)
    ),
    Peer(
        name="tenseal",
        script="tenseal_rows.py",
        parties=1,
        packages="tenseal==0.3.18 numpy",
        how=(
            "30 encrypted features, plain model, logits. As its tutorials do: one encrypted vector "
            "a row, ring 8,192, primes of 60, 40, 40 and 60 bits, scale 2^40, `dot` with Galois "
            "keys; 64 rows, scaled. At its best: one encrypted vector a column of 2,048 rows, "
            "encrypted with the secret or the public key, ring 4,096, one prime of 60 bits for the "
            "data, no rescaling, scaled. Times from bytes to bytes, as ours."
        ),
        comparisons=tuple(
            Comparison(
                f"tenseal/{way}{phase}",
                f"TenSEAL {does}{title}",
                f"ckks/{phase}/1",
                tuple(f"{way}{part}" for part in parts),
                _TENSEAL if phase == "predict" and not way else None,
            )
            for way, title in (
                ("", ""),
                ("secret_", ", a vector a column, secret key"),
                ("public_", ", a vector a column, public key"),
            )
            for phase, (does, parts) in _CKKS.items()
        ),
    ),
    Peer(
        name="opendp",
        script="opendp_noise.py",
        parties=1,
        packages="opendp==0.16.0 numpy",
        how=(
            "Its discrete Laplace and discrete Gaussian measurements on a vector of 20,000 i64, "
            "scaled; one call, of scale and sigma 10."
        ),
        comparisons=tuple(
            Comparison(
                f"opendp/{name}",
                f"OpenDP, discrete {name.capitalize()}",
                f"privacy/draws/{name}",
                (name,),
            )
            for name in ("laplace", "gaussian")
        ),
    ),
    Peer(
        name="opacus",
        script="opacus_steps.py",
        parties=1,
        packages="opacus==1.6.0 torch",
        jobs=True,
        how=(
            "One linear layer, SGD, PrivacyEngine with Poisson samples, per-sample gradients by "
            "hooks, one thread, 100 steps, scaled; floats of 32 bits, PyTorch's noise, which is "
            "neither exact nor cryptographic; without its accountant. Ours: floats of 64 bits that "
            "are exact integers, exact noise from AES-256."
        ),
        comparisons=tuple(
            Comparison(
                f"opacus/{name}",
                f"Opacus, DP-SGD steps, {problem.title}",
                f"training/dp-sgd/{name}",
                (name,),
                Target("at least 3x faster than Opacus", 3),
            )
            for name, problem in private_training.PROBLEMS.items()
        ),
    ),
    *(
        Peer(
            name=f"spu_{protocol}",
            script="spu_arithmetic.py",
            parties=1,
            packages="spu==0.9.5",
            arguments=(protocol, str(parties)),
            jobs=True,
            how=(
                f"{protocol.upper()}, {parties} parties, FM64, 16 fractional bits; {trust}. "
                "A thread a party in one process, links in memory, not encrypted, as its simulator "
                "sets them up; the runtimes stay, so that a time is the program's run alone, from "
                "shares to shares. Its truncation is off by one unit at times, ours is exact. "
                "Ours: the dealer's time apart, and in brackets with it; sealed messages."
            ),
            comparisons=tuple(
                Comparison(
                    f"spu/{protocol}-{job}/{ours}",
                    f"SPU {protocol.upper()}, {parties} parties: {title}",
                    f"computing/{job}/{ours}",
                    (phase,),
                    # Of different trust, a comparison promises nothing.
                    target if ours == same else None,
                    apart=True,
                )
                for ours in dict.fromkeys(("2", same))
                for job, (title, phase, target) in _JOBS.items()
                if f"computing/{job}/{ours}" in _COMPUTING
            ),
        )
        for protocol, (parties, trust, same) in _SPU.items()
    ),
    Peer(
        name="mpyc_products",
        script="mpyc_products.py",
        parties=3,
        packages="mpyc==0.11 numpy gmpy2 uvloop",
        jobs=True,
        how=(
            "3 processes on this machine over loopback TCP without TLS, Shamir sharing with "
            "threshold 1, from shares to shares: products of mpc.SecFld(2**61-1) arrays, "
            "comparisons of mpc.SecInt(32) arrays (ours: of 41 bits), 1,000 of them, scaled. Ours: "
            "all parties in one process, the dealer's time apart (in brackets with it), sealed "
            "messages, no network."
        ),
        comparisons=tuple(
            Comparison(
                f"mpyc/{job}/{ours}",
                f"MPyC, 3 parties: {title}",
                f"computing/{job}/{ours}",
                (job,),
                _MPYC if job == "products" else None,
                apart=True,
            )
            for ours in ("2", "3")
            for job, title in (("products", "products"), ("compare", "comparisons"))
            if f"computing/{job}/{ours}" in _COMPUTING
        ),
    ),
)
