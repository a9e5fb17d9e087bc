"""What secure computation costs against plaintext: `python -m benchmarks --help`.

A case is a pair: the same job in plaintext and under encryption. It is checked for correctness
before it is timed, and both sides run in turns, so that a busy moment hits both.
"""
