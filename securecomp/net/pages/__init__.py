"""Pages that show how a run goes: the relay's, and a site's own."""
