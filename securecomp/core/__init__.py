"""Numbers only: no messages, no I/O, no clock."""
