"""Models that are trained over sites: no row is pooled, and no site's update is shown."""
