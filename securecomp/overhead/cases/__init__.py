"""The catalogue's jobs and cases, a module for each topic.

A module builds `Job`s: the same work in plaintext and under encryption, with the check that
compares both. It lists its cases in `for_users` (`securecomp bench`: whole jobs in sizes that the
user gives) and in `for_developers` (`python -m benchmarks`: each step and role apart).
`securecomp.overhead.catalogue` puts them together.
"""
