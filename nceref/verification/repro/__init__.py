"""Reduction of a failing case to the smallest input that still fails, and a script that shows it without nceref."""
