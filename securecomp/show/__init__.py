"""Tables, figures and pages, for terminals and browsers."""
