"""Disclosure control: suppression of small cells, tested against an attacker."""
