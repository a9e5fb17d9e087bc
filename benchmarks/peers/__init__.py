"""Other software that does the same job: `software` lists it, `comparing` runs it."""
