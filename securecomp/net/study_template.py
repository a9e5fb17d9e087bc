"""A study file to fill in."""

TEMPLATE = """\
# What all parties agree on. Each site signs this file: securecomp study sign
[study]
name = "Length of stay"
protocol = "sharing"        # or "masking", "paillier"
missing = "error"           # or "drop": leave out rows with empty cells
rows = 100000               # no site has more
minimum_count = 11          # smaller cells are not shown
patience = 3600             # seconds that a party waits for another

# Names and public keys: securecomp identity new north.identity
[sites]
# north = "..."
# south = "..."

# Computing servers: for sharing "server 1", "server 2", ...; for masking "server"
[servers]
# "server 1" = "..."
# "server 2" = "..."

# Who may ask further questions, and hear the answers; sites then run: securecomp join --serve
# [analysts]
# alice = "..."
# [questions]
# answer = ["count", "mean"]   # each site's program answers by itself
# ask = ["glm"]                # a person at each site is asked first

# What is summed is declared, since nobody sees all rows.
[columns.los]
bound = 400                 # no absolute value is larger
decimals = 0
[columns.ward]
levels = ["medical", "surgical"]

# Meaning of all columns, in a file beside this one; put these two lines into [study], and leave
# [columns] out:
# codebook = "stays.json"
# codebook_sha256 = "..."

# Noise: differential privacy, for all questions below together; each site pays from its own ledger
# [privacy]
# epsilon = 1
# delta = 1e-6
# [privacy.bounds]
# los = [0, 60]             # values are moved into these

# The questions, in order. The names are the methods of Study.
[[analyses]]
ask = "count"
by = "ward"
[[analyses]]
ask = "mean"
column = "los"
by = "ward"
"""
