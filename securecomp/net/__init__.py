"""A consortium over a network: every site runs the same program on its own rows.

`study_file` says what all agreed on, `relay` stores and forwards sealed messages, `site_state`
remembers across crashes, `network_carrier` brings the messages of a party, `programs` and
`sum_server` are what a site and a computing server run, `questions` has the agents that answer
analysts, and `simulation` runs all of it on one machine.
"""
