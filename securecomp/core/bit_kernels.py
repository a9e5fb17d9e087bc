"""The loops behind bit slices and the circuits on them; `bit_loops` has them."""

from securecomp.core.kernel_compiler import loop

_LOOPS = "securecomp.core.bit_loops"

transpose = loop(__name__, "transpose", _LOOPS)
spread = loop(__name__, "spread", _LOOPS)
leaves = loop(__name__, "leaves", _LOOPS)
hide_pairs = loop(__name__, "hide_pairs", _LOOPS)
join_pairs = loop(__name__, "join_pairs", _LOOPS)
join_gates = loop(__name__, "join_gates", _LOOPS)
unmask = loop(__name__, "unmask", _LOOPS)
