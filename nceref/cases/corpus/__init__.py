"""Designed inputs on which every target is judged, each with its reference and bounds."""
