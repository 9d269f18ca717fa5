"""From a failing case to the smallest input that still fails, and to a script that shows it without this package."""
