"""Makers of the reference vectors."""
