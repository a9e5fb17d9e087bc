"""The cost of privacy, measured: secure computation against plaintext, on this machine.

A `Job` is the same work twice. `measure` compares both results, times both sides in turns, and
returns a row. `report` makes a run of rows, `text` makes its tables, and `page` (in `page`) an HTML
page. `securecomp bench` and the repository's `benchmarks` measure the jobs of `catalogue`.

The JSON of a run is one object:

- `format` (1), `quick`: true for small sizes and few rounds, which support no claim;
- `machine`: `cpu`, `cores`, `memory_bytes`, `os`, `python`, `blas`, `load_before`;
- `versions`: package to version;
- `rows`: one for each case, see below;
- `fits`: the growth of cost: `scheme` (absent if the series has only one), `series`, `quantity`
  ("seconds", "bytes by all", "bytes by a party"), `sizes`, and the exponents `exponent` (all sizes)
  and `last` (the two largest);
- `peers`: one row for each comparison with other software, in runs of `benchmarks` only;
- `skipped`: `case`, `title`, `reason` with the command that installs the missing package;
- `claims`: published claims about ratios: `family`, `text`, `low`, `high`.

A row has `case`, `title`, `series` (the name of the size that varies, or ""), where known `scheme`
("sharing", "masking", "paillier", "shares", "ckks") and `family` ("mpc", "fhe": the claim beside
its ratio), and either `failure`, a sentence, or:

- `sizes`: name to number; `note`; `runs`: the number of samples; `error`: numeric, against
  plaintext;
- `peak_memory`: bytes above the memory held before, or null if the system does not tell;
- `bytes_per_party` (by the party that sends most), `bytes_total`, `rounds`, `messages`,
  `bytes_by_role` (role to the bytes by the party of it that sends most), `bytes_on_line` (the
  busiest line's, one direction, summed over rounds; or null), if anything is sent;
- `plain`, `setup` (null without), `online`, `secure` (set-up and online): seconds, each a spread;
- `parts`: role to the online seconds of one party of it; `decode`: the same of a receiver that
  reads the result, or null. Sums and shares: CPU seconds of the median party's thread;
- `ratio`: `secure` against `plain`, a spread of ratios of neighbouring samples;
- `floors`: `name`, `seconds`, `ratio`; `targets`: `text`, `limit`, `value`, `met`, `unit`, `floor`;
- `elsewhere`: cores that other processes kept busy meanwhile;
- `samples`: `plain`, `setup`, `online`: the seconds of every sample, for `--compare`.

A spread is `median`, `q1`, `q3`, `low`, `high`: quartiles, and the median's 95 % bootstrap interval
(`low` and `high` are null with fewer than six samples). Runs of earlier versions lack `low`,
`high`, `parts`, `decode`, `bytes_by_role`, `bytes_on_line`, `samples`, `scheme`, `family`,
`skipped` and `claims`.
"""

from securecomp.overhead.job import Case, Communication, Job, Target, WrongResultError
from securecomp.overhead.measurement import measure
from securecomp.overhead.measurement_tables import text
from securecomp.overhead.runner import report

__all__ = [
    "Case",
    "Communication",
    "Job",
    "Target",
    "WrongResultError",
    "measure",
    "report",
    "text",
]
